//! `weir forward` on real interfaces: what it tells, and what is left of it however it ends.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use weir_lab::{Action, FrameSender, Hook, LinkCounters, Network, Traffic, Veth, root_test};

use crate::harness::{self, Ended, Mounts, Running, directory, path, softirqs_end, tshark, until, weir};
use crate::namespaces::inside;

/// Two pairs, whose receiving ends can be joined.
fn lab() -> Network {
    let mut network = Network::new(Veth::default()).expect("a private network");
    network.connect(Veth::default()).expect("a second pair");
    network
}

/// A bpffs of the test's own.
fn with_bpffs() -> Mounts {
    Mounts::with("mount -t bpf bpf /sys/fs/bpf")
}

fn start(network: &Network, command: &mut Command) -> Running {
    let running = Running::spawn(network, command);
    running.wait_for("on exit: ");
    running
}

/// Sends numbered frames into the first pair; how many came out of the second.
fn send(network: &Network, frames: u64) -> u64 {
    let [_, out, ..] = network.pairs() else { panic!("two pairs") };
    let hook = Hook::attach(&out.tx, Action::Drop).expect("a program");
    let counters = || LinkCounters::read(&out.tx).expect("counters");
    let before = counters();
    harness::send(network, frames);
    // Behind all that was forwarded comes one that was not, known by its length.
    let last = Traffic::new(1514).expect("size").frame(0);
    FrameSender::new(&out.rx).and_then(|sender| sender.send(&last)).expect("a frame");
    until("the last frame", || {
        let now = counters();
        let (packets, bytes) = (now.rx_packets - before.rx_packets, now.rx_bytes - before.rx_bytes);
        if bytes > 60 * packets + 1000 { Ok(()) } else { Err(format!("{packets} packets, {bytes} bytes")) }
    });
    softirqs_end();
    hook.packets() - 1
}

/// The account, whose sums close.
fn account(ended: &Ended) -> Value {
    let account: Value =
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|e| panic!("{e}: {}", ended.stderr));
    let number =
        |value: &Value, field: &str| value[field].as_u64().unwrap_or_else(|| panic!("{field}: {value}"));
    let parts = ["directions", "queues"].map(|field| account[field].as_array().expect("an array"));
    for part in parts {
        for field in ["seen", "filtered", "forwarded", "lost", "bytes"] {
            let sum: u64 = part.iter().map(|part| number(part, field)).sum();
            assert_eq!(sum, number(&account, field), "{field}: {account}");
        }
    }
    for one in std::iter::once(&account).chain(parts.into_iter().flatten()) {
        let of = |field| number(one, field);
        assert_eq!(of("lost"), of("no_room") + of("too_long") + of("unable") + of("errors"), "{one}");
        assert_eq!(of("seen"), of("filtered") + of("forwarded") + of("lost") + of("in_flight"), "{one}");
    }
    account
}

/// What `ip` tells of the receiving ends.
fn links(network: &Network) -> String {
    let output = network.rx().run(|| Command::new("ip").args(["-d", "link", "show"]).output());
    String::from_utf8(output.expect("ip runs").stdout).expect("text")
}

fn is_as_before(network: &Network) -> bool {
    let links = links(network);
    !links.contains("xdp") && !links.contains("PROMISC") && links.matches("promiscuity 0 ").count() >= 3
}

#[root_test]
fn root_each_way_has_its_account() {
    let network = lab();
    let running = start(&network, &mut weir(&["forward", "rx0", "rx1", "--both", "--json", "-v", "udp"]));
    running.wait_for("confined: no capabilities, no new privileges; writes no files");
    assert!(links(&network).matches("promiscuity 1 ").count() == 2, "{}", links(&network));
    assert_eq!(send(&network, 1000), 1000);
    running.signal(Signal::USR1);
    running.wait_for("rx0 -> rx1");
    let ended = running.interrupt().succeeded();
    let account = account(&ended);
    assert_eq!(
        (&account["seen"], &account["forwarded"], &account["bytes"]),
        (&1000.into(), &1000.into(), &60_000.into())
    );
    assert_eq!((&account["stopped_by"], &account["goes_on"]), (&"signal".into(), &Value::Null));
    let directions: Vec<(&str, u64)> = account["directions"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|direction| {
            (direction["from"].as_str().expect("a name"), direction["forwarded"].as_u64().expect("a number"))
        })
        .collect();
    assert_eq!(directions, [("rx0", 1000), ("rx1", 0)]);
    assert!(ended.stderr.contains("Nothing lost (NIC 0, forwarding 0)"), "{}", ended.stderr);
    assert!(is_as_before(&network), "{}", links(&network));
}

#[root_test]
fn root_what_could_not_be_forwarded_is_said_and_fails_who_asks_for_that() {
    let network = lab();
    let mtu = |mtu| {
        let mut command = Command::new("ip");
        let output = harness::output(&network, command.args(["link", "set", "rx1", "mtu", mtu]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let frame = Traffic::new(1514).expect("size").frame(0);
    for (more, status) in [(&[][..], 0), (&["--fail-on-loss"], 3)] {
        let args = [&["forward", "rx0", "rx1", "--json"], more].concat();
        mtu("1500");
        let running = start(&network, &mut weir(&args));
        mtu("1000");
        harness::send_each(network.pair(), &vec![frame.clone(); 5]);
        let ended = running.interrupt();
        assert_eq!(ended.status.code(), Some(status), "{}", ended.stderr);
        assert!(ended.stderr.contains("5 of 5 packets lost (NIC 0, forwarding 5)"), "{}", ended.stderr);
    }
}

#[root_test]
fn root_what_is_forwarded_is_in_a_file_as_well() {
    let (network, directory) = (lab(), directory());
    let file = path(&directory, "copy.pcapng");
    let args = ["forward", "rx0", "rx1", "--both", "--json", "-w", &file, "-s", "40", "udp"];
    let running = start(&network, &mut weir(&args));
    assert_eq!(send(&network, 1000), 1000);
    let ended = running.interrupt().succeeded();
    assert!(ended.stderr.contains(": 1,000 packets written, 0 lost"), "{}", ended.stderr);
    let copy = &account(&ended)["copy"];
    let counts = ["seen", "written", "lost", "errors"].map(|field| copy[field].as_u64());
    assert_eq!((counts, copy["file"].as_str()), ([1000, 1000, 0, 0].map(Some), Some(&*file)), "{copy}");
    let told = tshark(file.as_ref(), &["frame.interface_name", "frame.len", "frame.cap_len"]);
    assert_eq!(told, vec!["rx0\t60\t40"; 1000]);

    let run = |args: &[&str]| Running::spawn(&network, &mut weir(args)).wait();
    run(&["forward", "rx0", "rx1", "-w", "/dev/full"]).failed(&["no space left for /dev/full"]);
    let both = run(&["forward", "rx0", "rx1", "-w", &file, "--on-exit", "open"]);
    assert_eq!(both.status.code(), Some(2), "{}", both.stderr);
    assert!(both.stderr.contains("outlives the process"), "{}", both.stderr);
    assert!(is_as_before(&network), "{}", links(&network));
}

#[root_test]
fn root_a_disk_that_fills_up_ends_the_copy_and_not_the_forwarding() {
    let (network, directory) = (lab(), directory());
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", "mount -t tmpfs -o size=256k none $0 && cd $0 && exec \"$@\""]);
    command.arg(directory.path()).arg(env!("CARGO_BIN_EXE_weir"));
    let running = start(&network, command.args(["forward", "rx0", "rx1", "--json", "-w", "copy.pcapng"]));
    assert_eq!(send(&network, 10_000), 10_000);
    running.wait_for("the copy ends here, but forwarding continues: no space left for copy.pcapng");
    assert_eq!(send(&network, 100), 100);
    let account = account(&running.interrupt().failed(&["no space left for copy.pcapng"]));
    assert_eq!((&account["forwarded"], &account["lost"]), (&10_100.into(), &0.into()));
    let of = |field: &str| account["copy"][field].as_u64().unwrap_or_else(|| panic!("{field}: {account}"));
    assert!((1000..10_000).contains(&of("written")), "{account}");
    assert_eq!((of("seen"), of("lost") + of("errors")), (10_100, 10_100 - of("written")), "{account}");
}

#[root_test]
fn root_a_filter_is_exchanged_by_ctl() {
    let (network, directory) = (lab(), directory());
    let socket = path(&directory, "forward.sock");
    let running =
        start(&network, &mut weir(&["forward", "rx0", "rx1", "--json", "--control", &socket, "tcp"]));
    let ctl = |args: &[&str]| {
        let args = [&["ctl", args[0], "-t", &socket], &args[1..]].concat();
        let output = weir(&args).output().expect("weir runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(send(&network, 100), 0, "they are UDP");
    ctl(&["filter", "udp"]);
    running.wait_for("filter changed to `udp`");
    assert_eq!(send(&network, 200), 200);
    let status: Value = serde_json::from_str(&ctl(&["status"])).expect("JSON");
    assert_eq!(status["type"], "forward");
    let account = account(&running.interrupt().succeeded());
    assert_eq!((&account["filtered"], &account["forwarded"]), (&100.into(), &200.into()));
    assert_eq!(account["directions"][0]["filter"], "udp");
    assert!(!std::path::Path::new(&socket).exists());
}

#[root_test]
fn root_closed_is_closed_after_kill_9() {
    let network = lab();
    let running = start(&network, &mut weir(&["forward", "rx0", "rx1", "--both"]));
    running.wait_for("on exit: stops; packets then go to the host's stack");
    assert_eq!(send(&network, 100), 100);
    running.signal(Signal::KILL);
    assert_eq!(running.wait().status.code(), None, "it was killed");
    until("interfaces as they were", || if is_as_before(&network) { Ok(()) } else { Err(links(&network)) });
    assert_eq!(send(&network, 100), 0);
}

#[root_test]
fn root_open_goes_on_until_it_is_ended() {
    let (network, bpffs) = (lab(), with_bpffs());
    let forward = ["forward", "rx0", "rx1", "--both", "--on-exit", "open", "--json"];
    // With a filter, which lives in a map of programs, and without; killed, and ended by Ctrl-C.
    for (filter, end) in [(&["udp"][..], Signal::KILL), (&[], Signal::INT)] {
        let args = [&forward[..], filter].concat();
        let running = start(&network, &mut bpffs.weir(&args));
        running.wait_for("to end it: weir forward --end rx0 rx1");
        assert_eq!(send(&network, 1000), 1000);
        running.signal(end);
        let ended = running.wait();
        if end == Signal::INT {
            assert!(
                account(&ended)["goes_on"]
                    .as_str()
                    .is_some_and(|path| path.starts_with("/sys/fs/bpf/weir/forward-"))
            );
        }
        assert_eq!(send(&network, 2000), 2000, "it goes on");
        assert!(links(&network).matches("PROMISC").count() == 2, "{}", links(&network));

        let again = Running::spawn(&network, &mut bpffs.weir(&args)).wait();
        again.failed(&["the kernel already forwards from `rx0` to `rx1`", "weir forward --end rx0 rx1"]);
        assert_eq!(send(&network, 10), 10, "and is not disturbed by who is refused");

        let ended =
            Running::spawn(&network, &mut bpffs.weir(&["forward", "--end", "rx0", "rx1", "--json"])).wait();
        let account = account(&ended.succeeded());
        assert_eq!((&account["seen"], &account["forwarded"]), (&3010.into(), &3010.into()));
        assert!(is_as_before(&network), "{}", links(&network));
        assert_eq!(send(&network, 10), 0);
        let ended = Running::spawn(&network, &mut bpffs.weir(&["forward", "--end", "rx0", "rx1"])).wait();
        ended.failed(&["nothing is being forwarded from `rx0` to `rx1`"]);
    }
}

/// Begins to forward between these two until it is ended, with a process that has ended.
fn leave_open(bpffs: &Mounts, network: &Network, from: &str, to: &str) {
    let running = start(network, &mut bpffs.weir(&["forward", from, to, "--on-exit", "open"]));
    running.interrupt().succeeded();
}

#[root_test]
fn root_what_is_ended_is_what_goes_on_in_the_namespaces_that_are_named() {
    let (here, there, bpffs) = (lab(), lab(), with_bpffs());
    let inside = inside(&there);
    let [from, to] = ["rx0", "rx1"].map(|name| format!("{}/{name}", inside.id()));
    let end = |network: &Network, from: &str, to: &str| {
        Running::spawn(network, &mut bpffs.weir(&["forward", "--end", from, to, "--json"])).wait()
    };
    // By the names of another place nothing goes on here, and that place is looked into.
    leave_open(&bpffs, &here, "rx0", "rx1");
    end(&here, &from, &to).failed(&["nothing is being forwarded from", "another namespace"]);
    assert_eq!(send(&here, 100), 100, "what goes on here was not ended");

    leave_open(&bpffs, &here, &from, &to);
    assert_eq!(send(&there, 200), 200);
    assert_eq!(account(&end(&here, &from, &to).succeeded())["forwarded"], 200);
    assert_eq!((send(&here, 10), send(&there, 10)), (10, 0));
    assert!(is_as_before(&there), "{}", links(&there));
    assert_eq!(account(&end(&here, "rx0", "rx1").succeeded())["forwarded"], 110);
    assert!(is_as_before(&here), "{}", links(&here));
}

#[root_test]
fn root_what_goes_on_is_listed_and_ended_where_its_interface_is_gone() {
    let (network, bpffs) = (lab(), with_bpffs());
    let weir = |args: &[&str]| Running::spawn(&network, &mut bpffs.weir(args)).wait();
    let list = || {
        let list = weir(&["forward", "--list", "--json"]).succeeded().stdout;
        let list: Value = serde_json::from_slice(&list).expect("an object");
        list["forwards"].as_array().expect("an array").clone()
    };
    // What somebody else has put in the place of the directory is not trusted, but only pins need it.
    let open = ["forward", "rx0", "rx1", "--both", "--on-exit", "open"];
    let shell = |script: &str| {
        let status = bpffs.program("sh").args(["-c", script]).status().expect("a shell");
        assert!(status.success(), "{script}");
    };
    shell("mkdir /sys/fs/bpf/weir && chown 65534 /sys/fs/bpf/weir");
    for args in [&open[..], &["forward", "--list"]] {
        weir(args).failed(&["(of user ID 65534): it belongs to another user", "hint: see who", "-untrusted"]);
    }
    start(&network, &mut bpffs.weir(&["forward", "rx0", "rx1"])).interrupt().succeeded();
    shell("mv /sys/fs/bpf/weir /sys/fs/bpf/weir-untrusted");
    assert_eq!(list(), Vec::<Value>::new());
    let running = start(&network, &mut bpffs.weir(&open));
    running.interrupt().succeeded();
    assert_eq!(send(&network, 100), 100);
    let [one] = &list()[..] else { panic!("one: {:?}", list()) };
    assert_eq!((&one["from"], &one["to"], &one["both"]), (&"rx0".into(), &"rx1".into(), &true.into()));
    assert_eq!((&one["forwarded"], &one["lost"], &one["dead"]), (&100.into(), &0.into(), &false.into()));
    let path = one["path"].as_str().expect("a path");
    let devices = String::from_utf8(weir(&["devices", "rx0"]).succeeded().stdout).expect("text");
    let doctor = String::from_utf8(weir(&["doctor", "-i", "rx0", "--json"]).stdout).expect("text");
    assert!(doctor.contains(&format!("to end it: weir forward --end {path}")), "{doctor}");
    let words: Vec<&str> = devices.split_whitespace().collect();
    assert!(words.join(" ").contains(&format!("to end it: weir forward --end {path}")), "{devices}");

    // The second interface goes, with its other end, and the first stays promiscuous.
    let gone = network.rx().run(|| Command::new("ip").args(["link", "del", "rx1"]).status());
    assert!(gone.expect("ip runs").success());
    weir(&["forward", "--end", "rx0", "rx1"]).failed(&["no interface named `rx1`", "weir forward --list"]);
    let text = String::from_utf8(weir(&["forward", "--list"]).succeeded().stdout).expect("text");
    assert!(text.contains("which is gone: 100 packets forwarded, 0 lost; an interface is gone"), "{text}");
    assert!(text.contains(&format!("to end it: weir forward --end {path}")), "{text}");
    let ended = account(&weir(&["forward", "--end", path, "--json"]).succeeded());
    assert_eq!(ended["forwarded"], 100);
    assert!(list().is_empty() && !links(&network).contains("PROMISC"), "{}", links(&network));
    weir(&["forward", "--end", path]).failed(&["no forwarding named"]);
}

#[root_test]
fn root_where_no_bpffs_is_seen_that_is_said() {
    let network = lab();
    let hidden = Mounts::with("umount -q /sys/fs/bpf; true");
    for args in [&["forward", "--end", "rx0", "rx1"][..], &["forward", "--list"]] {
        let ended = Running::spawn(&network, &mut hidden.weir(args)).wait();
        ended.failed(&[
            "cannot tell what the kernel forwards",
            "`ip netns exec` hides it; run this outside: weir forward",
        ]);
    }
}

#[root_test]
fn root_names_that_look_alike_are_not_taken_for_one_another() {
    let mut network = lab();
    network.connect(Veth::default()).expect("a third pair");
    network.connect(Veth::default()).expect("a fourth pair");
    let bpffs = with_bpffs();
    let pairs = [[("a-b", "c"), ("a", "b-c")], [("eth0.5", "c"), ("eth0_5", "c")]];
    let mut names = ["rx0", "rx1", "rx2", "rx3"].map(str::to_owned);
    for [(first, first_to), (second, second_to)] in pairs {
        let wanted = [first, first_to, second, if second_to == first_to { "other" } else { second_to }];
        for (name, wanted) in names.iter_mut().zip(wanted) {
            for words in [
                &["link", "set", "dev", &*name, "down"][..],
                &["link", "set", "dev", &*name, "name", wanted],
                &["link", "set", "dev", wanted, "up"],
            ] {
                let renamed = network.rx().run(|| Command::new("ip").args(words).status());
                assert!(renamed.expect("ip runs").success(), "{words:?}");
            }
            wanted.clone_into(name);
        }
        leave_open(&bpffs, &network, first, first_to);
        leave_open(&bpffs, &network, second, second_to);
        let end = |from: &str, to: &str| {
            Running::spawn(&network, &mut bpffs.weir(&["forward", "--end", from, to, "--json"])).wait()
        };
        end(second, second_to).succeeded();
        assert_eq!(send(&network, 100), 100, "what goes from {first} to {first_to} goes on");
        end(second, second_to).failed(&[
            "nothing is being forwarded from",
            &format!("currently forwarded: {first} to {first_to}"),
        ]);
        assert_eq!(account(&end(first, first_to).succeeded())["forwarded"], 100);
    }
}

#[root_test]
fn root_of_those_who_begin_at_once_one_does_and_is_not_disturbed() {
    let (network, bpffs) = (lab(), with_bpffs());
    let args = ["forward", "rx0", "rx1", "--both", "--on-exit", "open"];
    for _ in 0..3 {
        let mut all: Vec<Running> =
            (0..4).map(|_| Running::spawn(&network, &mut bpffs.weir(&args))).collect();
        until("all but one to end", || {
            let going = all.iter_mut().filter_map(|one| one.is_running().then_some(())).count();
            if going > 1 { Err(format!("{going} go on")) } else { Ok(()) }
        });
        let (mut going, ended): (Vec<_>, Vec<_>) =
            all.into_iter().map(|mut one| (one.is_running(), one)).partition(|(runs, _)| *runs);
        for (_, one) in ended {
            one.wait().failed(&["`rx0` to `rx1`", "forward"]);
        }
        let (_, running) = going.pop().expect("one forwards");
        running.wait_for("to end it: weir forward --end rx0 rx1");
        assert_eq!(send(&network, 100), 100);
        running.interrupt().succeeded();
        assert_eq!(send(&network, 100), 100, "its names in the kernel are there");
        let ended =
            Running::spawn(&network, &mut bpffs.weir(&["forward", "--end", "rx0", "rx1", "--json"])).wait();
        assert_eq!(account(&ended.succeeded())["forwarded"], 200);
        assert!(is_as_before(&network), "{}", links(&network));
    }
}

#[root_test]
fn root_open_needs_a_bpffs() {
    let network = lab();
    let mut command = Command::new("unshare");
    let script = "umount -q /sys/fs/bpf; exec \"$0\" forward rx0 rx1 --on-exit open";
    command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_weir")]);
    Running::spawn(&network, &mut command)
        .wait()
        .failed(&["/sys/fs/bpf", "mount -t bpf -o mode=0700 bpf /sys/fs/bpf"]);
    assert!(is_as_before(&network));
}
