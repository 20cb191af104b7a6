//! Compiles and runs the C programs.

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, ScopedJoinHandle};

use tempfile::TempDir;
use weir_sys::netns::NetNs;

/// Two connected interfaces, two that are down, and no traffic but what the programs send.
const INTERFACES: &str = "
set -e
for which in default all; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
ip link add d0 address 02:00:00:00:00:01 type veth peer name d1 address 02:00:00:00:00:02
ip link add d2 type veth peer name d3
ip link set d0 up
ip link set d1 up
until ip link show d0 | grep -q 'state UP' && ip link show d1 | grep -q 'state UP'; do sleep 0.05; done
";

/// Runs a command in a network of its own: d0 and d1 are connected, d2 and d3 are down.
#[allow(dead_code, reason = "not all tests need it")]
pub(crate) fn in_a_network(command: &mut Command) -> Output {
    let namespace = NetNs::new().expect("a namespace");
    let run = |command: &mut Command| {
        let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    let made = run(Command::new("sh").arg("-c").arg(INTERFACES));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    run(command)
}

/// A line that differs on purpose.
pub(crate) struct Difference {
    /// How the system's line begins.
    pub(crate) line: &'static str,
    /// The reason.
    pub(crate) why: &'static str,
}

/// A program in C, compiled against the system's `pcap.h`.
pub(crate) struct Program {
    name: &'static str,
    /// The program, the program with sanitizers, and a directory `lib` with the names of our library.
    directory: TempDir,
}

impl Program {
    /// Compiles `tests/c/NAME.c`, or `NAME.cpp`, with and without sanitizers.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compile(name: &'static str) -> Self {
        Self::compile_in("tests/c", name)
    }

    /// Compiles `NAME.c` of a folder of this crate.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compile_in(folder: &str, name: &'static str) -> Self {
        Self::compile_with(folder, name, &["-lpcap"])
    }

    /// Compiles `NAME.c` of a folder, which uses what only our library has.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compile_for_ours(folder: &str, name: &'static str) -> Self {
        let library = library();
        Self::compile_with(folder, name, &[library.to_str().expect("UTF-8")])
    }

    fn compile_with(folder: &str, name: &'static str, link: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let program = Self { name, directory };
        program.cc(folder, "plain", &[], link);
        program.cc(folder, "sanitized", &["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], link);
        let lib = program.path("lib");
        std::fs::create_dir(&lib).expect("a directory");
        for soname in ["libpcap.so.0.8", "libpcap.so.1"] {
            symlink(library(), lib.join(soname)).expect("a link");
        }
        program
    }

    /// Runs the program on both libraries; fails if they differ in more than the lines of `accepted`, if one of those
    /// is the same, or if a sanitizer finds fault with the program on ours.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compare(&self, accepted: &[Difference]) {
        self.compare_by(accepted, |command| command.output().expect("it starts"));
    }

    /// Like [`Self::compare`], with a function that runs a command. All runs are at the same time.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compare_by(&self, accepted: &[Difference], run: impl Fn(&mut Command) -> Output + Sync) {
        self.compare_kinds(&["plain", "sanitized"], accepted, run);
    }

    /// The same with only some of the kinds on our library.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn compare_kinds(
        &self,
        kinds: &[&str],
        accepted: &[Difference],
        run: impl Fn(&mut Command) -> Output + Sync,
    ) {
        let (run, lib) = (&run, &self.path("lib"));
        let start = |mut command: Command| move || run(&mut command);
        thread::scope(|scope| {
            let system = scope.spawn(start(self.command("plain", None)));
            let ours = kinds.iter().map(|kind| (kind, scope.spawn(start(self.command(kind, Some(lib))))));
            let ours: Vec<_> = ours.collect();
            let ended =
                |run: ScopedJoinHandle<'_, Output>| run.join().unwrap_or_else(|panic| resume_unwind(panic));
            let system = self.lines(&ended(system), "the system's library");
            for (kind, run) in ours {
                self.same(&system, &self.lines(&ended(run), &format!("ours, {kind}")), accepted);
            }
        });
    }

    /// Returns the command that runs the program on our library: `plain`, or `sanitized`.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn on_ours(&self, kind: &str) -> Command {
        self.command(kind, Some(&self.path("lib")))
    }

    /// Returns the command that runs the program on the system's library.
    #[allow(dead_code, reason = "not all tests need it")]
    pub(crate) fn on_systems(&self) -> Command {
        self.command("plain", None)
    }

    fn same(&self, system: &[String], ours: &[String], accepted: &[Difference]) {
        let mut report = String::new();
        let mut differences = 0;
        let mut met = vec![false; accepted.len()];
        for at in 0..system.len().max(ours.len()) {
            let (theirs, own) = (system.get(at), ours.get(at));
            if theirs == own {
                continue;
            }
            let known =
                accepted.iter().position(|known| theirs.is_some_and(|line| line.starts_with(known.line)));
            if let Some(known) = known {
                met[known] = true;
                continue;
            }
            differences += 1;
            if differences <= 20 {
                let shown = |line: Option<&String>| line.map_or("(end)", String::as_str).to_owned();
                writeln!(report, "line {}:\n  system: {}\n  ours:   {}", at + 1, shown(theirs), shown(own))
                    .expect("a string takes all");
            }
        }
        assert!(differences == 0, "{}: {differences} lines differ; the first ones:\n{report}", self.name);
        for (known, met) in accepted.iter().zip(met) {
            let Difference { line, why } = known;
            assert!(met, "{}: no difference any more in the line `{line}` ({why})", self.name);
        }
    }

    /// Returns the lines of a run, and how it ended.
    fn lines(&self, output: &Output, on: &str) -> Vec<String> {
        let errors = String::from_utf8_lossy(&output.stderr);
        let shown = String::from_utf8_lossy(&output.stdout);
        let end: Vec<&str> = shown.lines().rev().take(5).collect();
        assert!(output.status.success(), "{} on {on}: {}\n{errors}\n{end:#?}", self.name, output.status);
        assert!(!shown.is_empty(), "{} on {on} printed nothing", self.name);
        let lines = shown.lines().map(str::to_owned);
        lines.chain(errors.lines().map(|line| format!("standard error: {line}"))).collect()
    }

    fn command(&self, kind: &str, lib: Option<&Path>) -> Command {
        let mut command = Command::new(self.path(kind));
        command.env_remove("LD_LIBRARY_PATH").env("LC_ALL", "C");
        if let Some(lib) = lib {
            command.env("LD_LIBRARY_PATH", lib);
        }
        command
    }

    fn cc(&self, folder: &str, kind: &str, options: &[&str], link: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(self.name);
        let [c, cpp] = ["c", "cpp"].map(|extension| source.with_extension(extension));
        let (compiler, standard, source) =
            if c.exists() { ("cc", "-std=c11", c) } else { ("c++", "-std=c++17", cpp) };
        let mut cc = Command::new(compiler);
        cc.args([standard, "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror"]);
        cc.args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")]);
        // Some functions are old, but exported.
        cc.arg("-Wno-deprecated-declarations").args(options).arg("-o").arg(self.path(kind));
        // Sanitizers would link libpcap even to a program that loads it itself.
        let output = cc.arg(source).arg("-Wl,--as-needed").args(link).output();
        let output = output.expect("a compiler for C (cc) and C++ (c++)");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "cannot compile {}:\n{errors}", self.name);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// Returns the path of our library: cargo builds it next to the tests.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this program");
    let library = test.with_file_name("libweir_pcap.so");
    assert!(library.exists(), "cargo has not built {}", library.display());
    library
}
