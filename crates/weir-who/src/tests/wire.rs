//! News as bytes and back.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn text() -> impl Strategy<Value = String> {
    select(vec!["", "nginx", "a\u{1}b", "\u{fffd}", "/usr/bin/ä"]).prop_map(str::to_owned)
}

fn container() -> impl Strategy<Value = Container> {
    (text(), option::of(text()), text()).prop_map(|(id, name, engine)| Container { id, name, engine })
}

fn any_process() -> impl Strategy<Value = Arc<Process>> {
    let numbers = (0..3_u32, any::<u64>(), any::<u32>(), any::<u32>());
    let texts = (text(), option::of(text()), option::of(vec(text(), 0..3)), option::of(text()));
    (numbers, texts, option::of(container()), option::of(text())).prop_map(
        |((number, started, parent, user), (name, program, arguments, cgroup), container, unit)| {
            let id = ProcessId { number, started };
            Arc::new(Process { id, parent, user, name, program, arguments, cgroup, container, unit })
        },
    )
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    (any::<IpAddr>(), any::<u16>()).prop_map(|(address, port)| Endpoint { address, port })
}

fn sighting(processes: Vec<Arc<Process>>) -> impl Strategy<Value = Sighting> {
    let kinds = [SocketKind::Stream, SocketKind::Datagram, SocketKind::Raw, SocketKind::Other];
    let causes = [
        Cause::Found,
        Cause::Created,
        Cause::Bound,
        Cause::Connecting,
        Cause::Sent,
        Cause::Listening,
        Cause::Accepted,
        Cause::Taken,
        Cause::Established,
        Cause::Closed,
    ];
    let numbers = (any::<u64>(), any::<u64>(), any::<u64>());
    let what = (select(kinds.to_vec()), any::<u8>(), select(causes.to_vec()));
    (numbers, what, endpoint(), option::of(endpoint()), option::of(select(processes))).prop_map(
        |((at, socket, namespace), (kind, protocol, cause), local, remote, process)| Sighting {
            at,
            socket,
            namespace,
            kind,
            protocol,
            local,
            remote,
            cause,
            process,
        },
    )
}

fn news() -> impl Strategy<Value = Vec<News>> {
    vec(any_process(), 1..4).prop_flat_map(|processes| {
        let described = select(processes.clone()).prop_map(News::Described);
        let executed = (any::<u64>(), select(processes.clone()))
            .prop_map(|(at, process)| News::Executed { at, process });
        let (a, b) = (any::<u64>(), any::<u64>());
        let address = (a, b, any::<IpAddr>(), any::<bool>()).prop_map(|(at, namespace, address, is_gone)| {
            if is_gone {
                News::AddressGone { at, namespace, address }
            } else {
                News::Address { at, namespace, address }
            }
        });
        let interface = (any::<u32>(), any::<u64>())
            .prop_map(|(interface, namespace)| News::Interface { interface, namespace });
        let lost = (any::<u64>(), any::<u64>()).prop_map(|(at, sightings)| News::Lost { at, sightings });
        let one = prop_oneof![4 => sighting(processes).prop_map(News::Sighting), 1 => described, 1 => executed, 1 => address, 1 => interface, 1 => lost];
        vec(one, 0..12)
    })
}

fn encoded(news: &[News]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(news, &mut bytes);
    bytes
}

/// Where each entry begins, as the format says it, and where the last one ends.
fn entries(bytes: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    let mut at = 0;
    while at < bytes.len() {
        let (mut length, mut shift) = (0, 0);
        at += 1;
        loop {
            length |= usize::from(bytes[at] & 0x7f) << shift;
            shift += 7;
            at += 1;
            if bytes[at - 1] < 0x80 {
                break;
            }
        }
        at += length;
        starts.push(at);
    }
    starts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_news_come_back(first in news(), second in news(), unknown in vec(any::<u8>(), 0..9)) {
        let bytes = encoded(&first);
        prop_assert_eq!(&decode(&bytes).expect("it was encoded"), &first);
        // Bytes behind others, or in front.
        let mut both = bytes.clone();
        encode(&second, &mut both);
        prop_assert_eq!(decode(&both).expect("both were"), [&first[..], &second[..]].concat());
        prop_assert_eq!(&decode(&both[bytes.len()..]).expect("alone, too"), &second);
        // What later versions add: entries between others, and more in each.
        let mut more = Vec::new();
        for pair in entries(&bytes).windows(2) {
            let entry = &bytes[pair[0]..pair[1]];
            let head = 1 + entry[1..].iter().position(|byte| *byte < 0x80).expect("its length") + 1;
            more.push(entry[0]);
            let length = u16::try_from(entry.len() - head + unknown.len()).expect("short");
            more.extend([0x80 | (length & 0x7f).to_le_bytes()[0], (length >> 7).to_le_bytes()[0]]);
            more.extend(&entry[head..]);
            more.extend(&unknown);
            more.extend([200, u8::try_from(unknown.len()).expect("short")]);
            more.extend(&unknown);
        }
        prop_assert_eq!(decode(&more).expect("it is left out"), first);
    }

    #[test]
    fn cut_bytes_are_told(news in news()) {
        let bytes = encoded(&news);
        let starts = entries(&bytes);
        for length in 0..bytes.len() {
            let decoded = decode(&bytes[..length]);
            // Nobody can tell that whole entries are missing.
            prop_assert_eq!(decoded.is_ok(), length > 0 && starts.contains(&length), "{}", length);
        }
    }

    #[test]
    fn other_bytes_do_no_harm(news in news(), flips in vec((any::<usize>(), any::<u8>()), 1..9), noise in vec(any::<u8>(), 0..99)) {
        let mut bytes = encoded(&news);
        for (at, with) in flips {
            let at = at % bytes.len();
            bytes[at] ^= with;
        }
        for bytes in [bytes, noise.clone(), [&[0, 1, 1][..], &noise].concat()] {
            if let Ok(news) = decode(&bytes) {
                prop_assert!(news.len() <= bytes.len());
                let mut register = Register::new(&Settings { sockets: 4, linger: 5 });
                news.iter().for_each(|news| register.learn(news));
                prop_assert_eq!(decode(&encoded(&news)), Ok(news));
            }
        }
    }
}

#[test]
fn a_process_is_written_once() {
    let process = process(4);
    let described = News::Described(Arc::clone(&process));
    let same = News::Described(Arc::new((*process).clone()));
    let once = encoded(std::slice::from_ref(&described)).len();
    assert_eq!(encoded(&[described.clone(), described, same]).len(), once + 2 * 3);
}

#[test]
fn what_is_wrong_is_said() {
    let fails = |bytes: &[u8]| decode(bytes).expect_err("it is no news").to_string();
    let begun = |bytes: &[u8]| fails(&[&[0, 1, 1][..], bytes].concat());
    assert_eq!(fails(&[]), "cannot read news of sockets: there are no bytes");
    assert_eq!(
        fails(&[0, 1, 2]),
        "cannot read news of sockets at byte 0: they have version 2, not 1; try a newer weir"
    );
    assert_eq!(fails(&[7, 0]), "cannot read news of sockets at byte 0: they do not begin as news do");
    assert_eq!(
        begun(&[3, 1, 1]),
        "cannot read news of sockets at byte 3: they name a process that they do not tell"
    );
    assert_eq!(begun(&[3, 1, 0]), begun(&[3, 1, 1]));
    assert_eq!(begun(&[7, 3, 1, 2, 3]), "cannot read news of sockets at byte 3: they are cut");
    assert_eq!(
        begun(&[&[4, 17][..], &[0; 16], &[5]].concat()),
        "cannot read news of sockets at byte 3: there are no addresses of IP version 5"
    );
    // Lengths that lie: of an entry, of a text, of arguments, and more than a number holds.
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
    assert_eq!(begun(&[&[9][..], &huge].concat()), "cannot read news of sockets at byte 3: they are cut");
    for (flags, rest) in [(0, &huge[..]), (2, &[&[0][..], &huge].concat())] {
        let entry = [&[0; 20][..], &[flags], rest].concat();
        let length = u8::try_from(entry.len()).expect("short");
        assert_eq!(
            begun(&[&[1, length][..], &entry].concat()),
            "cannot read news of sockets at byte 3: they are cut"
        );
    }
    assert_eq!(
        begun(&[&[9][..], &huge[..9], &[2]].concat()),
        "cannot read news of sockets at byte 3: a count has more than 64 bits"
    );
    let entry = [&[0; 21][..], &[1, 0xff]].concat();
    assert_eq!(
        begun(&[&[1, 23][..], &entry].concat()),
        "cannot read news of sockets at byte 3: a text is not UTF-8"
    );
}

#[test]
fn sockets_of_later_kinds_are_left_out() {
    let sighting = |bytes: [u8; 3]| {
        let end = [4, 10, 0, 0, 1, 9, 0];
        let entry = [&[0; 24][..], &bytes, &[0], &end, &[0]].concat();
        let length = u8::try_from(entry.len()).expect("short");
        [&[0, 1, 1, 2, length][..], &entry].concat()
    };
    assert_eq!(decode(&sighting([3, 6, 9])).map(|news| news.len()), Ok(1));
    assert_eq!(decode(&sighting([4, 6, 9])), Ok(vec![]));
    assert_eq!(decode(&sighting([3, 6, 10])), Ok(vec![]));
}

#[test]
fn long_texts_are_cut() {
    let long = "\u{fc}".repeat(4000);
    let told = Process {
        id: ProcessId { number: 1, started: 2 },
        parent: 0,
        user: 0,
        name: "a".to_owned(),
        program: Some(long.clone()),
        arguments: Some(vec!["b".repeat(4000), "c".repeat(95), "d".to_owned()]),
        cgroup: None,
        container: None,
        unit: Some(format!("x{long}")),
    };
    let mut bytes = Vec::new();
    encode(&[News::Described(Arc::new(told.clone()))], &mut bytes);
    let read = decode(&bytes).expect("news");
    let [News::Described(read)] = &read[..] else { panic!("{read:?}") };
    assert_eq!(read.program.as_deref(), Some(&long[..4096]));
    assert_eq!(read.unit.as_deref().map(str::len), Some(4095), "no letter is cut");
    assert_eq!(read.arguments.as_deref().map(<[_]>::len), Some(1), "all of them together");
}
