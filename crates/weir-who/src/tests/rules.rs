//! Which socket a packet is of.

use super::frames::*;
use super::*;

const HERE: &str = "10.0.0.1:5000";
const THERE: &str = "10.0.0.2:80";

#[test]
fn a_connection_is_of_who_began_it() {
    let mut story = Story::at_home();
    story
        .saw(10, Socket::tcp(1), Cause::Created, 4)
        .saw(20, Socket::tcp(1).at(HERE).to(THERE), Cause::Connecting, 4)
        .saw(30, Socket::tcp(1).at(HERE).to(THERE), Cause::Established, 0)
        .saw(50, Socket::tcp(1).at(HERE).to(THERE), Cause::Closed, 4);
    for at in [20, 25, 40, 50, 60, 1050] {
        assert_eq!(story.sender(at, &tcp(HERE, THERE)), "Certain p4", "{at}");
        assert_eq!(story.receiver(at, &tcp(THERE, HERE)), "Certain p4", "{at}");
    }
    // Neither before nor long after.
    for at in [15, 1051] {
        assert_eq!(story.sender(at, &tcp(HERE, THERE)), "Unknown", "{at}");
        assert_eq!(story.receiver(at, &tcp(THERE, HERE)), "Kernel", "{at}");
    }
    // The other end is elsewhere.
    assert_eq!(story.receiver(25, &tcp(HERE, THERE)), "Unknown");
    assert_eq!(story.sender(25, &tcp(THERE, HERE)), "Unknown");
}

#[test]
fn a_port_that_is_used_again_is_of_the_latest_that_had_it() {
    let mut story = Story::at_home();
    for (cookie, at) in [(1, 100), (2, 200), (3, 300)] {
        let process = u32::try_from(cookie).expect("small");
        let socket = Socket::tcp(cookie).at(HERE).to(THERE);
        story
            // All were made long before.
            .saw(cookie, Socket::tcp(cookie), Cause::Created, process)
            .saw(at, socket, Cause::Connecting, process)
            .saw(at + 50, socket, Cause::Closed, process);
    }
    for (at, expected) in
        [(120, "p1"), (180, "p1"), (200, "p2"), (260, "p2"), (299, "p2"), (300, "p3"), (900, "p3")]
    {
        assert_eq!(story.sender(at, &tcp(HERE, THERE)), format!("Certain {expected}"), "{at}");
    }
}

#[test]
fn a_socket_that_is_connected_again_has_both_ends_one_after_the_other() {
    let mut story = Story::at_home();
    story
        .saw(10, Socket::udp(1).to("10.0.0.2:53"), Cause::Connecting, 4)
        .saw(20, Socket::udp(1).to("10.0.0.3:53"), Cause::Connecting, 4)
        .saw(30, Socket::udp(1).at(HERE).to("10.0.0.3:53"), Cause::Closed, 4);
    assert_eq!(story.sender(25, &udp(HERE, "10.0.0.3:53")), "Certain p4");
    assert_eq!(story.sender(15, &udp(HERE, "10.0.0.3:53")), "Unknown");
    // The port that it had with the first was never told, so none is.
    assert_eq!(story.sender(15, &udp(HERE, "10.0.0.2:53")), "Unknown");
    let mut story = Story::at_home();
    story
        .saw(5, Socket::udp(1).at("0.0.0.0:5000"), Cause::Bound, 4)
        .saw(10, Socket::udp(1).to("10.0.0.2:53"), Cause::Connecting, 4)
        .saw(20, Socket::udp(1).to("10.0.0.3:53"), Cause::Connecting, 4);
    assert_eq!(story.sender(15, &udp(HERE, "10.0.0.2:53")), "Certain p4");
    assert_eq!(story.receiver(25, &udp("10.0.0.3:53", HERE)), "Certain p4");
    assert_eq!(story.receiver(8, &udp("10.0.0.9:53", HERE)), "Certain p4");
    assert_eq!(story.receiver(15, &udp("10.0.0.9:53", HERE)), "Kernel");
}

#[test]
fn what_is_told_later_holds_from_the_beginning() {
    let mut story = Story::at_home();
    let (query, answer) = (udp(HERE, "10.0.0.2:53"), udp("10.0.0.2:53", HERE));
    story.saw(10, Socket::udp(1), Cause::Created, 4).saw(
        20,
        Socket::udp(1).to("10.0.0.2:53"),
        Cause::Connecting,
        4,
    );
    assert!(story.is_unsettled(25, &query) && story.is_unsettled(25, &answer));
    assert!(!story.is_unsettled(15, &query) && !story.is_unsettled(25, &udp(HERE, "10.0.0.2:54")));
    assert!(!story.is_unsettled(25, &tcp(HERE, "10.0.0.2:53")));
    // It may be its packet, or the kernel's.
    assert_eq!(story.sender(25, &query), "Unknown");
    assert_eq!(story.receiver(25, &answer), "Unknown");
    assert_eq!(story.receiver(15, &answer), "Kernel");
    story.saw(50, Socket::udp(1).at(HERE).to("10.0.0.2:53"), Cause::Closed, 4);
    assert!(!story.is_unsettled(25, &query) && !story.is_unsettled(60, &answer));
    for at in [20, 25, 50, 60] {
        assert_eq!(story.sender(at, &query), "Certain p4", "{at}");
        assert_eq!(story.receiver(at, &answer), "Certain p4", "{at}");
    }
    assert_eq!(story.receiver(19, &answer), "Kernel");
    // Without a connection: since it was made.
    story.saw(100, Socket::udp(2), Cause::Created, 5).saw(
        120,
        Socket::udp(2).at("0.0.0.0:6000").to("10.0.0.7:9"),
        Cause::Sent,
        5,
    );
    assert_eq!(story.sender(110, &udp("10.0.0.1:6000", "10.0.0.8:9")), "Certain p5");
    assert_eq!(story.receiver(130, &udp("10.0.0.9:9", "10.0.0.1:6000")), "Certain p5");
    assert_eq!(story.receiver(99, &udp("10.0.0.9:9", "10.0.0.1:6000")), "Kernel");
}

#[test]
fn the_order_in_which_it_is_told_does_not_matter() {
    let at_end = Socket::udp(1).at(HERE).to("10.0.0.2:53");
    let told = [
        (10, Socket::udp(1), Cause::Created),
        (20, at_end.at("0.0.0.0:0"), Cause::Connecting),
        (30, at_end, Cause::Taken),
        (40, at_end, Cause::Closed),
    ];
    for first in 0..4 {
        for second in 0..4 {
            let mut order = told;
            order.swap(0, first);
            order.swap(3, second);
            let mut story = Story::at_home();
            for (at, socket, cause) in order {
                story.saw(at, socket, cause, if cause == Cause::Taken { 5 } else { 4 });
            }
            for (at, expected) in [
                (15, "Unknown"),
                (20, "Certain p4"),
                (29, "Certain p4"),
                (30, "Certain p5"),
                (99, "Certain p5"),
            ] {
                let said = story.sender(at, &udp(HERE, "10.0.0.2:53"));
                assert_eq!(said, expected, "{at} {order:?}");
            }
        }
    }
}

#[test]
fn a_connection_that_was_accepted_is_the_listeners_until_somebody_takes_it() {
    let mut story = Story::at_home();
    let listener = Socket::tcp(1).at("0.0.0.0:80");
    let accepted = Socket::tcp(2).at("10.0.0.1:80").to("10.0.0.2:5000");
    let (to, from) = ("10.0.0.1:80", "10.0.0.2:5000");
    story.saw(10, Socket::tcp(1), Cause::Created, 4).saw(20, listener, Cause::Bound, 4).saw(
        30,
        listener,
        Cause::Listening,
        4,
    );
    assert_eq!(story.receiver(25, &flagged(from, to, SYN)), "Kernel", "it does not listen yet");
    assert_eq!(story.receiver(40, &flagged(from, to, SYN)), "Listener p4");
    assert_eq!(story.sender(41, &flagged(to, from, SYN | ACK)), "Listener p4");
    story.saw(42, accepted, Cause::Accepted, 4);
    assert_eq!(story.receiver(45, &tcp(from, to)), "Listener p4");
    // It has it open, as is known.
    story.saw(46, accepted, Cause::Found, 4);
    assert_eq!(story.receiver(47, &tcp(from, to)), "Listener p4");
    story.saw(50, accepted, Cause::Taken, 5);
    // Nobody else has had it.
    assert_eq!(story.receiver(45, &tcp(from, to)), "Certain p5");
    assert_eq!(story.sender(55, &tcp(to, from)), "Certain p5");
    story.saw(60, accepted, Cause::Closed, 5);
    assert_eq!(story.sender(65, &tcp(to, from)), "Certain p5");
    // The same client comes again, from the same port.
    assert_eq!(story.receiver(70, &flagged(from, to, SYN)), "Listener p4");
    story.saw(80, listener, Cause::Closed, 4);
    assert_eq!(story.receiver(90, &flagged(from, to, SYN)), "Kernel");
}

#[test]
fn an_accepted_socket_of_nobody_is_the_listeners() {
    let mut story = Story::at_home();
    story.saw(30, Socket::tcp(1).at("10.0.0.1:80"), Cause::Listening, 4).saw(
        40,
        Socket::tcp(2).at("10.0.0.1:80").to("10.0.0.2:5000"),
        Cause::Accepted,
        0,
    );
    assert_eq!(story.receiver(45, &tcp("10.0.0.2:5000", "10.0.0.1:80")), "Listener p4");
    let mut story = Story::at_home();
    story.saw(40, Socket::tcp(2).at("10.0.0.1:80").to("10.0.0.2:5000"), Cause::Accepted, 0);
    assert_eq!(story.receiver(45, &tcp("10.0.0.2:5000", "10.0.0.1:80")), "Unknown");
}

#[test]
fn the_socket_that_fits_best_gets_it() {
    let mut story = Story::at_home();
    story
        .saw(10, Socket::udp(1).at("[::]:53"), Cause::Bound, 1)
        .saw(11, Socket::udp(2).at("0.0.0.0:53"), Cause::Bound, 2)
        .saw(12, Socket::udp(3).at("10.0.0.1:53"), Cause::Bound, 3)
        .saw(13, Socket::udp(4).at("10.0.0.1:53").to("10.0.0.2:9"), Cause::Connecting, 4);
    for (from, to, expected) in [
        ("10.0.0.2:9", "10.0.0.1:53", "Certain p4"),
        ("10.0.0.2:8", "10.0.0.1:53", "Certain p3"),
        ("10.0.0.2:8", "127.0.0.1:53", "Certain p2"),
        ("[fd00::2]:8", "[fd00::1]:53", "Certain p1"),
        ("10.0.0.2:8", "10.0.0.1:54", "Kernel"),
    ] {
        assert_eq!(story.receiver(20, &udp(from, to)), expected, "{from} {to}");
        let sender = if expected == "Kernel" { "Unknown" } else { expected };
        assert_eq!(story.sender(20, &udp(to, from)), sender, "{to} {from}");
    }
    // Both versions of IP by one socket.
    story.saw(30, Socket::udp(2).at("0.0.0.0:53"), Cause::Closed, 2);
    assert_eq!(story.receiver(40, &udp("10.0.0.2:8", "127.0.0.1:53")), "Certain p1");
    // IPv4 in IPv6 is IPv4.
    assert_eq!(story.receiver(40, &udp("[::ffff:10.0.0.2]:9", "[::ffff:10.0.0.1]:53")), "Certain p4");
}

#[test]
fn one_of_several_stays_one_of_several() {
    let mut story = Story::at_home();
    story
        .saw(10, Socket::udp(1).at("0.0.0.0:53"), Cause::Bound, 5)
        .saw(11, Socket::udp(2).at("0.0.0.0:53"), Cause::Bound, 4)
        .saw(12, Socket::udp(3).at("0.0.0.0:53"), Cause::Bound, 4);
    assert_eq!(story.receiver(11, &udp("10.0.0.2:8", "10.0.0.1:53")), "Several p4 p5");
    assert_eq!(story.sender(12, &udp("10.0.0.1:53", "10.0.0.2:8")), "Several p4 p5");
    story.saw(20, Socket::udp(1).at("0.0.0.0:53"), Cause::Closed, 5);
    assert_eq!(story.receiver(21, &udp("10.0.0.2:8", "10.0.0.1:53")), "Certain p4");
    let listener = |cookie| Socket::tcp(cookie).at("0.0.0.0:80");
    story.saw(30, listener(4), Cause::Listening, 6).saw(30, listener(5), Cause::Listening, 7);
    assert_eq!(story.receiver(31, &flagged("10.0.0.2:8", "10.0.0.1:80", SYN)), "Several p6 p7");
    // Whose one of them is, nobody has told.
    story.saw(32, Socket::udp(6).at("0.0.0.0:53"), Cause::Bound, 0);
    assert_eq!(story.receiver(33, &udp("10.0.0.2:8", "10.0.0.1:53")), "Unknown");
}

#[test]
fn all_sockets_get_what_goes_to_many() {
    let mut story = Story::at_home();
    story
        .saw(10, Socket::udp(1).at("0.0.0.0:5353"), Cause::Bound, 4)
        .saw(11, Socket::udp(2).at("224.0.0.251:5353"), Cause::Bound, 5)
        .saw(12, Socket::udp(3).at("10.0.0.1:5353"), Cause::Bound, 6)
        .saw(13, Socket::udp(4).at("0.0.0.0:5353").to("10.0.0.2:9"), Cause::Connecting, 7);
    let from = "10.0.0.2:5353";
    assert_eq!(story.receiver(20, &udp(from, "224.0.0.251:5353")), "Several p4 p5");
    assert_eq!(story.receiver(20, &udp("10.0.0.2:9", "224.0.0.251:5353")), "Several p4 p5 p7");
    assert_eq!(story.receiver(20, &udp(from, "255.255.255.255:5353")), "Certain p4");
    assert_eq!(story.receiver(20, &to_all(udp(from, "10.0.0.255:5353"))), "Certain p4");
    // Not for this host, as far as can be told.
    assert_eq!(story.receiver(20, &udp(from, "10.0.0.255:54")), "Forwarded");
    assert_eq!(story.receiver(20, &to_all(udp(from, "10.0.0.255:54"))), "Kernel");
    assert_eq!(story.receiver(20, &udp(from, "224.0.0.251:54")), "Kernel");
    // One of them has sent it: that with its own address.
    assert_eq!(story.sender(20, &udp("10.0.0.1:5353", "224.0.0.251:5353")), "Certain p6");
    // One that is connected there is not the only one that gets it.
    story.saw(21, Socket::udp(6).at("224.0.0.251:5353").to("10.0.0.2:9"), Cause::Connecting, 9);
    assert_eq!(story.receiver(22, &udp("10.0.0.2:9", "224.0.0.251:5353")), "Several p4 p5 p7 p9");
    story.saw(23, Socket::udp(7).at("10.0.0.1:5353").to("10.0.0.2:8"), Cause::Connecting, 10);
    assert_eq!(story.receiver(24, &to_all(udp("10.0.0.2:8", "10.0.0.1:5353"))), "Several p4 p6 p10");
    // DHCP, before there is an address.
    story.saw(30, Socket::udp(5).at("0.0.0.0:68"), Cause::Bound, 8);
    assert_eq!(story.sender(31, &to_all(udp("0.0.0.0:68", "255.255.255.255:67"))), "Certain p8");
}

#[test]
fn a_socket_that_changes_hands_is_of_the_latest_that_used_it() {
    let mut story = Story::at_home();
    let socket = Socket::tcp(1).at(HERE).to(THERE);
    story.saw(10, Socket::tcp(1), Cause::Created, 4).saw(20, socket, Cause::Connecting, 4).saw(
        30,
        socket,
        Cause::Taken,
        5,
    );
    for (at, expected) in [(20, "Certain p4"), (29, "Certain p4"), (30, "Certain p5"), (40, "Certain p5")] {
        assert_eq!(story.sender(at, &tcp(HERE, THERE)), expected, "{at}");
        assert_eq!(story.receiver(at, &tcp(THERE, HERE)), expected, "{at}");
    }
    // They take turns: who sends has just used it, and whoever reads gets what comes.
    story.saw(40, socket, Cause::Taken, 4);
    assert_eq!(story.sender(35, &tcp(HERE, THERE)), "Certain p5");
    assert_eq!(story.sender(45, &tcp(HERE, THERE)), "Certain p4");
    assert_eq!(story.receiver(45, &tcp(THERE, HERE)), "Several p4 p5");
}

#[test]
fn who_made_it_and_who_used_it_later_may_both_have_it() {
    let mut story = Story::at_home();
    let socket = Socket::udp(1).at("0.0.0.0:53");
    let arrives = udp("10.0.0.2:9", "10.0.0.1:53");
    story.saw(10, Socket::udp(1), Cause::Created, 4).saw(20, socket, Cause::Bound, 4);
    assert_eq!(story.receiver(25, &arrives), "Certain p4");
    story.saw(30, socket, Cause::Sent, 5);
    assert_eq!(story.receiver(25, &arrives), "Several p4 p5");
    assert_eq!(story.receiver(35, &arrives), "Certain p5");
    // Made ready by two, used by none.
    story.saw(40, Socket::udp(2), Cause::Created, 6).saw(
        41,
        Socket::udp(2).at("0.0.0.0:54"),
        Cause::Bound,
        7,
    );
    assert_eq!(story.receiver(45, &udp("10.0.0.2:9", "10.0.0.1:54")), "Several p6 p7");
}

#[test]
fn a_socket_from_before_is_of_those_that_hold_it() {
    let mut story = Story::at_home();
    let (one, two) = (Socket::tcp(1).at(HERE).to(THERE), Socket::tcp(2).at(HERE).to("10.0.0.2:81"));
    story
        .saw(100, one, Cause::Found, 4)
        .saw(100, two, Cause::Found, 5)
        .saw(101, two, Cause::Found, 4)
        .saw(102, Socket::tcp(3).at("0.0.0.0:80"), Cause::Found, 6)
        .saw(103, Socket::udp(4).at("0.0.0.0:53"), Cause::Found, 0);
    for at in [1, 100, 200] {
        assert_eq!(story.sender(at, &tcp(HERE, THERE)), "Before p4", "{at}");
        assert_eq!(story.sender(at, &tcp(HERE, "10.0.0.2:81")), "Several p4 p5", "{at}");
        assert_eq!(story.receiver(at, &flagged("10.0.0.9:8", "10.0.0.1:80", SYN)), "Listener p6", "{at}");
        assert_eq!(story.receiver(at, &udp("10.0.0.9:8", "10.0.0.1:53")), "Unknown", "{at}");
    }
    story.saw(150, two, Cause::Taken, 4);
    assert_eq!(story.sender(160, &tcp(HERE, "10.0.0.2:81")), "Certain p4");
    // Found while it was being made: nothing is older.
    story.saw(300, Socket::udp(5), Cause::Created, 7).saw(
        310,
        Socket::udp(5).at("0.0.0.0:99"),
        Cause::Found,
        7,
    );
    assert_eq!(story.receiver(320, &udp("10.0.0.9:8", "10.0.0.1:99")), "Certain p7");
    assert_eq!(story.receiver(299, &udp("10.0.0.9:8", "10.0.0.1:99")), "Kernel");
}

#[test]
fn who_was_there_at_the_end_has_held_it() {
    let mut story = Story::at_home();
    story.saw(100, Socket::udp(1).at(HERE).to("10.0.0.2:53"), Cause::Closed, 4);
    assert_eq!(story.receiver(110, &udp("10.0.0.2:53", HERE)), "Before p4");
}

#[test]
fn any_address_as_the_other_end_is_this_host() {
    let mut story = Story::at_home();
    story.saw(10, Socket::udp(1).at("0.0.0.0:5000").to("0.0.0.0:53"), Cause::Connecting, 4).saw(
        10,
        Socket::udp(2).at("[::]:5000").to("[::]:53"),
        Cause::Connecting,
        5,
    );
    assert_eq!(story.sender(20, &udp("127.0.0.1:5000", "127.0.0.1:53")), "Certain p4");
    assert_eq!(story.sender(20, &udp("[::1]:5000", "[::1]:53")), "Certain p5");
}

#[test]
fn a_program_that_changes_is_what_it_was_then() {
    let mut story = Story::at_home();
    let socket = Socket::tcp(1).at(HERE).to(THERE);
    story
        .saw_as(10, Socket::tcp(1), Cause::Created, Some(named(4, "sh", 0)))
        .saw_as(20, socket, Cause::Connecting, Some(named(4, "sh", 0)))
        .saw_as(30, socket, Cause::Taken, Some(named(4, "curl", 0)))
        .saw_as(50, socket, Cause::Taken, Some(named(4, "curl", 33)));
    let users = |story: &Story, at| {
        let question =
            Question { at, namespace: Some(HOME), link_type: link_type::ETHERNET, frame: &tcp(HERE, THERE) };
        let owner = story.register.owner(&question, Side::Sender);
        let [process] = &owner.processes[..] else { panic!("{owner:?}") };
        format!("{} {} {}", process.name, process.user, process.program.as_deref().unwrap_or("-"))
    };
    for (at, expected) in [(20, "sh 0 -"), (29, "sh 0 -"), (30, "curl 0 -"), (50, "curl 33 -")] {
        assert_eq!(users(&story, at), expected, "{at}");
    }
    let described = Process { program: Some("/bin/curl".to_owned()), ..(*named(4, "curl", 0)).clone() };
    story.register.learn(&News::Described(Arc::new(described)));
    for (at, expected) in [(20, "sh 0 -"), (30, "curl 0 /bin/curl"), (60, "curl 33 -")] {
        assert_eq!(users(&story, at), expected, "{at}");
    }
    // A sighting that knows less takes nothing away.
    story.saw_as(40, socket, Cause::Taken, Some(named(4, "curl", 0)));
    assert_eq!(users(&story, 45), "curl 0 /bin/curl");
    // It came late.
    story.saw_as(25, socket, Cause::Taken, Some(named(4, "bash", 0)));
    assert_eq!([24, 25].map(|at| users(&story, at)), ["sh 0 -", "bash 0 -"]);
    // It changed earlier than was seen first.
    story.saw_as(45, socket, Cause::Taken, Some(named(4, "curl", 33)));
    assert_eq!([44, 45].map(|at| users(&story, at)), ["curl 0 /bin/curl", "curl 33 -"]);
    // What it was called before or behind all that was seen says nothing about now.
    story.register.learn(&News::Described(named(4, "wget", 33)));
    assert_eq!([49, 50].map(|at| users(&story, at)), ["curl 33 -"; 2]);
    // Sockets may be seen by a link to the program, and from another group.
    let by_link = |cgroup: &str| {
        let (program, cgroup) = (Some("/link".to_owned()), Some(cgroup.to_owned()));
        Arc::new(Process { program, cgroup, ..(*named(4, "curl", 33)).clone() })
    };
    let program = Some("/bin/curl".to_owned());
    story.register.learn(&News::Described(Arc::new(Process { program, ..(*named(4, "curl", 33)).clone() })));
    story.saw_as(60, socket, Cause::Taken, Some(by_link("/a")));
    story.saw_as(70, socket, Cause::Taken, Some(by_link("/b")));
    assert_eq!([50, 60, 70].map(|at| users(&story, at)), ["curl 33 /bin/curl"; 3]);
    // Another program, a moment after the last packet of the one before, and back.
    story.register.learn(&News::Executed { at: 80, process: named(4, "bash", 33) });
    story.register.learn(&News::Executed { at: 90, process: named(4, "curl", 33) });
    let at = [79, 80, 89, 90].map(|at| users(&story, at));
    assert_eq!(at, ["curl 33 /bin/curl", "bash 33 -", "bash 33 -", "curl 33 -"]);
}
