//! Packets with a mark are left out, where the mark is to be seen.

use std::num::NonZeroU32;

use weir::send::{MARK, Sender};
use weir::{Direction, Filter, Mode, SourceChoice};
use weir_lab::{Network, Traffic, Veth, root_test};

use crate::common::{drain, take};
use crate::{assert_closed, on_rx};

const OURS: NonZeroU32 = NonZeroU32::new(MARK).unwrap();

#[root_test]
fn root_packets_that_weir_sends_are_left_out_in_their_namespace() {
    let network = Network::new(Veth::default()).unwrap();
    let traffic = Traffic::new(60).unwrap().flows(2).unwrap();
    let send = |name: &str, mark: Option<u32>| {
        let mut sender = Sender::to(name).mark(mark).open().unwrap();
        for frame in traffic.frames(0..10) {
            sender.send(&frame).unwrap();
        }
    };
    let (rx, tx) = (&network.pair().rx.name, &network.pair().tx.name);
    for source in [SourceChoice::Tc, SourceChoice::XdpTc, SourceChoice::Auto] {
        for filter in [None, Some("src port 1025")] {
            network.rx().run(|| {
                let builder = on_rx(&network).source(source).direction(Direction::Both).leave_out_mark(OURS);
                let builder = filter.map(Filter::new).into_iter().fold(builder, weir::Builder::filter);
                let mut capture = builder.open().unwrap();
                send(rx, Some(MARK)); // sent here
                send(rx, Some(MARK + 1));
                send(rx, None);
                network.tx().run(|| send(tx, Some(MARK))); // sent elsewhere
                let mut frames = Vec::new();
                let mut look = |chunk: &weir::Chunk| {
                    frames.extend(chunk.packets().map(|packet| (packet.direction, packet.data.to_vec())));
                };
                take(&mut capture, 40, &mut look);
                drain(&mut capture, |chunk| look(&chunk));
                let account = capture.stats().unwrap();
                assert_closed(&account);
                let each = if filter.is_some() { 5 } else { 10 };
                let total = account.total();
                assert_eq!(
                    (total.seen, total.filtered, total.captured),
                    (40, Some(40 - 3 * each), 3 * each),
                    "{source:?} {filter:?} {account:?}"
                );
                let sent = frames.iter().filter(|(direction, _)| *direction == Some(Direction::Out)).count();
                assert_eq!(sent as u64, 2 * each, "{source:?} {filter:?}");
            });
        }
    }
}

#[root_test]
fn root_sources_that_see_no_marks_are_refused() {
    let network = Network::new(Veth::default()).unwrap();
    network.rx().run(|| {
        for (source, mode) in [
            (SourceChoice::Xdp, Mode::Pass),
            (SourceChoice::AfPacket, Mode::Pass),
            (SourceChoice::AfXdp, Mode::Exclusive),
            (SourceChoice::Auto, Mode::Exclusive),
        ] {
            let builder = on_rx(&network).source(source).mode(mode).leave_out_mark(OURS);
            let error = builder.open().unwrap_err();
            assert!(error.to_string().contains("marks"), "{source:?}: {error}");
        }
        let queues = on_rx(&network).queues(0..=0).leave_out_mark(OURS).open().unwrap_err();
        let any = crate::common::capture().interface("any").leave_out_mark(OURS).open().unwrap_err();
        for error in [queues, any] {
            assert!(
                matches!(error, weir::Error::Conflict { .. }) && error.to_string().contains("marks"),
                "{error}"
            );
        }
    });
}
