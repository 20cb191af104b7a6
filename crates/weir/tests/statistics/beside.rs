//! Statistics of several interfaces, and beside a capture.

use std::process::Command;
use std::time::{Duration, Instant};

use weir::parts::tc_filters;
use weir::statistics::Reading;
use weir::{Capture, Change, Error, Event, Filter, SourceChoice, Statistics};
use weir_lab::{FrameSender, Network, Veth, root_test};
use weir_sys::kernel;

use super::{FILTERS, PATIENCE, TCX, ethernet, ipv4, mixture};

fn network() -> Network {
    Network::new(Veth::default()).expect("a private network")
}

/// Waits until so many received packets are counted.
fn wait_for(statistics: &mut Statistics, packets: usize) {
    let began = Instant::now();
    while statistics.read().expect("counters").total.received.packets < packets as u64 {
        assert!(began.elapsed() < PATIENCE, "packets are missing");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[root_test]
fn root_several_interfaces_add_up_and_end_one_by_one() {
    let mut network = network();
    network.connect(Veth::default()).expect("a second pair");
    let on = |name: &str| Statistics::on(name).filter("udp", Filter::new("udp"));
    let start =
        |names: &[&str]| network.rx().run(|| Statistics::start_all(names.iter().map(|name| on(name))));
    let twice = start(&["rx0", "rx1", "rx0"]).expect_err("rx0 is there already");
    assert!(matches!(twice, Error::InterfaceTwice { .. }), "{twice}");
    let mut all = start(&["rx0", "rx1"]).expect("both count");
    for (pair, packets) in network.pairs().iter().zip([3, 5]) {
        let sender = FrameSender::new(&pair.tx).expect("a sender");
        (0..packets)
            .for_each(|_| sender.send(&ethernet(None, 0x800, &ipv4(1, 17, 53, 30))).expect("a frame"));
    }
    all.iter_mut().zip([3, 5]).for_each(|(one, packets)| wait_for(one, packets));
    for (name, number) in [("rx0", 0), ("rx1", 1)] {
        assert!(!all[number].is_gone());
        let delete = || Command::new("ip").args(["link", "del", name]).status();
        assert!(network.rx().run(delete).expect("ip runs").success());
        let is_gone = |event: &Event| event.change == Change::Gone && event.interface as usize == number;
        while !Statistics::wait_any(&mut all, PATIENCE).expect("an event").iter().any(is_gone) {}
        assert!(all[number].is_gone());
    }
    let over = Statistics::wait_any(&mut all, PATIENCE).expect_err("all are gone");
    assert!(matches!(over, Error::InterfaceGone { ref name } if name == "rx1"), "{over}");
    let readings: Vec<_> = all.iter_mut().map(|one| one.read().expect("counters")).collect();
    let sum: Reading = readings.iter().sum();
    assert_eq!(readings.iter().map(|one| one.total.received.packets).collect::<Vec<_>>(), [3, 5]);
    assert_eq!((sum.total.received.packets, sum.filters[0].counts.received.packets), (8, 8));
}

#[root_test]
fn root_counted_beside_a_capture() {
    let frames = mixture(40);
    for clsact in [false, true] {
        let network = network();
        let builder = Capture::builder().interface("rx0").source(SourceChoice::Tc).filter(Filter::new("arp"));
        let builder =
            FILTERS.iter().fold(builder, |builder, filter| builder.statistics(*filter, Filter::new(*filter)));
        let builder = tc_filters(builder.chunks(8).chunk_size(64 << 10), clsact);
        let mut capture = network.rx().run(|| builder.open()).expect("a capture");
        let clsact = clsact || kernel::version() < TCX;
        let alone = Statistics::on("rx0");
        let alone = FILTERS.iter().fold(alone, |alone, filter| alone.filter(*filter, Filter::new(*filter)));
        let mut alone = network.rx().run(|| alone.start()).expect("statistics");
        let sender = FrameSender::new(&network.pair().tx).expect("a sender");
        frames.iter().for_each(|frame| sender.send(frame).expect("a frame"));
        wait_for(&mut capture.statistics()[0], frames.len());

        let switch = capture.statistics()[0].switch().expect("tc has one").clone();
        let off = switch.turn(false);
        assert_eq!((off.is_ok(), switch.is_on()), (!clsact, clsact), "{off:?}");
        frames.iter().for_each(|frame| sender.send(frame).expect("a frame"));
        wait_for(&mut alone, 2 * frames.len());
        capture.stop().expect("it stops");
        alone.stop().expect("they stop");
        assert!(
            !switch.is_on() && switch.turn(true).is_ok() && !switch.is_on(),
            "there is nothing to switch"
        );

        let (beside, alone) =
            (capture.statistics()[0].read().expect("counters"), alone.read().expect("counters"));
        let rounds = if clsact { 1 } else { 2 };
        for (one, other) in beside.filters.iter().zip(&alone.filters) {
            assert_eq!(one.name, other.name);
            assert_eq!(one.counts.received.packets * rounds, other.counts.received.packets, "{}", one.name);
            assert_eq!(one.counts.received.bytes * rounds, other.counts.received.bytes, "{}", one.name);
        }
        let all = frames.len() as u64 * 2;
        assert_eq!((beside.total.received.packets * rounds, alone.total.received.packets), (all, all));
        let total = capture.stats().expect("the account").total();
        assert_eq!((total.seen, total.captured, total.filtered), (all, 80, Some(all - 80)));
    }
}
