//! Data flows one way, and so do dependencies: those between crates follow the drawing in ARCHITECTURE.md, and modules
//! of one parent do not depend on each other in a circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::slice;

use syn::visit::{self, Visit};

/// The crates, highest first: each depends only on crates below it.
const LAYERS: &[&[&str]] = &[
    &["weir-bench"],
    &["weir-cli"],
    &["weir-columns", "weir-export", "weir-service", "weir-lab", "weir-pcap"],
    &["weir-render"],
    &["weir", "weir-dissect", "weir-judge"],
    &["weir-bpf", "weir-native", "weir-rules"],
    &["weir-filter", "weir-flows", "weir-ring", "weir-savefile", "weir-sys", "weir-traffic"],
    &["weir-classify", "weir-parse", "weir-who"],
    &["weir-packet", "weir-lab-macros", "weir-skip"],
];

/// Circles that stay, each with its crate and parent, and why. Nothing may be added to one.
const CIRCLES: &[(&str, &[&str], &str)] = &[
    (
        "weir-judge packets",
        &["ethernet", "network", "transport"],
        "tunnels: a frame in a datagram in a frame",
    ),
    (
        "weir-ring",
        &["consumer", "pool", "producer"],
        "a pool makes its consumers and producers, and they keep it alive",
    ),
    ("weir-sys xsk", &["frame", "umem"], "the memory hands out frames, and they keep it alive"),
];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace").to_owned()
}

/// Returns what `cargo metadata` says about the crates of the workspace.
fn packages() -> Vec<serde_json::Value> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let metadata = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .expect("cargo runs");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).expect("JSON");
    metadata["packages"].as_array().expect("packages").clone()
}

#[test]
fn crates_depend_only_on_crates_below_them() {
    let layer = |name: &str| LAYERS.iter().position(|layer| layer.contains(&name));
    let mut wrong = Vec::new();
    let mut seen = 0;
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        if name == "weir-fuzz" {
            continue;
        }
        let Some(own) = layer(name) else {
            wrong.push(format!("{name} is in no layer"));
            continue;
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let to = dependency["name"].as_str().expect("a name");
            // Tests may look at a crate from above.
            if dependency["kind"] == "dev" || !to.starts_with("weir") {
                continue;
            }
            seen += 1;
            if layer(to).is_none_or(|to| to <= own) {
                wrong.push(format!("{name} -> {to}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 20, "only {seen} dependencies: these are not all crates");
}

/// Those on which nothing depends that is installed.
const FOR_TESTS: [&str; 5] = ["weir-bench", "weir-judge", "weir-lab", "weir-lab-macros", "weir-skip"];

#[test]
fn what_is_installed_needs_no_crate_for_tests() {
    let packages = packages();
    let needs = |name: &str| {
        let package = packages.iter().find(|package| package["name"] == name).expect("a crate");
        let all = package["dependencies"].as_array().expect("dependencies").clone();
        all.into_iter()
            .filter(|to| to["kind"].is_null())
            .filter_map(|to| to["name"].as_str().map(str::to_owned))
    };
    let (mut needed, mut next) = (BTreeSet::new(), vec!["weir-cli".to_owned(), "weir-pcap".to_owned()]);
    while let Some(name) = next.pop() {
        let below = needs(&name).filter(|to| to.starts_with("weir"));
        next.extend(below.filter(|to| !needed.contains(to)));
        needed.insert(name);
    }
    assert!(needed.len() > 10, "these are not all: {needed:?}");
    let wrong: Vec<_> = FOR_TESTS.iter().filter(|name| needed.contains(**name)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The names of a module and all it is in, from the crate's root.
type Module = Vec<String>;

/// The names that each name uses, with the paths that say so.
type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A module's own code.
#[derive(Default)]
struct Source {
    items: Vec<syn::Item>,
    /// What a name stands for that a `use` brings in.
    imports: BTreeMap<String, Vec<String>>,
    /// Modules whose names a `use ...::*` brings in.
    globs: Vec<Vec<String>>,
}

/// The modules of a crate; those that only tests have are left out.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Module, Source>,
}

impl Crate {
    fn read(root: &Path) -> Self {
        let mut found = Self::default();
        let directory = root.parent().expect("a directory").to_owned();
        found.add_file(root, &directory, Vec::new());
        found
    }

    fn add_file(&mut self, file: &Path, directory: &Path, module: Module) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.add(parsed.items, directory, module);
    }

    /// `directory`: where the files of its children are.
    fn add(&mut self, items: Vec<syn::Item>, directory: &Path, module: Module) {
        let mut source = Source::default();
        for item in items {
            if is_for_tests(&item) {
                continue;
            }
            match item {
                syn::Item::Mod(inner) => {
                    let name = inner.ident.to_string();
                    let below = directory.join(&name);
                    let child = [module.as_slice(), slice::from_ref(&name)].concat();
                    match inner.content {
                        Some((_, items)) => self.add(items, &below, child),
                        None => {
                            let files = [directory.join(format!("{name}.rs")), below.join("mod.rs")];
                            // What build.rs writes is elsewhere.
                            if let Some(file) = files.iter().find(|file| file.exists()) {
                                self.add_file(file, &below, child);
                            }
                        }
                    }
                }
                syn::Item::Use(item) => {
                    flatten(&item.tree, &mut Vec::new(), &mut |path, name| match name {
                        Some(name) => drop(source.imports.insert(name, path)),
                        None => source.globs.push(path),
                    });
                }
                item => source.items.push(item),
            }
        }
        self.modules.insert(module, source);
    }

    /// Returns the module that defines what `path` names in `module`; `None` if that is in another crate.
    fn definition(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        let source = self.modules.get(module)?;
        // Imports of imports; each is followed only so far.
        let depth = depth.checked_sub(1)?;
        match first.as_str() {
            "crate" => self.inside(Vec::new(), rest, depth),
            "self" => self.inside(module.to_vec(), rest, depth),
            "super" => self.inside(module[..module.len().checked_sub(1)?].to_vec(), rest, depth),
            name => {
                let child = [module, &[name.to_owned()]].concat();
                if self.modules.contains_key(&child) {
                    return self.inside(child, rest, depth);
                }
                let import = source.imports.get(name)?;
                if import.first() == Some(first) && import.len() == 1 {
                    return None;
                }
                self.definition(module, &[import.as_slice(), rest].concat(), depth)
            }
        }
    }

    /// Returns the module that defines `path`, which begins in `module`.
    fn inside(&self, module: Module, path: &[String], depth: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first() else { return Some(module) };
        if first == "super" || first == "self" {
            return self.definition(&module, path, depth);
        }
        let child = [module.as_slice(), slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.inside(child, rest, depth);
        }
        let source = self.modules.get(&module)?;
        if source.imports.contains_key(first) {
            return self.definition(&module, path, depth);
        }
        let defines = |module: &Module| {
            self.modules[module].items.iter().any(|item| name_of(item).is_some_and(|name| name == *first))
        };
        let through = |glob: &Vec<String>| {
            let module = self.definition(&module, glob, depth.checked_sub(1)?)?;
            defines(&module).then_some(module)
        };
        source.globs.iter().find_map(through).or(Some(module))
    }

    /// Returns the modules that each module uses, with the paths that name them.
    fn uses(&self) -> BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>> {
        let mut uses: BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>> = BTreeMap::new();
        for (module, source) in &self.modules {
            let mut paths = Paths::default();
            source.items.iter().for_each(|item| paths.visit_item(item));
            let imported = source.imports.values().chain(&source.globs);
            for path in imported.chain(&paths.0) {
                if let Some(used) = self.definition(module, path, 8) {
                    let used = uses.entry(module.clone()).or_default().entry(used).or_default();
                    used.insert(format!("{}: {}", module.join("::"), path.join("::")));
                }
            }
        }
        uses
    }

    /// Returns, for each module with children, how its children use each other, including what is inside them.
    fn families(&self) -> BTreeMap<Module, Uses> {
        let mut families: BTreeMap<Module, Uses> = BTreeMap::new();
        for (from, uses) in self.uses() {
            for (to, paths) in uses {
                let shared = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
                if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
                    let family = families.entry(from[..shared].to_vec()).or_default();
                    let uses = family.entry(one.clone()).or_default();
                    uses.entry(other.clone()).or_default().extend(paths);
                }
            }
        }
        families
    }
}

fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

fn name_of(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Calls `each` with every path of a `use` and the name it gets, or no name for `*`.
fn flatten(tree: &syn::UseTree, path: &mut Vec<String>, each: &mut impl FnMut(Vec<String>, Option<String>)) {
    let mut leaf = |name: &syn::Ident, renamed: &syn::Ident| {
        let mut path = path.clone();
        let mut renamed = renamed.to_string();
        if name != "self" {
            path.push(name.to_string());
        } else if renamed == "self" {
            renamed = path.last().cloned().unwrap_or_default();
        }
        each(path, Some(renamed));
    };
    match tree {
        syn::UseTree::Name(name) => leaf(&name.ident, &name.ident),
        syn::UseTree::Rename(name) => leaf(&name.ident, &name.rename),
        syn::UseTree::Glob(_) => each(path.clone(), None),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, path, each)),
        syn::UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            flatten(&inner.tree, path, each);
            path.pop();
        }
    }
}

/// All paths of some items.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'a> Visit<'a> for Paths {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        flatten(&item.tree, &mut Vec::new(), &mut |path, _| self.0.push(path));
    }

    // `pub(in crate::live)` is no use.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_macro(&mut self, of: &'a syn::Macro) {
        visit::visit_macro(self, of);
        let text = of.tokens.to_string();
        for (at, _) in text.match_indices("crate :: ") {
            let path = text[at..].split(|c: char| !(c.is_alphanumeric() || "_: ".contains(c))).next();
            self.0.push(path.unwrap_or_default().split(" :: ").map(|part| part.trim().to_owned()).collect());
        }
    }
}

/// Returns the groups of names that can reach each other.
fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reach = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(name) = next.pop() {
            for to in uses.get(name).into_iter().flat_map(BTreeMap::keys) {
                if reached.insert(to.clone()) {
                    next.push(to);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reach(name))).collect();
    let circle = |name: &String| -> BTreeSet<String> {
        let back = |other: &&String| reached.get(other).is_some_and(|reached| reached.contains(name));
        reached[name].iter().filter(back).cloned().collect()
    };
    let circles: BTreeSet<_> = uses.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    circles.into_iter().collect()
}

#[test]
fn modules_of_one_parent_form_no_circle() {
    let mut wrong = String::new();
    let mut modules = 0;
    for package in packages() {
        for target in package["targets"].as_array().expect("targets") {
            let kind = target["kind"][0].as_str().expect("a kind");
            if !["lib", "bin", "cdylib"].contains(&kind) || package["name"] == "weir-fuzz" {
                continue;
            }
            let root = target["src_path"].as_str().expect("a path");
            let found = Crate::read(Path::new(root));
            modules += found.modules.len();
            for (parent, uses) in found.families() {
                for circle in circles(&uses) {
                    let name = format!("{} {}", package["name"].as_str().expect("a name"), parent.join("::"));
                    let stays = |(parent, modules, _): &(&str, &[&str], &str)| {
                        *parent == name.trim_end() && circle.iter().all(|one| modules.contains(&one.as_str()))
                    };
                    if CIRCLES.iter().any(stays) {
                        continue;
                    }
                    wrong += &format!("{name}: {} modules\n", circle.len());
                    for one in &circle {
                        for (other, paths) in uses[one].iter().filter(|(other, _)| circle.contains(*other)) {
                            let paths: Vec<_> = paths.iter().map(String::as_str).collect();
                            wrong += &format!("    {one} -> {other}: {}\n", paths.join(", "));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "circles:\n{wrong}");
    assert!(modules > 400, "only {modules} modules: these are not all");
}
