//! Runs C programs on the system's libpcap and on this library, and compares what they print.
//!
//! Each program in `tests/c` has one subject and prints a line per call: the call, its result, texts and data. It runs on
//! both libraries, and a third time on ours with the address, leak and undefined-behaviour sanitizers.

mod programs;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use programs::{Difference, Program, library};
use weir_lab::root_test;
use weir_sys::netns::NetNs;

/// For the programs whose lines must all be equal.
const NONE: &[Difference] = &[];

#[test]
fn bpf_filter() {
    Program::compile("bpf_filter").compare(NONE);
}

#[test]
fn bpf_image() {
    Program::compile("bpf_image").compare(NONE);
}

/// Threads that are cancelled while they read files and pipes.
#[test]
fn cancelled_threads() {
    let program = Program::compile("cancel");
    program.compare(NONE);
    let output = program.on_ours("plain").arg("at any moment").output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cancelled 1000\n", "{output:?}");
}

/// Exceptions and the end of a thread pass through our frames.
#[test]
fn exceptions() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/weir.pcapng");
    Program::compile("exceptions").compare_by(NONE, |command| command.arg(file).output().expect("it starts"));
}

/// Interfaces of every kind, with odd addresses.
#[root_test]
fn root_devices_of_a_namespace() {
    let namespace = NetNs::new().expect("a namespace");
    let inside = |command: &mut Command| {
        let child = namespace.spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    let made = inside(Command::new("sh").arg("-c").arg(INTERFACES));
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && errors.is_empty(), "{errors}");
    Program::compile("devices").compare_by(
        &[Difference {
            line: "pcap_lookupnet(\"veth2\") =",
            why: "without a netmask, the class of the address counts, which the system's library reads backwards",
        }],
        inside,
    );
}

/// Interfaces up and down, connected and not, software and point-to-point; addresses with labels, peers, given broadcast
/// addresses and none, and without a mask. They stay as they are: the kernel assigns no address, and it has noticed who is
/// connected.
const INTERFACES: &str = "
set -e
link() { ip link \"$@\"; }
echo 1 >/proc/sys/net/ipv6/conf/default/addr_gen_mode
link add veth0 type veth peer name veth1
link add veth2 type veth peer name veth3
link add br0 type bridge
ip tuntap add tun0 mode tun
ip tuntap add tun1 mode tun
ip tuntap add tap7 mode tap
link add link veth0 name macv0 type macvlan
link add vx1 type vxlan id 5 dstport 4789
ip address add 10.0.0.1/24 dev veth0
ip address add 10.0.1.1/24 broadcast + dev veth0
ip address add 10.0.2.1/24 broadcast 10.0.2.99 dev veth0 label veth0:lab
ip address add 10.5.0.1 peer 10.5.0.2 dev veth1
ip address add 10.5.0.3 peer 10.5.1.0/24 dev tun0
ip address add 172.16.0.1/0 dev veth2
ip address add 192.0.2.1/32 dev br0
ip address add 192.0.2.9/31 dev tap7
ip address add 2001:db8::1/64 dev veth0 nodad
ip address add 2001:db8:1::1 peer 2001:db8:1::2 dev veth1 nodad
for name in lo veth0 veth1 veth2 br0 tun0; do link set $name up; done
is() { until link show $1 | grep -q \"state $2\"; do sleep 0.05; done; }
is veth0 UP; is veth1 UP; is veth2 LOWERLAYERDOWN; is br0 UNKNOWN; is tun0 DOWN
";

#[test]
fn link_types() {
    Program::compile("link_types").compare(NONE);
}

#[test]
fn names() {
    Program::compile("names").compare(NONE);
}

/// Entries that this machine's databases do not have.
#[root_test]
fn root_names_of_given_databases() {
    let etc = tempfile::tempdir().expect("a directory");
    for (name, text) in [
        (
            "hosts",
            "127.0.0.1 localhost\n10.0.0.1 many\n10.0.0.2 many\n10.0.0.3 both\n2001:db8::3 both\n2001:db8::6 six\n",
        ),
        ("networks", "inside 10.1.0.0 alias\nfar 192.168.7.0\n"),
        ("services", "mixed 1000/tcp odd\nmixed 2000/udp\nsignals 2905/sctp\nudp-only 3000/udp\n"),
        ("protocols", "tcp 6 TCP\ninside 200 alias\n"),
        ("ethers", "02:00:00:00:00:0a printer\n2:0:0:0:0 short\n"),
    ] {
        std::fs::write(etc.path().join(name), text).expect("a file");
    }
    Program::compile("names").compare_by(NONE, |command| {
        let mut inside = Command::new("unshare");
        let script = r#"mount --bind "$1" /etc && exec "$2""#;
        inside.args(["--mount", "sh", "-c", script, "sh"]).arg(etc.path()).arg(command.get_program());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside.output().expect("it starts")
    });
}

#[test]
fn texts() {
    Program::compile("texts").compare(&[Difference {
        line: "pcap_statustostr(INT_MIN) =",
        why: "the system's buffer is a byte too small for the longest number",
    }]);
}

/// All that Debian's library exports.
const DEBIAN: &str = include_str!("symbols.txt");
/// What ours exports beyond that: WinPcap's extensions, and weir's.
const EXTENSIONS: &str = include_str!("extensions.txt");

fn exported(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output().expect("nm");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("ASCII");
    text.lines().map(|line| line.rsplit(' ').next().expect("a word").to_owned()).collect()
}

fn list(text: &str) -> BTreeSet<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn exported_symbols_are_those_of_debian_and_the_extensions() {
    let (mut wanted, ours) = (list(DEBIAN), exported(&library()));
    for extension in list(EXTENSIONS) {
        assert!(wanted.insert(extension.clone()), "{extension} is Debian's");
    }
    let lost: Vec<_> = wanted.difference(&ours).collect();
    let more: Vec<_> = ours.difference(&wanted).collect();
    assert!(lost.is_empty(), "not exported: {lost:?}");
    assert!(more.is_empty(), "exported, but in neither list: {more:?}");
}

/// The list is that of the installed library.
#[test]
fn the_list_is_that_of_the_system() {
    let output = Command::new("cc").arg("-print-file-name=libpcap.so").output().expect("a C compiler (cc)");
    let path = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(exported(Path::new(path.trim())), list(DEBIAN));
}
