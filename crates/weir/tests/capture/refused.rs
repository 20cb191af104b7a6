//! Captures end as they should where the kernel refuses a call for that.

use std::process::Command;

use weir::{Capture, Mode, SourceChoice};
use weir_lab::{Call, FrameSender, Network, Traffic, Veth, refuse};
use weir_sys::bpf::query;
use weir_sys::filter::Side;

use crate::common::{drain, take_of};
use crate::{assert_closed, on_rx};

each_way!(a_capture_ends_without_the_calls_of_its_end:
    root_xdp(Xdp, Pass),
    root_tc(Tc, Pass),
    root_xdp_tc(XdpTc, Pass),
    root_af_xdp(AfXdp, Exclusive),
);

fn a_capture_ends_without_the_calls_of_its_end(source: SourceChoice, mode: Mode) {
    let network = Network::new(Veth::default()).unwrap();
    let frames = Traffic::new(60).unwrap().between(network.pair()).frames(0..20);
    let rx = &network.pair().rx;
    let sender = FrameSender::new(&network.pair().tx).unwrap();
    network.rx().run(|| {
        let open = || on_rx(&network).source(source).mode(mode).open().unwrap();
        let sees_all = |capture: &mut Capture| {
            let mut packets = 0;
            take_of(
                capture,
                || sender.send_frames(&frames).unwrap(),
                |chunk| packets += chunk.packets().count(),
            );
            assert!(packets >= frames.len(), "{packets}");
        };
        // As on kernels with nohz_full processors: the counters are exact all the same.
        refuse(Call::Membarrier);
        let mut capture = open();
        sees_all(&mut capture);
        drain(&mut capture, drop);
        assert_closed(&capture.stats().unwrap());
        drop(capture);

        // A program that stays is told, and goes with the capture.
        refuse(Call::LinkDetach);
        let mut capture = open();
        sees_all(&mut capture);
        let told = capture.stop().unwrap_err().to_string();
        assert!(told.contains("detach") && told.contains("Input/output error"), "{told}");
        drop(capture);
        let link = Command::new("ip").args(["-d", "link", "show", rx.name.as_str()]).output().unwrap();
        let link = String::from_utf8_lossy(&link.stdout).into_owned();
        assert!(!link.contains("xdp"), "{link}");
        for side in [Side::Ingress, Side::Egress] {
            let programs = query::tcx(rx.index, side).unwrap();
            assert!(programs.is_none_or(|programs| programs.is_empty()), "{side:?}");
        }
        sees_all(&mut open());
    });
}
