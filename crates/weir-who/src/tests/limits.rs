//! Tables that are full.

use super::frames::*;
use super::*;

const TABLE: Settings = Settings { sockets: 3, linger: 100 };

fn to(port: u16) -> Vec<u8> {
    udp("10.0.0.2:9", &format!("10.0.0.1:{port}"))
}

fn bound(story: &mut Story, at: u64, cookie: u64, cause: Cause) {
    const PORTS: [&str; 6] =
        ["0.0.0.0:5000", "0.0.0.0:5001", "0.0.0.0:5002", "0.0.0.0:5003", "0.0.0.0:5004", "0.0.0.0:5005"];
    let port = PORTS[usize::try_from(cookie).expect("small")];
    let process = u32::try_from(cookie).expect("small") + 1;
    story.saw(at, Socket::udp(cookie).at(port), cause, process);
}

fn counts(story: &Story) -> (u64, u64, u64, u64) {
    let Counts { sockets, known, forgotten_closed, forgotten_open } = story.register.counts();
    (sockets, known, forgotten_closed, forgotten_open)
}

#[test]
fn those_closed_longest_ago_go_first() {
    let mut story = Story::of(&TABLE);
    story.has("10.0.0.1");
    for cookie in 0..3 {
        bound(&mut story, 10 + cookie, cookie, Cause::Bound);
    }
    bound(&mut story, 20, 2, Cause::Closed);
    bound(&mut story, 30, 1, Cause::Closed);
    assert_eq!(counts(&story), (3, 3, 0, 0));
    // In its time, still.
    bound(&mut story, 40, 3, Cause::Bound);
    assert_eq!(counts(&story), (4, 3, 1, 0));
    assert_eq!(story.receiver(15, &to(5001)), "Certain p2");
    assert_eq!(story.receiver(15, &to(5002)), "Unknown", "it was somebody's");
    assert_eq!(story.receiver(200, &to(5002)), "Kernel");
    // Out of its time.
    bound(&mut story, 131, 4, Cause::Bound);
    assert_eq!(counts(&story), (5, 3, 1, 0));
    // All are open: the oldest goes, and who knows what its packets are.
    assert_eq!(story.receiver(200, &to(5000)), "Certain p1");
    assert_eq!(story.receiver(300, &to(5009)), "Kernel");
    bound(&mut story, 140, 5, Cause::Bound);
    assert_eq!(counts(&story), (6, 3, 1, 1));
    assert_eq!(story.receiver(200, &to(5000)), "Unknown");
    assert_eq!(story.receiver(300, &to(5009)), "Unknown");
    // It is sighted again.
    bound(&mut story, 150, 0, Cause::Closed);
    assert_eq!(counts(&story), (7, 3, 1, 2));
    assert_eq!(story.receiver(149, &to(5000)), "Unknown");
}

#[test]
fn who_was_closed_long_enough_is_not_missed() {
    for (at, early) in [(119, 1), (120, 1), (121, 0)] {
        let mut story = Story::of(&Settings { sockets: 1, ..TABLE });
        bound(&mut story, 20, 1, Cause::Closed);
        bound(&mut story, at, 2, Cause::Bound);
        assert_eq!(counts(&story), (2, 1, early, 0), "{at}");
    }
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    let mut story = Story::of(&TABLE);
    for round in 0..200_u64 {
        story.namespace = round;
        let number = u32::try_from(round).expect("small") + 1;
        let (one, other) = (Socket::udp(round).at("0.0.0.0:5000"), "10.0.0.2:53");
        story
            .saw(10 * round, one, Cause::Bound, number)
            .saw(10 * round + 1, one.to(other), Cause::Connecting, number + 1000)
            .saw(10 * round + 5, one.at("10.0.0.1:5000").to(other), Cause::Closed, number);
    }
    assert_eq!(counts(&story), (200, 3, 197, 0));
    let known = &story.register.known;
    assert_eq!(known.sockets.lengths(), [3, 3, 6, 3, 3], "sockets, cookies, names, turns, namespaces");
    // No more than may be without a socket, of the latest.
    assert_eq!(known.processes.len(), 400);
    let mut story = Story::of(&TABLE);
    for number in 1..=3000 {
        story.saw(number.into(), Socket::udp(1).at("0.0.0.0:5000"), Cause::Sent, number);
    }
    assert_eq!(story.register.known.processes.len(), 16 + 1024 + 3);
    assert_eq!(story.ask(3000, &to(5000), Side::Receiver), "Certain p3000");
    for number in 1..=3000 {
        story.register.learn(&News::Described(process(number)));
    }
    assert_eq!(story.register.known.processes.len(), 16 + 1024 + 3);
}

#[test]
fn a_socket_of_many_is_of_several() {
    let mut story = Story::new();
    let socket = Socket::udp(1).at("0.0.0.0:5000");
    for number in 1..=20 {
        story.saw(100, socket, Cause::Found, number);
    }
    let said = story.receiver(50, &to(5000));
    assert!(said.starts_with("Several ") && said.split(' ').count() == 17, "{said}");
    // Those that use it in turn: what is long ago is not known exactly, and what is new is.
    let mut story = Story::new();
    for at in 1..=40_u32 {
        story.saw(at.into(), socket, Cause::Sent, 1 + at % 3);
    }
    let leaves = udp("10.0.0.1:5000", "10.0.0.2:9");
    assert_eq!(story.sender(2, &leaves), "Several p1 p2 p3");
    assert_eq!(story.sender(38, &leaves), "Certain p3");
    assert_eq!(story.sender(40, &leaves), "Certain p2");
    assert_eq!(story.receiver(40, &to(5000)), "Several p1 p2 p3");
    // What made it ready, again and again, says no more than once.
    let mut story = Story::new();
    story.saw(1, Socket::udp(1), Cause::Created, 1);
    for at in 2..=40 {
        story.saw(at, socket, Cause::Bound, 2);
    }
    assert_eq!([1, 40].map(|at| story.receiver(at, &to(5000))), ["Certain p1", "Several p1 p2"]);
    // The same one, again and again, is still the one.
    let mut story = Story::new();
    for at in 1..=40 {
        story.saw(at, socket, Cause::Sent, if at < 5 { 1 } else { 2 });
    }
    assert_eq!(
        [4, 5, 40].map(|at| story.receiver(at, &to(5000))),
        ["Certain p1", "Certain p2", "Certain p2"]
    );
}

#[test]
fn ends_that_were_long_ago_are_forgotten() {
    let mut story = Story::new();
    let remotes: Vec<&'static str> = vec![
        "10.0.0.2:1",
        "10.0.0.2:2",
        "10.0.0.2:3",
        "10.0.0.2:4",
        "10.0.0.2:5",
        "10.0.0.2:6",
        "10.0.0.2:7",
        "10.0.0.2:8",
        "10.0.0.2:9",
        "10.0.0.2:10",
        "10.0.0.2:11",
        "10.0.0.2:12",
        "10.0.0.2:13",
        "10.0.0.2:14",
    ];
    let local = "10.0.0.1:5000";
    for (at, remote) in (10..).zip(&remotes) {
        story.saw(at, Socket::udp(1).at(local).to(remote), Cause::Connecting, 4);
    }
    for (at, remote) in (10..).zip(&remotes) {
        let expected = if at < 12 { "Unknown" } else { "Certain p4" };
        assert_eq!(story.sender(at, &udp(local, remote)), expected, "{remote}");
    }
    assert_eq!(story.register.known.sockets.lengths()[2], 12);
    // The same one, again and again, takes no room.
    for at in 30..60 {
        story.saw(at, Socket::udp(1).at(local).to(remotes[13]), Cause::Connecting, 4);
    }
    story.saw(70, Socket::udp(1).at(local).to(remotes[0]), Cause::Connecting, 4);
    for (at, remote) in [(23, remotes[13]), (50, remotes[13]), (70, remotes[0])] {
        assert_eq!(story.sender(at, &udp(local, remote)), "Certain p4", "{at}");
    }
    assert_eq!(story.sender(14, &udp(local, remotes[4])), "Certain p4", "the last that there is room for");
}
