//! `weir capture` on many interfaces: what they have in common, how they start, and how much memory they take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Network, root_test};

use crate::harness::{Ended, Running, directory, network, output, path, until, weir};

/// Interfaces `many0`, `many1`, ... for as many captures as a host with few processors has memory for.
fn many_interfaces(network: &Network) -> Vec<String> {
    let processors = thread::available_parallelism().expect("processors").get();
    let names: Vec<_> = (0..(80 / processors).clamp(2, 40)).map(|number| format!("many{number}")).collect();
    let directory = directory();
    let (batch, up) =
        (path(&directory, "batch"), |name| format!("link add {name} up type veth peer {name}peer\n"));
    fs::write(&batch, names.iter().map(up).collect::<String>()).expect("room");
    output(network, Command::new("ip").args(["-batch", &batch]));
    names
}

/// `weir capture` on all of them.
fn on_all<'a>(interfaces: &'a [String], args: &[&'a str]) -> Vec<&'a str> {
    let named = interfaces.iter().flat_map(|name| ["-i", name]);
    ["capture", "--source", "tc", "--json"].into_iter().chain(named).chain(args.iter().copied()).collect()
}

/// Starts weir and interrupts it before everything is open. On a machine that is busy it may hear of it later.
fn interrupted_early(network: &Network, args: &[&str]) -> Ended {
    let once = |_| {
        let running = Running::spawn_with_memory(network, &mut weir(args), "it is told how much");
        until("a process that catches signals", || {
            let status = fs::read_to_string(format!("/proc/{}/status", running.id())).expect("it runs");
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
            let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
            // The last that it prepares for.
            if caught & 1 << (Signal::USR2.as_raw() - 1) == 0 { Err(status) } else { Ok(()) }
        });
        let ended = running.interrupt();
        assert_eq!(ended.account().0["stopped_by"], "signal");
        ended.stderr.contains("interrupted with ").then_some(ended)
    };
    (0..10).find_map(once).expect("one of them was interrupted before all were open")
}

/// The bytes that a capture tells of, of which each interface tells its part.
fn memory_taken(account: &Value, interfaces: usize) -> u64 {
    let each = account["interfaces"].as_array().expect("interfaces").iter();
    let each: Vec<_> = each.map(|one| one["memory"].as_u64().expect("bytes")).collect();
    assert_eq!(each.len(), interfaces);
    assert_eq!(account["memory"].as_u64(), Some(each.iter().sum()));
    each.iter().sum()
}

#[root_test]
fn root_many_interfaces_take_no_more_memory_than_they_are_given() {
    let network = network();
    let interfaces = many_interfaces(&network);
    let mut command = weir(&on_all(&interfaces, &["--memory", "128MiB", "-v"]));
    let running = Running::spawn_with_memory(&network, &mut command, "it is told how much");
    running.wait_until_open();
    let ended = running.interrupt().succeeded();
    let account = ended.account().0;
    let taken = memory_taken(&account, interfaces.len());
    assert!(taken <= 128 << 20 && taken > 64 << 20, "{taken}");
    // They have the order of the command line, although several are opened at a time.
    let named = account["interfaces"].as_array().expect("interfaces").iter().map(|one| &one["name"]);
    assert!(named.eq(&interfaces), "{account}");
    assert!(ended.stderr.contains("Memory: 1") || ended.stderr.contains("Memory: 9"), "{}", ended.stderr);

    // What is the same for all of them is told once.
    let many = interfaces.len();
    if many >= 4 {
        let all = format!("many0 to many{} ({many} interfaces)", many - 1);
        for line in [format!("{all}: tcx ingress and egress, "), format!("notice: {all} have no carrier: ")] {
            assert!(ended.stderr.contains(&line), "`{line}`: {}", ended.stderr);
        }
        assert!(ended.stderr.lines().all(|line| !line.contains("many1 ")), "{}", ended.stderr);
    }

    // A signal ends the start, too.
    let ended = interrupted_early(&network, &on_all(&interfaces, &["--memory", "128MiB"])).succeeded();
    assert_eq!(ended.account().number("captured"), 0, "{}", ended.stderr);
    let after = "nothing was captured\n0 packets captured\n0 packets received by filter\n";
    assert!(ended.stderr.contains(after), "{}", ended.stderr);
    let directory = directory();
    let file = path(&directory, "a.pcapng");
    let ended = interrupted_early(&network, &on_all(&interfaces, &["--memory", "128MiB", "-w", &file]));
    let said = format!("weir: cannot begin {file}: interrupted with ");
    assert!(ended.status.code() == Some(1) && ended.stderr.contains(&said), "{}", ended.stderr);
    let error = ended.account().0["error"].to_string();
    assert!(error.contains(&said["weir: ".len()..]), "{error}");
    let counting: Vec<_> = on_all(&interfaces, &[]).into_iter().skip(1).collect();
    let ended = interrupted_early(&network, &[&["stat"], &counting[..]].concat()).succeeded();
    assert!(ended.stderr.ends_with("interfaces open: nothing was counted\n"), "{}", ended.stderr);

    let mut command = weir(&on_all(&interfaces, &["--memory", "8MiB"]));
    let ended = Running::spawn_with_memory(&network, &mut command, "it is refused").wait();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    let said = format!("cannot capture on {} interfaces: ", interfaces.len());
    assert!(ended.stderr.contains(&said) && ended.stderr.contains("try --memory "), "{}", ended.stderr);
}

/// A control group that may have so much memory. Who is in it has ended before this is dropped.
struct ControlGroup(PathBuf);

impl ControlGroup {
    /// `None`: this machine's groups have no such limit.
    fn with_memory(bytes: u64) -> Option<Self> {
        let roots = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.procs").exists())?;
        let group = Self(root.join(format!("weir-test-{}", std::process::id())));
        fs::create_dir(&group.0).ok()?;
        let limit = ["memory.limit_in_bytes", "memory.max"].map(|file| group.0.join(file));
        fs::write(limit.iter().find(|file| file.exists())?, bytes.to_string()).ok()?;
        Some(group)
    }

    /// The program in it, which sees it, too: those in a private network have a `/sys` of their own.
    fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.args(["-m", "-t", &std::process::id().to_string(), "sh", "-c"]);
        inside.arg(r#"echo $$ > "$0/cgroup.procs" && exec "$@""#).arg(&self.0);
        inside.arg(command.get_program()).args(command.get_args());
        inside
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Who was in it may take a moment to be gone.
        until("an empty group", || fs::remove_dir(&self.0).map_err(|error| error.to_string()));
    }
}

#[root_test]
fn root_a_capture_keeps_to_an_eighth_of_what_its_control_group_has() {
    let Some(group) = ControlGroup::with_memory(1 << 30) else {
        return weir_skip::unless_required(
            "root_a_capture_keeps_to_an_eighth_of_what_its_control_group_has",
            "no control group can be given a limit of memory",
        );
    };
    let network = network();
    let interfaces = many_interfaces(&network);
    let mut command = group.command(&weir(&on_all(&interfaces, &[])));
    let running = Running::spawn_with_memory(&network, &mut command, "its group has no more");
    running.wait_until_open();
    let ended = running.interrupt().succeeded();
    let taken = memory_taken(&ended.account().0, interfaces.len());
    assert!(taken <= 128 << 20 && taken > 32 << 20, "{taken}");

    // What is asked for is judged as a whole, before any of it is taken.
    let mut command = group.command(&weir(&on_all(&interfaces, &["-B", "64MiB"])));
    let ended = Running::spawn_with_memory(&network, &mut command, "it is refused").wait();
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    let parts = ["cannot capture on ", "of which 256 MiB is kept in reserve", "hint: try -B "];
    parts.iter().for_each(|part| assert!(ended.stderr.contains(part), "`{part}`: {}", ended.stderr));
}
