//! Captures on some receive queues only. Which queue a frame arrives on is the kernel's choice, by its flow; a program that
//! only counts says which it was.

use std::collections::BTreeMap;
use std::process::Command;

use weir::{
    Builder, Capture, CaptureStats, Direction, Error, Filter, Mode, Setting, SourceChoice, SourceKind, Steer,
};
use weir_lab::programs::hooks::{Action, Count};
use weir_lab::{FrameSender, Hook, Network, StackCounters, Traffic, Veth, root_test};
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::link::links;
use weir_sys::netns::NetNs;
use weir_sys::packet::Sender;

use crate::common::{self, PATIENCE, drain, take, wait_until};
use crate::{assert_closed, on_rx};

/// Frames of 64 flows.
const FRAMES: u64 = 512;

/// An interface with four receive queues.
struct Lab {
    network: Network,
    frames: Vec<Vec<u8>>,
    /// How many of the frames arrive on each queue.
    spread: Vec<u64>,
}

impl Lab {
    fn new(veth: Veth) -> Self {
        let network = Network::new(veth.queues(4)).unwrap();
        let frames = Traffic::new(60).unwrap().between(network.pair()).flows(64).unwrap().frames(0..FRAMES);
        let hook = Hook::attach(&network.pair().rx, Action::Pass).unwrap();
        send(&network, &frames);
        assert_eq!(hook.wait_for(FRAMES, PATIENCE), FRAMES);
        let spread = hook.by_queue();
        assert!(spread.len() == 4 && spread.iter().all(|&packets| packets > 0), "{spread:?}");
        Self { network, frames, spread }
    }

    fn send(&self) {
        send(&self.network, &self.frames);
    }

    /// Packets that have reached the host's stack.
    fn to_stack(&self) -> u64 {
        StackCounters::read(self.network.rx()).unwrap().get("IpInReceives")
    }

    fn wait_for_stack(&self, packets: u64) {
        wait_until(|| self.to_stack() >= packets, || format!("{} of {packets} packets", self.to_stack()));
        assert_eq!(self.to_stack(), packets);
    }
}

fn send(network: &Network, frames: &[Vec<u8>]) {
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    frames.iter().for_each(|frame| sender.send(frame).unwrap());
}

/// Takes `packets` packets; returns how many there were on each queue.
fn taken(capture: &mut Capture, packets: u64) -> BTreeMap<u32, u64> {
    let mut queues = BTreeMap::new();
    take(capture, packets, |chunk| {
        assert!(chunk.packets().all(|packet| packet.queue == chunk.queue()));
        *queues.entry(chunk.queue()).or_default() += chunk.len() as u64;
    });
    queues
}

/// Returns the packets that were captured on each queue.
fn captured(account: &CaptureStats) -> BTreeMap<u32, u64> {
    let queues = account.interfaces[0].queues.iter();
    queues.map(|queue| (queue.queue, queue.counters.captured)).collect()
}

each_way!(chosen_queues_are_captured_and_what_arrives_on_others_is_the_hosts:
    root_xdp(Xdp, Pass),
    root_xdp_exclusive(Xdp, Exclusive),
    root_auto(Auto, Pass),
    root_auto_exclusive(Auto, Exclusive),
    root_af_xdp(AfXdp, Exclusive),
);

fn chosen_queues_are_captured_and_what_arrives_on_others_is_the_hosts(source: SourceChoice, mode: Mode) {
    let untagged = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"];
    let untagged = untagged.iter().fold(Veth::default(), |veth, feature| veth.feature(feature, false));
    // With tags beside frames the program is bound to the device and has its filter inside, otherwise it is in front.
    for veth in [Veth::default(), untagged] {
        let lab = Lab::new(veth);
        let (chosen, all) = (BTreeMap::from([1, 2].map(|queue| (queue, lab.spread[queue as usize]))), FRAMES);
        let ours: u64 = chosen.values().sum();
        let left = if mode == Mode::Exclusive { all - ours } else { all };
        lab.network.rx().run(|| {
            let mut capture = on_rx(&lab.network).queues(1..=2).source(source).mode(mode).open().unwrap();
            let interface = &capture.interfaces()[0];
            let kind = if source == SourceChoice::AfXdp { SourceKind::AfXdp } else { SourceKind::Xdp };
            assert_eq!((interface.source, interface.queues), (kind, 2), "{interface:?}");
            assert!(interface.detail.contains("only receive queues 1-2 of 4"), "{interface:?}");

            let before = lab.to_stack();
            lab.send();
            assert_eq!(taken(&mut capture, ours), chosen);
            lab.wait_for_stack(before + left);

            // Packets that do not match are the host's as well, and are counted on chosen queues only.
            capture.set_filter(Some(&Filter::new("tcp"))).unwrap();
            lab.send();
            lab.wait_for_stack(before + left + all);
            drain(&mut capture, |_| panic!("everything was taken"));
            let account = capture.stats().unwrap();
            assert_closed(&account);
            assert_eq!(captured(&account), chosen);
            let total = account.total();
            assert_eq!(
                (total.seen, total.captured, total.filtered),
                (2 * ours, ours, Some(ours)),
                "{total:?}"
            );
            assert_eq!(account.interfaces[0].strays, weir::Strays::default());
        });
    }
}

#[root_test]
fn root_a_single_queue_is_steered_to_targets() {
    let lab = Lab::new(Veth::default());
    lab.network.rx().run(|| {
        let builder = on_rx(&lab.network).queues(3..=3).source(SourceChoice::Xdp);
        let mut capture = builder.steer(Steer::RoundRobin, 2).open().unwrap();
        assert!(capture.interfaces()[0].detail.contains("only receive queue 3 of 4"));
        lab.send();
        let ours = lab.spread[3];
        // Receive queue 3 has the numbers 6 and 7, as it has among all queues.
        assert_eq!(taken(&mut capture, ours), BTreeMap::from([(6, ours.div_ceil(2)), (7, ours / 2)]));
        drain(&mut capture, drop);
        let account = capture.stats().unwrap();
        assert_closed(&account);
        let targets: Vec<_> = account.interfaces[0].queues.iter().map(|queue| queue.target).collect();
        assert_eq!(targets, [Some(0), Some(1)]);
    });
}

/// Where the writers are CPUs, queues are chosen as well.
#[root_test]
fn root_in_the_stack_queues_are_chosen_as_the_kernel_numbers_them() {
    // With fewer queues than the other end sends on, veth runs no program itself.
    let script = "
        for which in default all; do echo 1 >/proc/sys/net/ipv6/conf/$which/disable_ipv6; done
        ip link add near0 numrxqueues 2 numtxqueues 1 type veth peer name far0 numrxqueues 1 numtxqueues 3
        ip link set far0 up && ip link set near0 up";
    NetNs::new().unwrap().run(|| {
        assert!(Command::new("sh").args(["-ec", script]).status().unwrap().success());
        let index = |name| links().unwrap().into_iter().find(|link| link.name == name).unwrap().index;
        let network = Network::new(Veth::default()).unwrap();
        let frames = Traffic::new(60).unwrap().between(network.pair()).flows(64).unwrap().frames(0..FRAMES);
        let sender = Sender::new(index("far0")).unwrap();
        let send = || frames.iter().for_each(|frame| assert_eq!(sender.send(frame), Ok(60)));

        let count = Count::load(Action::Pass, 2).unwrap();
        let link = XdpLink::attach(count.program(), index("near0"), XdpHook::Generic).unwrap();
        send();
        let spread = || count.packets();
        wait_until(|| spread().iter().sum::<u64>() >= FRAMES, || format!("{:?}", spread()));
        drop(link);
        let spread = spread();
        assert!(spread.iter().all(|&packets| packets > 0), "{spread:?}");

        // A source that does not know queues is no advice.
        let hint =
            |builder: Builder| builder.filter(Filter::new("vlan 5")).open().unwrap_err().hint().unwrap();
        let near = || common::capture().interface("near0").source(SourceChoice::Xdp);
        assert_eq!(hint(near()), "use the tc source, or keep the tags");
        assert_eq!(hint(near().queues(0..=0)), "keep the tags");

        for (source, mode) in [
            (SourceChoice::Xdp, Mode::Pass),
            (SourceChoice::Auto, Mode::Exclusive),
            (SourceChoice::AfXdp, Mode::Exclusive),
        ] {
            for queue in 0..2 {
                let builder =
                    common::capture().interface("near0").queues(queue..=queue).source(source).mode(mode);
                let mut capture = builder.open().unwrap();
                let detail = &capture.interfaces()[0].detail;
                assert!(
                    detail.starts_with("generic XDP")
                        && detail.contains(&format!("only receive queue {queue} of 2")),
                    "{detail}"
                );
                send();
                let ours = spread[queue as usize];
                assert_eq!(taken(&mut capture, ours).values().sum::<u64>(), ours, "{source:?}");
                drain(&mut capture, |_| panic!("everything was taken"));
                let account = capture.stats().unwrap();
                assert_closed(&account);
                assert_eq!((account.total().seen, account.total().captured), (ours, ours), "{source:?}");
            }
        }
    });
}

#[root_test]
fn root_a_choice_that_no_source_can_make_is_refused() {
    let network = Network::new(Veth::default().queues(4)).unwrap();
    network.rx().run(|| {
        let chosen = || on_rx(&network).queues(0..=1);
        let by = |source| chosen().source(source);
        let any = common::capture().interface("any").queues(0..=0);
        let backwards = std::ops::RangeInclusive::new(2, 1);
        let table: [(Builder, &str); 11] = [
            (
                by(SourceChoice::Tc),
                "this source does not know on which queue a packet arrived; try the xdp source",
            ),
            (by(SourceChoice::XdpTc), "this source does not know on which queue"),
            (by(SourceChoice::AfPacket), "this source does not know on which queue"),
            (any.clone(), "of `any`: its packets do not tell on which queue they arrived"),
            (any.source(SourceChoice::AfPacket), "of `any`: its packets do not tell"),
            (chosen().segment(true), "only the tc source can split packets into segments"),
            (chosen().direction(Direction::Out), "sent packets have no receive queue"),
            (
                on_rx(&network).queues(3..=4),
                "cannot capture on queue 4 of `rx0`: it has 4 receive queues; try 0-3",
            ),
            (
                on_rx(&network).queues(backwards),
                "cannot capture on queues 2-1 of `rx0`: there are none; try 1-2",
            ),
            (common::capture().queues(0..=0).interface("rx0"), "no interface was added before"),
            (by(SourceChoice::AfXdp), "takes packets away from the host"),
        ];
        for (builder, text) in table {
            let error = builder.open().unwrap_err();
            assert!(error.to_string().contains(text), "{error}");
            let about = matches!(error, Error::Conflict { one: Setting::Queues | Setting::Source(_), .. });
            assert!(about || matches!(error, Error::Setting { setting: Setting::Queues, .. }), "{error:?}");
        }
        // Nothing is left behind, and the whole range is a choice, too.
        chosen().queues(0..=3).open().unwrap();
    });
}
