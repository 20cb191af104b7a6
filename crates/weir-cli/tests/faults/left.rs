//! What a command that has ended may not leave behind.
//!
//! Programs and maps are the whole kernel's, and others make some at the same time. So each that was not there before is a
//! suspect, and those of others are acquitted: they go when whoever made them ends, or a process that is none of ours holds
//! them. What was really left stays for good.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::set_child_subreaper;
use weir_lab::Network;
use weir_sys::bpf::query;

/// The kernel frees programs and maps after a grace period, and others' tests end.
const PATIENCE: Duration = Duration::from_secs(60);
/// For interfaces, which are ours alone.
const SOON: Duration = Duration::from_secs(30);

/// A program or a map in the kernel, as it is named in `/proc/PID/fdinfo`.
type Object = (&'static str, u32);

/// The system before, and what has come since.
pub(crate) struct Watch<'a> {
    network: &'a Network,
    links: String,
    before: BTreeSet<Object>,
    /// With what was run before each of them was seen.
    suspects: BTreeMap<Object, String>,
}

impl<'a> Watch<'a> {
    pub(crate) fn over(network: &'a Network) -> Self {
        let links = links(network);
        assert!(!links.contains("xdp") && !links.contains("clsact"), "{links}");
        // Whoever loses his parent among what we run becomes a child of ours.
        set_child_subreaper(rustix::process::Pid::from_raw(1)).expect("it is known since Linux 3.4");
        Self { network, links, before: objects(), suspects: BTreeMap::new() }
    }

    /// A command has ended, which is called so: all that is new is suspected to be left of it.
    pub(crate) fn ended(&mut self, name: impl Fn() -> String) {
        let now = objects();
        self.suspects.retain(|object, _| now.contains(object));
        for object in now.difference(&self.before) {
            self.suspects.entry(*object).or_insert_with(&name);
        }
    }

    /// What is different at the interfaces after all patience.
    pub(crate) fn changed(&self) -> Option<String> {
        let start = Instant::now();
        loop {
            let links = links(self.network);
            if links == self.links {
                return None;
            }
            if start.elapsed() > SOON {
                return Some(links);
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What is left after all patience, and of what.
    pub(crate) fn left(mut self) -> Option<String> {
        let start = Instant::now();
        let mut held = BTreeSet::new();
        loop {
            let now = objects();
            self.suspects.retain(|object, _| now.contains(object));
            // Twice in a row: who only looks at what there is holds it for a moment, too.
            let holds = if self.suspects.is_empty() { BTreeSet::new() } else { held_by_others() };
            self.suspects.retain(|object, _| !(held.contains(object) && holds.contains(object)));
            held = holds;
            if self.suspects.is_empty() {
                return None;
            }
            if start.elapsed() > PATIENCE {
                let program = |id| query::program(id).ok().flatten().map(|program| program.name);
                let told = self.suspects.iter().map(|((kind, id), name)| {
                    let program = Some(*id).filter(|_| *kind == PROGRAM).and_then(program);
                    format!("{kind} {id} {} of {name}", program.unwrap_or_default())
                });
                return Some(told.collect::<Vec<_>>().join("; "));
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
}

const PROGRAM: &str = "prog_id";
const MAP: &str = "map_id";

fn objects() -> BTreeSet<Object> {
    let programs = query::programs().expect("root may ask").into_iter().map(|id| (PROGRAM, id));
    let maps = query::maps().expect("root may ask").into_iter().map(|id| (MAP, id));
    programs.chain(maps).collect()
}

/// What is held by the descriptors of processes that are none of what this one has started. Itself it only makes traffic.
fn held_by_others() -> BTreeSet<Object> {
    let parents: BTreeMap<u32, u32> = processes().filter_map(|id| Some((id, parent(id)?))).collect();
    let of_others = |id: &u32| {
        let mut ancestors = std::iter::successors(parents.get(id), |id| parents.get(id));
        !ancestors.any(|id| *id == process::id())
    };
    parents.keys().copied().filter(of_others).flat_map(held_by).collect()
}

pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("it is there").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub(crate) fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

fn held_by(process: u32) -> Vec<Object> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fdinfo")).into_iter().flatten().flatten();
    let texts = descriptors.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let object = |line: &str| {
        let (name, id) = line.split_once(':')?;
        let kind = [PROGRAM, MAP].into_iter().find(|kind| *kind == name)?;
        Some((kind, id.trim().parse().ok()?))
    };
    texts.flat_map(|text| text.lines().filter_map(object).collect::<Vec<_>>()).collect()
}

/// What `ip` and `tc` tell of the receiving interfaces.
pub(crate) fn links(network: &Network) -> String {
    let say = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        let (tool, args) = words.split_first().expect("a command");
        let output = network.rx().run(|| Command::new(tool).args(args).output().expect("it is installed"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let of = |name: &String| {
        ["ip -d link show", "tc qdisc show dev", "tc filter show ingress dev", "tc filter show egress dev"]
            .map(|line| say(format!("{line} {name}")))
            .concat()
    };
    network.pairs().iter().map(|pair| of(&pair.rx.name)).collect()
}
