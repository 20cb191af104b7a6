//! The records that the programs of xdp and tc write, byte by byte, and what they count. TCP super-frames are cut as a slow
//! twin cuts them.

mod twin;

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
use rustix::time::{DynamicClockId, Timespec, clock_gettime_dynamic};
use weir_bpf::pool::{PoolMaps, PoolOptions, Stamp};
use weir_bpf::writers::{Driven, Writers};
use weir_bpf::{tc, xdp};
use weir_filter::graph::{Graph, TermId, Width};
use weir_ring::{Consumer, Counters, Doorbell, Pool, Shape, SharedMaps};
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::cpu::Processors;
use weir_sys::testrun;

/// Programs take privileges that tests may run without; the environment says whether that is in order.
fn permitted() -> bool {
    let Err(error) = Map::new(MapKind::Array, 4, 8, 1) else { return true };
    weir_skip::this_test(error);
    false
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    Xdp { fragments: bool },
    Ingress { segments: bool },
    Egress,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    data: Vec<u8>,
    original: usize,
    direction: Option<u32>,
    lost_before: u64,
    time: u64,
}

/// A program with a pool of its own.
struct Writer {
    hook: Hook,
    xdp: Option<xdp::Program>,
    tc: Option<tc::Programs>,
    consumers: Vec<Consumer>,
    maps: PoolMaps,
}

/// Chunks of a queue, and their size: one is full after a few packets, and soon they are written to again. There are more than
/// the warm ring gets, so some come from the cold one.
const CHUNKS: u32 = 6;
const CHUNK: u32 = 4096;
const INTERFACE: u32 = 0x0123_4567;

#[derive(Clone, Copy)]
struct Settings {
    snap_len: u32,
    directions: bool,
    stamp: Stamp,
    ethernet: bool,
}

const PLAIN: Settings = Settings { snap_len: 9000, directions: false, stamp: Stamp::None, ethernet: true };

impl Writer {
    fn load(hook: Hook, settings: Settings) -> Self {
        // A processor is a writer: stay on one.
        let mut only = CpuSet::new();
        only.set(sched_getcpu());
        sched_setaffinity(None, &only).unwrap();
        let processors = Processors::online().unwrap();
        let queues = if matches!(hook, Hook::Xdp { .. }) { 1 } else { processors.count() };
        let room = settings.snap_len.max(1500 + tc::Segments::HEADERS);
        let shape = Shape::new(queues, CHUNKS, CHUNK, room).unwrap();
        let pool = PoolOptions {
            interface_id: INTERFACE,
            stamp: settings.stamp,
            directions: settings.directions,
            ethernet: settings.ethernet,
            ..PoolOptions::of(&shape, settings.snap_len)
        };
        let (mut ours, mut theirs) = (None, None);
        let maps = if let Hook::Xdp { fragments } = hook {
            let options = xdp::Options {
                pool,
                steering: None,
                sampling: None,
                exclusive: false,
                fragments,
                writers: Writers::Queues(Driven { index: 1, hands_on: true }),
                chosen: None,
                tags_of: None,
                rules: false,
                counting: None,
            };
            let (program, maps) = xdp::Program::load(&options).unwrap_or_else(|error| panic!("{error}"));
            ours = Some(program);
            maps
        } else {
            let segments =
                (hook == Hook::Ingress { segments: true }).then_some(tc::Segments { payload: 1500 });
            let options = tc::Options {
                pool,
                processors,
                steering: None,
                sampling: None,
                segments,
                left_out: None,
                left_out_mark: None,
                ingress: hook != Hook::Egress,
                egress: hook == Hook::Egress,
                rules: false,
            };
            let (programs, maps) = tc::Programs::load(&options).unwrap_or_else(|error| panic!("{error}"));
            theirs = Some(programs);
            maps
        };
        let shared = SharedMaps {
            pool: maps.pool(),
            chunks: maps.chunks(),
            queues: maps.queues(),
            orders: maps.orders(),
        };
        let consumers = Pool::shared(shape, &shared).unwrap();
        Self { hook, xdp: ours, tc: theirs, consumers, maps }
    }

    fn tc(&self) -> BorrowedFd<'_> {
        let programs = self.tc.as_ref().expect("it is tc");
        programs.ingress().or_else(|| programs.egress()).expect("one is loaded")
    }

    fn run(&self, frame: &[u8]) {
        match &self.xdp {
            Some(program) => drop(program.run(frame, 1).unwrap()),
            None => drop(testrun::run(self.tc(), frame, 1).unwrap()),
        }
    }

    /// All records that were written since the last time.
    fn take(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        for consumer in &mut self.consumers {
            while let Some(part) = consumer.take().unwrap() {
                let before = records.len();
                parse(part.as_ref(), &mut records);
                assert_eq!(records.len() - before, part.records() as usize);
            }
        }
        records
    }

    fn counters(&self) -> Counters {
        let mut sum = Counters::default();
        for consumer in &self.consumers {
            let counters = consumer.gauge().counters();
            sum.seen += counters.seen;
            sum.captured += counters.captured;
            sum.bytes += counters.bytes;
            sum.lost += counters.lost;
            sum.errors += counters.errors;
            sum.filtered += counters.filtered;
            sum.sampled_out += counters.sampled_out;
        }
        sum
    }
}

/// Enhanced packet blocks (draft-ietf-opsawg-pcapng, section 4.3), nothing else, with padding of zeros.
fn parse(mut bytes: &[u8], records: &mut Vec<Record>) {
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        let half = |at: usize| u16::from_ne_bytes(*bytes[at..].first_chunk().unwrap());
        let (total, captured) = (word(4) as usize, word(20) as usize);
        assert_eq!((word(0), word(8), word(total - 4) as usize), (6, INTERFACE, total));
        let padded = captured.next_multiple_of(4);
        assert!(bytes[28 + captured..28 + padded].iter().all(|&byte| byte == 0), "{:02x?}", &bytes[..total]);
        let (mut at, mut direction, mut lost_before) = (28 + padded, None, 0);
        while at < total - 4 && word(at) != 0 {
            match (half(at), half(at + 2)) {
                (2, 4) => direction = Some(word(at + 4)),
                (4, 8) => lost_before = u64::from_ne_bytes(*bytes[at + 4..].first_chunk().unwrap()),
                option => panic!("{option:?}"),
            }
            at += 4 + usize::from(half(at + 2));
        }
        // The end of options, if there are any.
        let end = if at == 28 + padded { 0 } else { 4 };
        assert_eq!(at + end, total - 4, "{:02x?}", &bytes[..total]);
        records.push(Record {
            data: bytes[28..28 + captured].to_vec(),
            original: word(24) as usize,
            direction,
            lost_before,
            time: u64::from(word(12)) << 32 | u64::from(word(16)),
        });
        bytes = &bytes[total..];
    }
}

/// A frame of IPv4 with bytes that differ from one another, and from 0.
fn frame(length: usize, first: usize) -> Vec<u8> {
    let mut frame: Vec<u8> =
        (0..length).map(|at| u8::try_from((at * 7 + first * 31) % 255 + 1).unwrap()).collect();
    frame[12..14].copy_from_slice(&[8, 0]);
    frame
}

/// Whether a frame is written as it is, cut at the snap length.
fn copied(writer: &mut Writer, settings: Settings, lengths: impl Iterator<Item = usize>) {
    let mut expected = writer.counters();
    for length in lengths {
        let frame = frame(length, length);
        writer.run(&frame);
        let captured = length.min(settings.snap_len as usize);
        let direction = settings.directions.then_some(if writer.hook == Hook::Egress { 2 } else { 1 });
        let record =
            Record { data: frame[..captured].to_vec(), original: length, direction, lost_before: 0, time: 0 };
        assert_eq!(writer.take(), [record], "{:?}, {length} bytes", writer.hook);
        expected.seen += 1;
        expected.captured += 1;
        expected.bytes += length as u64;
        assert_eq!(writer.counters(), expected, "{:?}, {length} bytes", writer.hook);
    }
    assert_eq!(writer.maps.strays(), weir_bpf::Strays::default());
}

/// A packet socket's frames begin here; the kernel makes no packet of tc's shorter ones.
const SHORTEST: usize = 40;
/// What fits into one buffer of a test run.
const LONGEST: usize = 3300;

#[test]
fn every_length_is_copied_whole() {
    if !permitted() {
        return;
    }
    for hook in [Hook::Xdp { fragments: false }, Hook::Ingress { segments: false }] {
        let mut writer = Writer::load(hook, PLAIN);
        copied(&mut writer, PLAIN, SHORTEST..LONGEST);
    }
    // In several buffers.
    let mut writer = Writer::load(Hook::Xdp { fragments: true }, PLAIN);
    copied(&mut writer, PLAIN, (14..2200).step_by(13).chain([3000, 4095, 4096, 4097, 8999, 9000]));
}

#[test]
fn every_snap_length_cuts_and_the_original_length_is_counted() {
    if !permitted() {
        return;
    }
    for snap_len in [1, 2, 3, 13, 14, 31, 32, 33, 60, 64, 65, 66, 127, 128, 129, 130, 1000, 2047, 2048, 2049]
    {
        let settings = Settings { snap_len, directions: snap_len % 2 == 0, ..PLAIN };
        for hook in [Hook::Xdp { fragments: false }, Hook::Ingress { segments: false }, Hook::Egress] {
            let mut writer = Writer::load(hook, settings);
            let near = (snap_len as usize).saturating_sub(3).max(SHORTEST)..snap_len as usize + 4;
            copied(&mut writer, settings, near.chain([SHORTEST, 61, 150, 1514, 3000]));
        }
    }
}

#[test]
fn what_finds_no_room_is_counted_and_the_next_record_tells_it() {
    if !permitted() {
        return;
    }
    for (hook, directions) in
        [(Hook::Xdp { fragments: false }, false), (Hook::Ingress { segments: false }, true)]
    {
        let mut writer = Writer::load(hook, Settings { directions, ..PLAIN });
        let mut seen = 0;
        for round in 0..20 {
            // A record has 32 bytes besides the packet, and begins below the size of a chunk.
            let (length, more) = (100 + round * 16, round as u64 % 3);
            while writer.counters().lost == 0 || writer.counters().lost % 7 != more {
                writer.run(&frame(length, round));
                seen += 1;
            }
            let (counters, records) = (writer.counters(), writer.take());
            assert_eq!((counters.seen, counters.captured + counters.lost), (seen, seen));
            let overhead = if directions { 44 } else { 32 };
            let told = records.iter().filter(|record| record.lost_before > 0).count() as u64;
            let bytes =
                records.len() as u64 * (length as u64 + overhead) + told * if directions { 12 } else { 16 };
            assert!(bytes > u64::from(CHUNKS * CHUNK) - 600, "chunks are full: {bytes}");
            assert!(records.iter().all(|record| record.data == frame(length, round)));
            writer.run(&frame(60, 1));
            seen += 1;
            let [record] = &writer.take()[..] else { panic!("one") };
            let told: u64 = record.lost_before;
            assert!(told > 0 && told <= counters.lost);
            writer.run(&frame(60, 1));
            seen += 1;
            let [record] = &writer.take()[..] else { panic!("one") };
            assert_eq!((record.lost_before, record.original), (0, 60), "it is told once");
        }
    }
}

#[test]
fn super_frames_are_cut_as_a_slow_twin_cuts_them() {
    if !permitted() {
        return;
    }
    let hook = Hook::Ingress { segments: true };
    for (snap_len, ethernet) in [(9000, true), (70, true), (9000, false)] {
        let mut writer = Writer::load(hook, Settings { snap_len, ethernet, ..PLAIN });
        let frames = twin::frames().into_iter().filter(|frame| frame.ethernet == ethernet);
        let mut expected = Counters::default();
        for frame in frames {
            let segments = frame.segments();
            let payload = u32::try_from(frame.size).unwrap();
            testrun::run_super_frame(writer.tc(), &frame.bytes(), payload)
                .unwrap_or_else(|error| panic!("{}: {error}", frame.name));
            let name = format!("{}, IPv6: {}", frame.name, frame.v6);
            let found: Vec<_> =
                writer.take().into_iter().map(|record| (record.original, record.data)).collect();
            let cut = |segment: &Vec<u8>| segment[..segment.len().min(snap_len as usize)].to_vec();
            let wanted: Vec<_> = segments.iter().map(|segment| (segment.len(), cut(segment))).collect();
            for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
                assert_eq!(found, wanted, "segment {number} of {name}");
            }
            assert_eq!(found.len(), wanted.len(), "{name}");
            expected.seen += segments.len() as u64;
            expected.captured += segments.len() as u64;
            expected.bytes += segments.iter().map(Vec::len).sum::<usize>() as u64;
            assert_eq!(writer.counters(), expected, "{name}");
        }
        assert!(expected.seen > 4, "{expected:?}");
    }
}

/// Nanoseconds of the clock that programs read.
fn now() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime_dynamic(DynamicClockId::Tai).unwrap();
    u64::try_from(tv_sec * 1_000_000_000 + tv_nsec).expect("after 1970")
}

#[test]
fn records_have_the_time_at_which_they_were_written() {
    if !permitted() {
        return;
    }
    const LATER: u64 = 0x1234_5678_9abc;
    for hook in [Hook::Xdp { fragments: false }, Hook::Ingress { segments: false }] {
        let mut writer = Writer::load(hook, Settings { stamp: Stamp::Packet, ..PLAIN });
        for consumer in &writer.consumers {
            consumer.gauge().set_clock_offset(i64::try_from(LATER).expect("it fits"));
        }
        let mut before = now();
        for _ in 0..100 {
            writer.run(&frame(60, 1));
            let [record] = &writer.take()[..] else { panic!("one") };
            let after = now();
            assert!((before..=after).contains(&(record.time - LATER)), "{before} {after} {record:?}");
            before = after;
        }
    }
}

/// So many packets of a tick have a time of their own; those after them share one.
#[test]
fn of_many_packets_in_one_tick_the_later_share_their_time() {
    if !permitted() {
        return;
    }
    const EXACT: usize = 64;
    const SHARE: usize = 32;
    let mut writer = Writer::load(Hook::Xdp { fragments: false }, Settings { stamp: Stamp::Batch, ..PLAIN });
    let expected: Vec<usize> = [[1; EXACT].to_vec(), vec![SHARE; 5], vec![25]].concat();
    let began = Instant::now();
    let mut found = Vec::new();
    // A tick may end in the middle.
    while found != expected {
        assert!(began.elapsed() < Duration::from_secs(60), "{found:?}");
        // The ticks of any kernel are shorter.
        std::thread::sleep(Duration::from_millis(11));
        let earliest = now();
        writer.xdp.as_ref().expect("it is XDP").run(&frame(14, 1), 249).unwrap();
        let times: Vec<u64> = writer.take().iter().map(|record| record.time).collect();
        assert!(times.is_sorted() && times[0] >= earliest && times[248] <= now(), "{times:?}");
        found = times.chunk_by(|one, other| one == other).map(<[u64]>::len).collect();
    }
}

#[test]
fn the_doorbell_rings_once_when_as_much_is_written_as_was_asked_for() {
    if !permitted() {
        return;
    }
    let writer = Writer::load(Hook::Xdp { fragments: false }, PLAIN);
    let doorbell = Doorbell::new(writer.maps.doorbell().try_clone_to_owned().unwrap()).unwrap();
    let rings_after_one = || {
        writer.run(&frame(60, 1));
        let mut wanted = [PollFd::new(&doorbell, PollFlags::IN)];
        let rung = poll(&mut wanted, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0;
        doorbell.quiet();
        rung
    };
    let [consumer] = &writer.consumers[..] else { panic!("XDP has one queue") };
    consumer.wake_never();
    assert!(!rings_after_one());
    // With one of 92 bytes before.
    consumer.wake_after(92 * 3);
    assert_eq!([(); 4].map(|()| rings_after_one()), [false, true, false, false]);
    consumer.wake_after(92 * 6 + 1);
    assert_eq!([(); 4].map(|()| rings_after_one()), [false, true, false, false]);
    consumer.wake_after(0);
    assert_eq!([(); 2].map(|()| rings_after_one()), [true, false]);
    consumer.wake_never();
    assert!(!rings_after_one());
}

/// A filter that looks at the first byte, which is 2 in all frames of [`twin::frames`].
fn begins_with(byte: u32) -> Graph {
    let mut graph = Graph::new(1);
    let load = graph.load(None, 0, Width::Byte);
    let root = graph.equals(load, byte, (Graph::ACCEPT, Graph::REFUSE), TermId(0));
    graph.set_root(root);
    graph
}

#[test]
fn what_a_filter_refuses_is_counted_as_the_segments_it_would_have_been() {
    if !permitted() {
        return;
    }
    for hook in [Hook::Ingress { segments: true }, Hook::Ingress { segments: false }] {
        let mut writer = Writer::load(hook, PLAIN);
        let loader = writer.maps.gate().loader().unwrap().expect("it is there");
        let [wanted, unwanted] = [2, 3].map(|byte| loader.load(&begins_with(byte), &[]).unwrap());
        let mut expected = Counters::default();
        for frame in twin::frames().into_iter().filter(|frame| frame.ethernet) {
            let payload = u32::try_from(frame.size).unwrap();
            let segments =
                if hook == (Hook::Ingress { segments: true }) { frame.segments().len() } else { 1 };
            for (filter, is_wanted) in [(&wanted, true), (&unwanted, false)] {
                writer.maps.gate().set(Some(filter)).unwrap();
                testrun::run_super_frame(writer.tc(), &frame.bytes(), payload).unwrap();
                assert_eq!(writer.take().len(), if is_wanted { segments } else { 0 }, "{}", frame.name);
                expected.seen += segments as u64;
                if is_wanted {
                    let bytes =
                        if segments == 1 { frame.bytes().len() } else { frame.segments().concat().len() };
                    expected.captured += segments as u64;
                    expected.bytes += bytes as u64;
                } else {
                    expected.filtered += segments as u64;
                }
                let found = writer.counters();
                assert_eq!(found, expected, "{}", frame.name);
            }
        }
        assert!(expected.filtered > 100, "{expected:?}");
    }
}
