//! Following sockets where the kernel has less: no types (BTF), or not all hooks.

use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};
use weir_bpf::who::{Cause, Following, Hook, Options, Report};
use weir_lab::{NetNs, root_test};

/// Returns the root of cgroup2.
fn root() -> File {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = table.lines().find(|line| line.contains(" - cgroup2 ")).expect("cgroup2 is mounted");
    File::open(line.split(' ').nth(4).unwrap()).unwrap()
}

/// Has this process make sockets, and returns what is told of them.
fn told(options: &Options<'_>) -> (Following, Vec<Report>) {
    let following = Following::attach(options).unwrap();
    let mut reader = following.reader().unwrap();
    let own = std::process::id();
    let here = weir_sys::netns::cookie().unwrap();
    drop(TcpListener::bind("0.0.0.0:0").unwrap());
    drop(UdpSocket::bind("[::]:0").unwrap());
    let (mut reports, began) = (Vec::new(), Instant::now());
    // A report that is being written, of another process, holds up those behind it.
    let closed = |reports: &[Report]| reports.iter().filter(|report| report.cause == Cause::Closed).count();
    while options.cgroup.is_some() && closed(&reports) < 2 {
        assert!(began.elapsed() < Duration::from_secs(30), "{reports:?}");
        reports.extend(reader.take().unwrap().into_iter().filter(|report| report.namespace == here));
    }
    assert!(reports.iter().all(|report| report.process.is_none_or(|process| process.number == own)));
    (following, reports)
}

#[root_test]
fn root_what_is_left_of_the_hooks_tells_what_it_can() {
    let (root, namespace) = (root(), NetNs::new().unwrap());
    let options = Options { cgroup: Some(root.as_fd()), ring: 0, without: &[], plain: true };
    namespace.run(|| {
        let (following, reports) = told(&options);
        let causes: Vec<_> = reports.iter().map(|report| report.cause).collect();
        let all = [
            Cause::Created,
            Cause::Bound,
            Cause::Listening,
            Cause::Closed,
            Cause::Created,
            Cause::Bound,
            Cause::Closed,
        ];
        assert_eq!(causes, all);
        for report in &reports {
            let process = report.process.unwrap();
            assert_eq!((process.started, process.parent, process.user), (0, 0, 0));
            assert!(process.name[0] != 0 && process.cgroup != 0);
            assert_eq!(report.ends.is_some(), report.cause != Cause::Closed);
        }
        let refused: Vec<_> = following.refused().iter().map(|refused| refused.hook).collect();
        assert_eq!(refused, [Hook::Executed, Hook::Ended, Hook::Files]);
        assert_eq!(following.look().unwrap(), None);
        drop(following);

        // Without some, and then without a control group.
        let without = [Hook::Create, Hook::Tcp, Hook::Bind6];
        let (following, reports) = told(&Options { without: &without, ..options });
        let causes: Vec<_> = reports.iter().map(|report| report.cause).collect();
        assert_eq!(causes, [Cause::Bound, Cause::Closed, Cause::Closed]);
        assert!(without.iter().all(|hook| !following.has(*hook)) && following.has(Hook::Bind4));
        drop(following);
        let (following, reports) = told(&Options { cgroup: None, plain: false, ..options });
        assert_eq!(reports, []);
        assert!(following.has(Hook::Files) && following.has(Hook::Executed) && !following.has(Hook::Create));
        assert_eq!(following.refused().len(), 9);
    });
}

#[root_test]
fn root_reports_without_room_are_counted() {
    let (root, namespace) = (root(), NetNs::new().unwrap());
    let without = [Hook::Executed, Hook::Ended, Hook::Files, Hook::Tcp];
    let options = Options { cgroup: Some(root.as_fd()), ring: 0, without: &without, plain: false };
    namespace.run(|| {
        let following = Following::attach(&options).unwrap();
        let mut reader = following.reader().unwrap();
        let make = |sockets: usize| {
            (0..sockets).for_each(|_| drop(UdpSocket::bind("127.0.0.1:0").unwrap()));
        };
        // What is lost is told by the next report on the same processor.
        let mut first = CpuSet::new();
        first.set(0);
        sched_setaffinity(None, &first).unwrap();
        // 64 KiB have room for 511 reports; others of this host may come, too.
        make(400);
        let (mut told, began) = (0, Instant::now());
        // A report that is being written holds up those behind it.
        while told < 3 * 400 - 511 {
            assert!(began.elapsed() < Duration::from_secs(30), "only {told} lost reports are told");
            let taken = reader.take().unwrap();
            told += taken.iter().map(|report| u64::from(report.missed)).sum::<u64>();
            make(1);
        }
    });
}
