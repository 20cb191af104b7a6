//! What is left of `weir guard` when it has ended, however that happens.

use std::{fs, thread};

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Generator, Network, Traffic, root_test};

use crate::guard::{programs, received};
use crate::harness::{Ended, Mounts, Running, directory, generate, network, path, send, until};

/// A network, a bpffs, and files with rules.
struct Lab {
    network: Network,
    bpffs: Mounts,
    directory: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let bpffs = Mounts::with("mount -t bpf bpf /sys/fs/bpf");
        let lab = Self { network: network(), bpffs, directory: directory() };
        for (name, rules) in [("block", "lab: udp dst port 9 -> block\n"), ("pass", "lab: udp -> pass\n")] {
            fs::write(lab.file(name), rules).expect("a file");
        }
        lab
    }

    fn file(&self, name: &str) -> String {
        path(&self.directory, name)
    }

    /// Starts `weir guard` with the rules of a file.
    fn guard(&self, rules: &str, args: &[&str]) -> Running {
        let file = self.file(rules);
        let always = ["guard", "-i", "rx0", "--json", "--no-control", "--rules", &file];
        let running = Running::spawn(&self.network, &mut self.bpffs.weir(&[&always[..], args].concat()));
        running.wait_until_open();
        running
    }

    /// Runs weir to its end.
    fn weir(&self, args: &[&str]) -> Ended {
        Running::spawn(&self.network, &mut self.bpffs.weir(args)).wait()
    }

    fn list(&self) -> Vec<Value> {
        let listed = self.weir(&["guard", "--list", "--json"]).succeeded();
        let listed: Value = serde_json::from_slice(&listed.stdout).expect("an object");
        listed["guards"].as_array().expect("an array").clone()
    }

    /// Fails if the stack gets a frame of these.
    fn nothing_passes(&self, frames: u64) {
        let before = received(&self.network.pair().rx.netns);
        send(&self.network, frames);
        assert_eq!(received(&self.network.pair().rx.netns), before, "nothing got to the stack");
    }

    fn all_pass(&self, frames: u64) {
        let before = received(&self.network.pair().rx.netns);
        send(&self.network, frames);
        until("frames in the stack", || match received(&self.network.pair().rx.netns) - before {
            some if some >= frames => Ok(()),
            fewer => Err(fewer.to_string()),
        });
    }
}

#[root_test]
fn root_rules_that_stay_are_in_force_after_kill_9_and_taken_over_without_a_gap() {
    const ALL: u64 = 20_000;
    let lab = Lab::new();
    let network = &lab.network;
    let closed = |source: &str| lab.guard("block", &["--on-exit", "closed", "--source", source]);
    let killed = |running: Running| {
        running.signal(Signal::KILL);
        assert_eq!(running.wait().status.code(), None, "it was killed");
    };
    let running = closed("xdp");
    running.wait_for("on exit: the rules stay in force; to take them off: weir guard --end -i rx0");
    // Nobody takes the rules of one that is running.
    let refused = ["guard", "-i", "rx0", "--rules", &lab.file("block"), "--on-exit", "closed"];
    lab.weir(&refused).failed(&["a running guard keeps its rules in force on `rx0`"]);
    lab.weir(&["guard", "--end", "-i", "rx0"]).failed(&["a running guard keeps its rules in force"]);
    killed(running);
    lab.nothing_passes(100);
    assert_eq!(programs(network), 2);

    // The same hooks, others, fewer, and the first again, while packets come.
    let before = received(&network.pair().rx.netns);
    thread::scope(|scope| {
        let sent = scope.spawn(|| {
            let traffic = Traffic::new(60).expect("size").between(network.pair());
            let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
            (0..ALL / 1000).for_each(|_| generate(&mut generator, network.pair(), 1000));
        });
        for (source, signal) in [("xdp", Signal::KILL), ("tc", Signal::INT), ("auto", Signal::KILL)] {
            let running = closed(source);
            running.wait_for("which take over from those left in force");
            running.signal(signal);
            let ended = running.wait();
            if signal == Signal::INT {
                assert_eq!(ended.account().0["stays_in_force"], true);
                assert!(ended.stderr.contains("the rules stay in force on rx0"), "{}", ended.stderr);
            }
        }
        sent.join().expect("no panic");
    });
    assert_eq!(received(&network.pair().rx.netns), before, "no packet met no rules");
    assert_eq!(programs(network), 2);
    let [one] = &lab.list()[..] else { panic!("one: {:?}", lab.list()) };
    let told = [&one["interface"], &one["received"], &one["sent"], &one["dead"]];
    assert_eq!(told, [&Value::from("rx0"), &true.into(), &true.into(), &false.into()]);

    let path = one["path"].as_str().expect("a path");
    let devices = String::from_utf8(lab.weir(&["devices", "rx0"]).succeeded().stdout).expect("text");
    let words: Vec<&str> = devices.split_whitespace().collect();
    assert!(
        words.join(" ").contains(&format!("to take its rules off: weir guard --end -i {path}")),
        "{devices}"
    );

    // A dry run takes nothing over.
    lab.guard("pass", &["--dry-run"]).interrupt().succeeded();
    lab.nothing_passes(100);
    let ended = lab.weir(&["guard", "--end", "-i", path]).succeeded();
    assert!(ended.stderr.contains("the rules are off"), "{}", ended.stderr);
    assert_eq!((programs(network), lab.list()), (0, Vec::new()));
    lab.all_pass(5);
    lab.weir(&["guard", "--end", "-i", "rx0"]).failed(&["no rules were left in force on `rx0`"]);
    lab.weir(&["guard", "--end", "-i", "rx7"]).failed(&["no interface named `rx7`", "weir guard --list"]);
}

#[root_test]
fn root_rules_on_trial_give_way_to_those_that_were_left_in_force() {
    let lab = Lab::new();
    lab.guard("block", &["--on-exit", "closed"]).interrupt().succeeded();
    let trial = |time| lab.guard("pass", &["--on-exit", "closed", "--confirm", time]);
    let ended = trial("1ms").wait();
    assert_eq!(ended.status.code(), Some(4), "{}", ended.stderr);
    assert!(ended.stderr.contains("those before are in force again"), "{}", ended.stderr);
    lab.nothing_passes(100);
    let elsewhere = ["guard", "-i", "rx0", "-Q", "in", "--confirm", "1h", "--rules", &lab.file("pass")];
    lab.weir(&elsewhere).failed(&["cannot try these rules", "use the same source and direction"]);

    let running = trial("1h");
    running.wait_for("confirm within");
    running.signal(Signal::USR1);
    running.wait_for("confirmed: the rules stay in force");
    running.interrupt().succeeded();
    lab.all_pass(100);

    // One that does not stay takes over, too, and nothing is left.
    let open = lab.guard("block", &[]);
    open.wait_for("which take over from those left in force");
    open.wait_for("on exit: the rules are off, and those that were left in force do not return");
    lab.nothing_passes(100);
    open.interrupt().succeeded();
    assert_eq!((programs(&lab.network), lab.list()), (0, Vec::new()));
    // What nobody has confirmed does not stay, even if it was to.
    assert_eq!(trial("1ms").wait().status.code(), Some(4));
    assert_eq!((programs(&lab.network), lab.list()), (0, Vec::new()));
}
