//! Interfaces of other namespaces, by the names that `ip netns` gives, and their end.

use std::fs;
use std::process::Command;

use serde_json::Value;
use weir_lab::{Network, root_test};

use crate::harness::{Running, network, root_tests, run, send, tshark};

/// A process in the receiving namespace, which `ip netns attach` can give a name to.
pub(crate) fn inside(network: &Network) -> Running {
    Running::spawn(network, Command::new("sleep").arg("1000"))
}

/// Runs weir where the namespaces are called `web` and `db`, in a `/run` that nobody else sees, until there is a file
/// `over`; then the names are taken away. Ends as weir does.
fn named(networks: &[Network; 2], directory: &str, arguments: &str) -> Running {
    let processes = networks.each_ref().map(inside);
    let [web, db] = processes.each_ref().map(Running::id);
    let script = format!(
        "mount -t tmpfs none /run && ip netns attach web {web} && ip netns attach db {db} || exit 9
        timeout 60 {} {arguments} & touch {directory}/ready
        while [ ! -e {directory}/over ]; do sleep 0.05; done
        ip netns delete web; ip netns delete db; wait $!",
        env!("CARGO_BIN_EXE_weir"),
    );
    let running = Running::spawn(&network(), Command::new("sh").args(["-c", &script]));
    running.wait_until_open();
    assert!(fs::exists(format!("{directory}/ready")).expect("a directory"), "the names are given");
    running
}

root_tests! { namespaces_are_named_in_the_file_and_end_the_capture:
    root_namespaces_are_named_in_the_file_and_end_the_capture_af_packet("af_packet");
    root_namespaces_are_named_in_the_file_and_end_the_capture_xdp("xdp");
    root_namespaces_are_named_in_the_file_and_end_the_capture_tc("tc");
}

fn namespaces_are_named_in_the_file_and_end_the_capture(source: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let networks = [network(), network()];
    let file = path("both.pcapng");
    let arguments =
        format!("capture -B 8MiB -i rx0 --netns web --netns db --source {source} -w {file} --json");
    let running = named(&networks, &path(""), &arguments);
    send(&networks[0], 300);
    send(&networks[1], 500);
    fs::write(path("over"), "").expect("a file");
    let ended = running.wait().failed(&["web/rx0 is gone", "db/rx0 is gone", "interface `"]);

    let account = ended.account();
    account.closes();
    let interfaces = account.0["interfaces"].as_array().expect("an array");
    let told: Vec<_> = interfaces.iter().map(|one| (one["name"].as_str(), one["written"].as_u64())).collect();
    assert_eq!(told, [(Some("web/rx0"), Some(300)), (Some("db/rx0"), Some(500))], "{source}");
    let listing = tshark(file.as_ref(), &["frame.interface_name"]);
    let number = |name: &str| listing.iter().filter(|found| *found == name).count();
    assert_eq!((number("web/rx0"), number("db/rx0"), listing.len()), (300, 500, 800), "{source}");
}

#[root_test]
fn root_counting_says_what_happens_to_interfaces() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let networks = [network(), network()];
    let running = named(&networks, &path(""), "count -B 8MiB -i web/rx0 -i db/any --json --verbose");
    send(&networks[0], 10);
    send(&networks[1], 20);
    let down = networks[0].rx().run(|| Command::new("ip").args(["link", "set", "rx0", "down"]).status());
    assert!(down.expect("ip runs").success());
    running.wait_for("web/rx0 is down");
    fs::write(path("over"), "").expect("a file");
    let ended = running.wait().failed(&["web/rx0 is gone", "db/any is gone"]);
    ended.account().closes();
    assert_eq!(ended.account().number("captured"), 30);
}

#[root_test]
fn root_a_wrong_namespace_is_an_error_that_says_what_to_do() {
    let network = network();
    for (arguments, parts) in [
        (["-i", "no-such/rx0"], ["`no-such`: no such namespace", "hint: "]),
        (["-i", "4194305/rx0"], ["no such process: 4194305", "lsns"]),
        (["--netns", "/dev/null"], ["/dev/null is not a network namespace", "/run/netns/NAME"]),
        (
            ["-i", "/proc/self/ns/net/rx9"],
            ["no interface named `/proc/self/ns/net/rx9`", "did you mean `rx0`"],
        ),
    ] {
        run(&network, &[&["capture"], &arguments[..]].concat()).failed(&parts);
    }
    let list = run(&network, &["capture", "-D", "--netns", "/proc/self/ns/net"]).succeeded();
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.contains("/proc/self/ns/net/rx0 [Up") && list.contains("/any"), "{list}");
}

#[root_test]
fn root_a_comma_separates_interfaces_unless_it_is_in_a_name() {
    let count = "count -i a,b -B 1MiB --source af_packet --duration 100ms -q --json | tail -n 1";
    let counted = |links: &str| {
        let script = format!("{links} && ip link set dev a up && ip link set dev b up && \"$0\" {count}");
        let output =
            Command::new("unshare").args(["--net", "sh", "-c", &script, env!("CARGO_BIN_EXE_weir")]).output();
        let output = output.expect("unshare is installed");
        let account: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let names = account["interfaces"].as_array().expect("interfaces").iter();
        names.map(|interface| interface["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(counted("ip link add name a type veth peer name b"), ["a", "b"]);
    let exact = "ip link add name a type veth peer name b && ip link add name a,b type veth peer name c && ip link set dev a,b up";
    assert_eq!(counted(exact), ["a,b"]);
}
