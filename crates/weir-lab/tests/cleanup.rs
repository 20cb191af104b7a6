//! Nothing is left behind, however the process ends.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio, id};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};
use weir_lab::{Action, Generator, Hook, NetNs, Network, Traffic, Veth, root_test};
use weir_sys::link::links;

/// How the process of [`child`] ends: with a `panic` when its standard input ends, or not on its own; with `sending`,
/// it is ready once its frames arrive.
const END: &str = "WEIR_LAB_TEST_END";
/// A device whose peer is in a namespace of the child, so that it exists as long as that namespace does.
const WITNESS: &str = "witness";

/// Not a test, and returns at once when run as one. The tests below run it in a separate process and watch its
/// namespace.
#[test]
#[expect(clippy::zombie_processes, reason = "that it is killed with this process is what is tested")]
fn child() {
    let Ok(end) = std::env::var(END) else { return };
    let network = Network::new(Veth::default().ipv4()).expect("network");
    let inside = format!("/proc/{}/fd/{}", id(), network.rx().as_fd().as_raw_fd());
    let witness = ["link", "add", WITNESS, "type", "veth", "peer", "name", "inside", "netns", &inside];
    assert!(Command::new("ip").args(witness).status().expect("ip").success());

    let hook = Hook::attach(&network.pair().rx, Action::Drop).expect("hook");
    let traffic = Traffic::new(60).expect("size");
    let mut generator = Generator::new(network.pair(), &traffic).expect("generator");
    let sleeper = network.rx().spawn(Command::new("sleep").arg("60")).expect("sleep");
    let ready = || println!("ready {}", sleeper.id());
    if end == "panic" {
        ready();
        generator.send(1000).expect("send");
        io::stdin().read_line(&mut String::new()).expect("standard input");
        panic!("as planned");
    }
    thread::scope(|scope| {
        if end == "never" {
            ready();
        }
        scope.spawn(|| generator.send_for(Duration::from_secs(60)).expect("send"));
        if end == "sending" {
            assert_ne!(hook.wait_for(1, Duration::from_secs(30)), 0);
            ready();
        }
    });
}

/// The IDs of a process's programs, maps and links in the kernel.
#[derive(Debug, Default)]
struct Held {
    programs: Vec<u32>,
    maps: Vec<u32>,
    links: Vec<u32>,
}

impl Held {
    fn by(process: u32) -> Self {
        let mut held = Self::default();
        for entry in fs::read_dir(format!("/proc/{process}/fdinfo")).expect("it lives") {
            // The descriptor may have been closed meanwhile.
            let Ok(text) = fs::read_to_string(entry.expect("an entry").path()) else { continue };
            let number = |name| {
                let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim().parse().ok()
            };
            match (number("link_id:"), number("prog_id:"), number("map_id:")) {
                (Some(link), ..) => held.links.push(link),
                (None, Some(program), _) => held.programs.push(program),
                (None, None, Some(map)) => held.maps.push(map),
                _ => {}
            }
        }
        held
    }

    /// Returns those that still exist.
    fn left(&self) -> Vec<String> {
        let programs = ProgInfoIter::default().filter(|info| self.programs.contains(&info.id));
        let maps = MapInfoIter::default().filter(|info| self.maps.contains(&info.id));
        let links = LinkInfoIter::default().filter(|info| self.links.contains(&info.id));
        let programs = programs.map(|info| format!("program {}", info.id));
        let maps = maps.map(|info| format!("map {}", info.id));
        programs.chain(maps).chain(links.map(|info| format!("link {}", info.id))).collect()
    }
}

/// Starts [`child`], ends it with `finish`, and checks that nothing is left.
fn nothing_is_left(end: &str, finish: impl FnOnce(&mut Child)) {
    let outside = NetNs::new().expect("namespace");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "child", "--nocapture"]).env(END, end);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = outside.spawn(&mut command).expect("this program once more");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let sleeper =
        output.lines().map_while(Result::ok).find_map(|line| Some(line.split_once("ready ")?.1.to_owned()));
    let sleeper = sleeper.expect("the child comes so far");

    let held = Held::by(child.id());
    let witness = || outside.run(|| links().expect("links").into_iter().any(|link| link.name == WITNESS));
    assert!(held.programs.len() >= 2 && held.maps.len() >= 2 && held.links.len() >= 2, "{held:?}");
    assert!(witness() && running(&sleeper) && !held.left().is_empty());
    finish(&mut child);
    assert!(!child.wait().expect("wait").success());

    let start = Instant::now();
    while witness() || running(&sleeper) || !held.left().is_empty() {
        let left = (witness(), running(&sleeper), held.left());
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "namespace, process, kernel objects left: {left:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns whether the process exists and is not a zombie.
fn running(process: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[root_test]
fn root_a_panic_leaves_nothing() {
    nothing_is_left("panic", |child| drop(child.stdin.take()));
}

#[root_test]
fn root_a_kill_leaves_nothing() {
    nothing_is_left("never", |child| child.kill().expect("kill"));
}

#[root_test]
fn root_a_kill_in_the_midst_of_sending_leaves_nothing() {
    nothing_is_left("sending", |child| child.kill().expect("kill"));
}
