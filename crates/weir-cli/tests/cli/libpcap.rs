//! `weir libpcap` and `weir run`.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use weir_lab::root_test;

use crate::harness::{NOBODY, Running, network, send, until};

/// A file that tcpdump reads.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/weir.pcapng");
/// What a program prints of the library's version.
const OURS: &str = concat!("libpcap version 1.10.3 (weir ", env!("CARGO_PKG_VERSION"), ")");
const NAMES: [&str; 3] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"];

/// weir and its library in a directory of their own.
struct Place {
    directory: TempDir,
    weir: PathBuf,
}

impl Place {
    /// As in a build tree: both in one directory.
    fn built() -> Self {
        let place = Self::without_library("weir");
        link(&built_library(), &place.path("libweir_pcap.so"));
        place
    }

    /// As in an installation: `bin/weir` and `lib/weir/`.
    fn installed() -> Self {
        let built = Self::built();
        let place = Self::without_library("bin/weir");
        let done = built.weir(&["libpcap"]).arg(place.path("lib/weir")).output().expect("weir runs");
        succeeded(&done);
        place
    }

    fn without_library(weir: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        // Everybody may enter.
        fs::set_permissions(&directory, Permissions::from_mode(0o755)).expect("it is ours");
        let weir = directory.path().join(weir);
        fs::create_dir_all(weir.parent().expect("a directory")).expect("a directory");
        link(Path::new(env!("CARGO_BIN_EXE_weir")), &weir);
        fs::create_dir(directory.path().join("tmp")).expect("a directory");
        Self { directory, weir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn weir(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.weir);
        command.args(args).env_remove("LD_LIBRARY_PATH").env("TMPDIR", self.path("tmp")).env("LC_ALL", "C");
        command
    }

    /// Runs a program by `weir run`.
    fn run(&self, program: &[&str]) -> Output {
        self.weir(&["run", "--"]).args(program).output().expect("weir runs")
    }

    /// The temporary directories that are there.
    fn temporary(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("tmp")).expect("a directory");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}

/// cargo builds it next to the tests.
fn built_library() -> PathBuf {
    let library = std::env::current_exe().expect("this program").with_file_name("libweir_pcap.so");
    assert!(library.exists(), "cargo has not built {}", library.display());
    library
}

/// A link, if both are in one file system: they are large.
fn link(from: &Path, to: &Path) {
    fs::hard_link(from, to).unwrap_or_else(|_| copy(from, to));
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    stdout(output)
}

/// Fails unless weir has failed with this status, and has said this.
fn failed(output: &Output, status: i32, parts: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    for part in parts {
        assert!(text.contains(part), "should say `{part}`: {text}");
    }
}

#[test]
fn programs_run_with_the_installed_library() {
    let place = Place::installed();
    let lib = place.path("lib/weir");
    let show = r#"printf %s "$LD_LIBRARY_PATH""#;
    assert_eq!(succeeded(&place.run(&["sh", "-c", show])), lib.display().to_string());
    let mut after_another = place.weir(&["run", "sh", "-c", show]);
    let shown = succeeded(&after_another.env("LD_LIBRARY_PATH", "/a:/b").output().expect("weir runs"));
    assert_eq!(shown, format!("{}:/a:/b", lib.display()));
    assert!(succeeded(&place.run(&["tcpdump", "--version"])).contains(OURS));
    let system = Command::new("tcpdump").args(["-nr", FILE]).env("LC_ALL", "C").output().expect("tcpdump");
    let ours = place.run(&["tcpdump", "-nr", FILE]);
    let lines = succeeded(&system);
    assert!(lines.lines().count() > 10, "{lines}");
    assert_eq!(succeeded(&ours), lines);
    assert!(place.temporary().is_empty(), "{:?}", place.temporary());
}

/// Waits until the helper has deleted the directory of a program that has ended.
fn none_left(place: &Place) {
    until("no directory", || match place.temporary() {
        there if there.is_empty() => Ok(()),
        there => Err(format!("{there:?}")),
    });
}

#[test]
fn a_temporary_directory_lives_as_long_as_the_program() {
    let place = Place::built();
    assert!(succeeded(&place.run(&["tcpdump", "--version"])).contains(OURS));
    none_left(&place);
    let mut waits =
        place.weir(&["run", "sh", "-c", r#"echo "$LD_LIBRARY_PATH"; ls "$LD_LIBRARY_PATH"; read x"#]);
    let waits = waits.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir runs");
    until("one directory", || match place.temporary() {
        there if there.len() == 1 => Ok(()),
        there => Err(format!("{there:?}")),
    });
    let there = place.temporary();
    // Its standard input ends.
    let output = waits.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    let mut names = NAMES;
    names.sort_unstable();
    assert_eq!(stdout(&output), format!("{}\n{}\n", there[0].display(), names.join("\n")));
    none_left(&place);
}

/// Also without an installation, where another process waits for the end.
#[test]
fn weir_becomes_the_program() {
    for place in [Place::installed(), Place::built()] {
        assert_eq!(place.run(&["sh", "-c", "exit 7"]).status.code(), Some(7));
        assert_eq!(place.run(&["sh", "-c", "kill -KILL $$"]).status.signal(), Some(9));
        // What a process has of its own: no child, no descriptor, no signal more or less.
        let sees = "cat /proc/self/status | grep -E '^(Sig(Blk|Ign|Cgt)|Cap|NoNew|Seccomp)'
            read children </proc/$$/task/$$/children; echo \"children: $children\"; ls /proc/self/fd; ps -o pgid= -o sid= -p $$; pwd; umask";
        let mut without = Command::new("sh");
        let without = without.args(["-c", sees]).env("LC_ALL", "C").output().expect("sh");
        assert_eq!(succeeded(&place.run(&["sh", "-c", sees])), succeeded(&without));
        // Ignored and blocked signals are inherited, as from a shell.
        let odd = ["--ignore-signal=PIPE,USR2", "--block-signal=USR1,PIPE"];
        let set = |command: &mut Command| {
            let output = command.args(["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]).output();
            succeeded(&output.expect("env"))
        };
        let inherited = set(Command::new("env").args(odd));
        // Bits of signals 13 and 10, and of 13 and 12.
        for (line, bits) in inherited.lines().zip([0x1200, 0x1800]) {
            let mask = line.split_whitespace().last().and_then(|mask| u64::from_str_radix(mask, 16).ok());
            assert_eq!(mask.map(|mask| mask & bits), Some(bits), "{inherited}");
        }
        let program = place.weir(&[]);
        assert_eq!(
            set(Command::new("env").args(odd).arg(program.get_program()).args(["run", "--"])),
            inherited
        );
        // Its process, which takes the signal.
        let mut traps =
            place.weir(&["run", "sh", "-c", "trap 'echo interrupted; exit 5' INT; echo $$; read x"]);
        let mut traps = traps.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("weir runs");
        let stdin = traps.stdin.take();
        let mut lines = BufReader::new(traps.stdout.take().expect("a pipe")).lines();
        let mut line = || lines.next().map(|line| line.expect("UTF-8"));
        // It says so behind the trap.
        assert_eq!(line(), Some(traps.id().to_string()));
        kill_process(Pid::from_child(&traps), Signal::INT).expect("it runs");
        assert_eq!(line().as_deref(), Some("interrupted"));
        assert_eq!((line(), traps.wait().expect("it ends").code()), (None, Some(5)));
        drop(stdin);
    }
}

#[test]
fn options_are_the_environment_of_the_library() {
    let place = Place::installed();
    let shows = ["--", "sh", "-c", "env | grep -E '^WEIR_(SOURCE|MODE|FORCE|CHUNKS|REPORT)=' | sort"];
    let all = ["run", "--source", "xdp+tc", "--mode", "exclusive", "--force", "--chunks", "9", "--report"];
    let shown = place.weir(&all).args(shows).env("WEIR_SOURCE", "tc").output().expect("weir runs");
    let shown = succeeded(&shown);
    let (before, rest) = shown.split_once("WEIR_REPORT=").expect("a report");
    let (report, after) = rest.split_once('\n').expect("a line");
    assert_eq!(before, "WEIR_CHUNKS=9\nWEIR_FORCE=1\nWEIR_MODE=exclusive\n");
    assert_eq!(after, "WEIR_SOURCE=xdp+tc\n");
    assert_eq!(report.split(':').filter_map(|part| part.parse::<u64>().ok()).count(), 3, "{report}");
    let plain = place.weir(&["run"]).args(shows).env_remove("WEIR_SOURCE").output();
    assert_eq!(succeeded(&plain.expect("weir runs")), "WEIR_SOURCE=auto\n");
    let kept = place.weir(&["run", "--mode", "pass"]).args(shows).env("WEIR_SOURCE", "tc").output();
    assert_eq!(succeeded(&kept.expect("weir runs")), "WEIR_MODE=pass\nWEIR_SOURCE=tc\n");
    failed(
        &place.weir(&["run", "--chunks", "1", "--", "true"]).output().expect("weir runs"),
        2,
        &["--chunks"],
    );
    // The program's own options are not weir's.
    assert_eq!(
        succeeded(&place.weir(&["run", "echo", "--source", "x"]).output().expect("weir runs")),
        "--source x\n"
    );
}

/// Whoever reads from the program sees that it has closed its output, although the helper is still there.
#[test]
fn no_helper_holds_the_programs_output() {
    let place = Place::built();
    let mut closes = place.weir(&["run", "sh", "-c", "echo all; exec >&- 2>&-; read x"]);
    closes.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut closes = closes.spawn().expect("weir runs");
    let mut shown = String::new();
    closes.stdout.take().expect("a pipe").read_to_string(&mut shown).expect("text");
    closes.stderr.take().expect("a pipe").read_to_string(&mut shown).expect("text");
    assert_eq!(shown, "all\n");
    assert_eq!(place.temporary().len(), 1, "it still runs");
    assert!(closes.try_wait().expect("a child").is_none());
    drop(closes.stdin.take());
    assert_eq!(closes.wait().expect("it ends").code(), Some(1));
}

#[test]
fn what_cannot_run_is_told() {
    let place = Place::built();
    failed(&place.run(&["no-such-program"]), 127, &["cannot run no-such-program: no such program"]);
    failed(&place.run(&["/no/such/program"]), 127, &["cannot run /no/such/program: no such program"]);
    failed(&place.run(&["/etc/passwd"]), 126, &["cannot run /etc/passwd: Permission denied"]);
    let mut nowhere = place.weir(&["run", "true"]);
    let nowhere = nowhere.env("TMPDIR", "/proc/no").output().expect("weir runs");
    failed(&nowhere, 1, &["cannot create /proc/no/weir-libpcap-", "hint: set TMPDIR"]);
    none_left(&place);
    let place = Place::without_library("bin/weir");
    for command in [&["run", "true"][..], &["libpcap", "/tmp/never"]] {
        let output = place.weir(command).output().expect("weir runs");
        let (installed, built) = (place.path("lib/weir/libweir_pcap.so"), place.path("bin/libweir_pcap.so"));
        let places = format!("neither {} nor {} exists", installed.display(), built.display());
        failed(&output, 1, &[&places, "hint: run `cargo build --release -p weir-pcap`", "Debian package"]);
    }
}

#[test]
fn the_library_is_installed_under_its_names() {
    let place = Place::built();
    let lib = place.path("a b/lib");
    let install = |place: &Place| place.weir(&["libpcap"]).arg(&lib).output().expect("weir runs");
    assert_eq!(succeeded(&install(&place)), "");
    let mut there: Vec<_> =
        fs::read_dir(&lib).expect("a directory").map(|file| file.expect("a file").file_name()).collect();
    there.sort();
    let links = ["libpcap.so", "libpcap.so.0.8", "libpcap.so.1"];
    assert_eq!(there, [&["include", "libpcap.pc"][..], &links, &["libweir_pcap.so"]].concat());
    let file = lib.join("libweir_pcap.so");
    assert!(fs::read(&file).expect("a file") == fs::read(built_library()).expect("a file"));
    // A program that has the old file mapped keeps it: the new one is another file.
    let (old, number) = (fs::File::open(&file).expect("a file"), file.metadata().expect("a file").ino());
    succeeded(&install(&place));
    assert_ne!(file.metadata().expect("a file").ino(), number);
    assert!(old.metadata().expect("a file").len() > 0);

    // Programs compiled with its pkg-config file use it, wherever it has been moved.
    let moved = place.path("moved here");
    fs::rename(place.path("a b/lib"), &moved).expect("both are ours");
    let source = place.path("version.c");
    // It has WinPcap's extensions, too.
    let text = "#include <weir/win32-extensions.h>\n#include <stdio.h>\n\
                int main(void) { return pcap_setmode(NULL, MODE_STAT) == 0 || puts(pcap_lib_version()) < 0; }\n";
    fs::write(&source, text).expect("a file");
    let build =
        r#"eval cc -o version version.c $(pkg-config --cflags --libs 'libpcap >= 1.10') && exec ./version"#;
    let mut sh = Command::new("sh");
    sh.args(["-c", build]).current_dir(place.directory.path()).env_remove("LD_LIBRARY_PATH");
    let output = sh.env("PKG_CONFIG_PATH", &moved).output().expect("sh");
    assert_eq!(succeeded(&output), format!("{OURS}\n"));
}

/// Nothing that somebody has planted in the directory leads elsewhere.
#[test]
fn no_link_in_the_directory_is_followed() {
    let place = Place::installed();
    let (dir, victim, elsewhere) = (place.path("lib"), place.path("victim"), place.path("elsewhere"));
    fs::write(&victim, "as it was").expect("a file");
    for directory in [&dir, &elsewhere] {
        fs::create_dir_all(directory).expect("a directory");
    }
    let run = |names: &str, command: &str| {
        let plant = format!("for name in {names}; do ln -s \"$3\" \"$2/$name\" || exit 9; done");
        // weir has the shell's process ID.
        let script = format!("{plant}; exec \"$1\" {command} \"$2\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh"]).arg(place.weir(&[]).get_program()).args([&dir, &victim]);
        let output = shell.output().expect("a shell");
        assert_eq!(fs::read_to_string(&victim).expect("a file"), "as it was", "{command}");
        output
    };
    succeeded(&run("libweir_pcap.so.$$.new libpcap.so.$$.new libpcap.pc libpcap.pc.$$.new", "libpcap"));
    assert!(fs::symlink_metadata(dir.join("libpcap.pc")).expect("it is there").is_file());
    succeeded(&run("weir.1 weir-read.1.$$.new weir-filter.7", "manual"));
    assert!(fs::symlink_metadata(dir.join("weir.1")).expect("it is there").is_file());
    for below in ["include/weir", "include"] {
        let planted = dir.join(below);
        fs::remove_dir_all(&planted).expect("it is there");
        symlink(&elsewhere, &planted).expect("a link");
        failed(&run("", "libpcap"), 1, &["is a link or a file there"]);
        assert_eq!(fs::read_dir(&elsewhere).expect("a directory").count(), 0, "{below}");
        fs::remove_file(&planted).expect("the link");
        fs::create_dir_all(dir.join("include/weir")).expect("a directory");
    }
}

#[test]
fn another_libpcap_stays() {
    let place = Place::built();
    let install = || place.weir(&["libpcap"]).arg(place.path("lib")).output().expect("weir runs");
    fs::create_dir(place.path("lib")).expect("a directory");
    let theirs = place.path("lib/libpcap.so.1");
    symlink("libpcap.so.1.10.3", &theirs).expect("a link");
    failed(&install(), 1, &["libpcap.so.1: another libpcap is there", "hint: choose a directory of its own"]);
    fs::remove_file(&theirs).expect("a file");
    fs::write(&theirs, "theirs").expect("a file");
    failed(&install(), 1, &["libpcap.so.1: another libpcap is there"]);
    assert_eq!(fs::read_dir(place.path("lib")).expect("a directory").count(), 1);
    fs::remove_file(&theirs).expect("a file");
    succeeded(&install());
    let mut nowhere = place.weir(&["libpcap", "/proc/no"]);
    failed(&nowhere.output().expect("weir runs"), 1, &["cannot write libpcap to /proc/no: "]);
}

/// Programs for which the loader ignores the library are refused, unless it does not ignore it.
#[root_test]
fn root_programs_with_privileges_are_refused() {
    let place = Place::installed();
    let tcpdump = place.path("tcpdump");
    copy(Path::new("/usr/bin/tcpdump"), &tcpdump);
    let name = tcpdump.to_str().expect("UTF-8").to_owned();
    let script = place.path("script");
    fs::write(&script, format!("#!{name} --version\n")).expect("a file");
    fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("it is ours");
    let run = |program: &Path, user: u32| {
        let mut command = place.weir(&["run", "--"]);
        command.arg(program).arg("--version").current_dir("/").uid(user).gid(user);
        command.output().expect("weir runs")
    };
    let expect = |user: u32, reason: &str| {
        let hint = if user == 0 { "hint: run a copy" } else { "hint: run weir itself as root" };
        // What the loader does, without weir in between.
        let mut alone = Command::new(&tcpdump);
        alone.arg("--version").current_dir("/").env("LD_LIBRARY_PATH", place.path("lib/weir"));
        let alone = succeeded(&alone.uid(user).gid(user).output().expect("tcpdump"));
        for program in [&tcpdump, &script] {
            let output = run(program, user);
            if reason.is_empty() {
                assert!(alone.contains(OURS), "{alone}");
                let ran = [output.stdout, output.stderr].concat();
                assert!(String::from_utf8_lossy(&ran).contains(OURS), "{user}: {program:?}");
            } else {
                assert!(!alone.contains(OURS), "{alone}");
                failed(&output, 126, &[&format!("it {reason}, so"), hint]);
            }
        }
    };
    expect(NOBODY, "");
    let mode = |mode| fs::set_permissions(&tcpdump, Permissions::from_mode(mode)).expect("it is ours");
    mode(0o4755);
    expect(NOBODY, "is setuid");
    expect(0, "");
    chown(&tcpdump, None, Some(1)).expect("root may");
    mode(0o2755);
    expect(NOBODY, "is setgid");
    expect(0, "is setgid");
    mode(0o755);
    let setcap = Command::new("setcap").arg("cap_net_raw+ep").arg(&tcpdump).status().expect("setcap");
    assert!(setcap.success());
    expect(NOBODY, "has file capabilities");
    expect(0, "");
}

/// weir's own privileges do not get to the program.
#[root_test]
fn root_file_capabilities_of_weir_are_not_passed_on() {
    let place = Place::built();
    // Not of the file that cargo has built.
    fs::remove_file(&place.weir).expect("a link");
    copy(Path::new(env!("CARGO_BIN_EXE_weir")), &place.weir);
    let caps = "cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon+ep";
    let setcap = Command::new("setcap").arg(caps).arg(&place.weir).status().expect("setcap");
    assert!(setcap.success());
    let mut command =
        place.weir(&["run", "sh", "-c", "grep ^Cap[IPEA] /proc/self/status; tcpdump --version"]);
    let output = command.current_dir("/").uid(NOBODY).gid(NOBODY).output().expect("weir runs");
    let shown = succeeded(&output);
    assert_eq!(shown.matches("\t0000000000000000\n").count(), 4, "{shown}");
    assert!(shown.contains(OURS), "{shown}");
}

#[root_test]
fn root_tcpdump_captures() {
    let place = Place::built();
    let network = network();
    let mut command = place.weir(&["run", "--", "tcpdump", "-i", "rx0", "-n", "-c", "7", "--immediate-mode"]);
    let running = Running::spawn(&network, &mut command);
    running.wait_for("listening on rx0");
    send(&network, 7);
    let ended = running.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(String::from_utf8_lossy(&ended.stdout).lines().count(), 7, "{}", ended.stderr);
    assert!(ended.stderr.contains("7 packets captured"), "{}", ended.stderr);
    // tshark parses what dumpcap, which captures for it, prints on standard error.
    let mut command = place.weir(&["run", "--report", "--", "tshark", "-i", "rx0", "-n", "-c", "7", "-w"]);
    let running = Running::spawn(&network, command.arg(place.path("t.pcapng")));
    running.wait_for("Capture started");
    send(&network, 7);
    let ended = running.wait();
    assert!(ended.status.success(), "{}", ended.stderr);
    let lines: Vec<_> = ended.stderr.lines().filter(|line| line.starts_with("weir: rx0: ")).collect();
    assert!(matches!(&lines[..], [line] if line.contains(" lost 0, ")), "{}", ended.stderr);
    assert!(ended.stderr.contains("7 packets captured"), "{}", ended.stderr);
    // Exclusive mode is refused where the program opens an interface with addresses.
    let mut ip = Command::new("ip");
    let added = Running::spawn(&network, ip.args(["address", "add", "192.0.2.5/24", "dev", "rx0"])).wait();
    assert!(added.status.success(), "{}", added.stderr);
    let exclusive = |options: &[&str], device: &str| {
        let program = ["--", "tcpdump", "-i", device, "-n", "-c", "7"];
        Running::spawn(&network, &mut place.weir(&[&["run"], options, &program].concat()))
    };
    let all = ["--source", "xdp", "--mode", "exclusive"];
    for (options, device) in [(&all[..], "rx0"), (&all[2..], "rx0"), (&[][..], "xdp!:rx0")] {
        let ended = exclusive(options, device).wait();
        let why = "cannot use exclusive mode on rx0: this host would lose its traffic for 192.0.2.5; try";
        assert!(!ended.status.success() && ended.stderr.contains(why), "{options:?}: {}", ended.stderr);
    }
    let running = exclusive(&["--force"], "xdp!:rx0");
    running.wait_for("listening on xdp!:rx0");
    send(&network, 7);
    let ended = running.wait();
    assert!(ended.stderr.contains("7 packets captured"), "{}", ended.stderr);
}
