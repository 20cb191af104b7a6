//! Tries each source on a pair of interfaces in a temporary network namespace. Users who may not create one get the
//! checks that need no interface.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use weir::{Builder, Capture, ErrorKind, Filter, SourceChoice, parts};
use weir_sys::netns::NetNs;
use weir_sys::packet::{PacketRing, RingOptions, Sender, Traffic};
use weir_sys::{CallError, link, veth};

use super::check::{Check, CheckState, NOT_PERMITTED, THERE};
use super::privileges::setcap;
use crate::advice;

/// Interface names in the private namespace.
const RECEIVER: &str = "doctor0";
const SENDER: &str = "doctor1";

/// In order of preference, if nothing favours another.
const SOURCES: [SourceChoice; 3] = [SourceChoice::Xdp, SourceChoice::Tc, SourceChoice::AfPacket];

/// The results.
#[derive(Debug)]
pub(super) struct Tried {
    /// One check per source, with its name.
    pub(super) sources: Vec<Check>,
    /// Other kernel features that the private network has shown.
    pub(super) kernel: Vec<Check>,
}

/// Tries all sources.
pub(super) fn try_all() -> Tried {
    match Lab::new() {
        Ok(lab) => Tried {
            sources: SOURCES.map(|source| lab.try_source(source)).to_vec(),
            kernel: vec![lab.try_clsact(), lab.try_segment(), lab.try_bound(), lab.try_filter()],
        },
        Err(error) => {
            let sources = SOURCES.map(try_loading);
            let untried = |name| match Errno::from_raw_os_error(error.errno()) {
                Errno::PERM => Check::unknown(name, NOT_PERMITTED),
                _ => Check::unknown(name, format!("not tried: {error}")),
            };
            Tried {
                sources: sources.to_vec(),
                kernel: ["clsact", "--segment", "VLAN tags in xdp", "filters"].map(untried).to_vec(),
            }
        }
    }
}

/// The private network.
struct Lab {
    netns: NetNs,
    receiver: u32,
    sender: u32,
}

impl Lab {
    fn new() -> Result<Self, CallError> {
        let netns = NetNs::new()?;
        let (receiver, sender) = netns.run(|| {
            veth::create(RECEIVER, SENDER)?;
            let links = link::links()?;
            let index = |name| links.iter().find(|link| link.name == name).map_or(0, |link| link.index);
            Ok::<_, CallError>((index(RECEIVER), index(SENDER)))
        })?;
        Ok(Self { netns, receiver, sender })
    }

    fn try_source(&self, source: SourceChoice) -> Check {
        let name = source.as_str();
        match self.netns.run(|| self.capture_one(|builder| builder.source(source))) {
            Ok(detail) => {
                let how = detail.split(',').next().unwrap_or_default();
                Check::ok(name, format!("captures on a private veth pair: {how}"))
            }
            Err(Trouble::Weir(error)) => {
                let check = Check::missing(name, first_line(&error.to_string()));
                advice::hint(&error).into_iter().fold(check, Check::remedy)
            }
            Err(Trouble::Call(error)) => Check::missing(name, error.to_string()),
            Err(Trouble::Silent) => Check::missing(name, "it opens, but a test frame did not arrive")
                .why("packets would be lost uncounted; please report this with the output of `uname -a`"),
        }
    }

    /// Captures a frame with the configuration from `ask`, and returns the source's description of itself.
    fn capture_one(&self, ask: impl FnOnce(Builder) -> Builder) -> Result<String, Trouble> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let builder = Capture::builder().interface(RECEIVER).chunks(2).chunk_size(64 << 10);
        let mut capture = ask(builder).open().map_err(Trouble::Weir)?;
        let detail = capture.interfaces().first().map(|interface| interface.detail.clone());
        let sender = Sender::new(self.sender).map_err(Trouble::Call)?;
        let mut frame = [0; 60];
        frame[..6].fill(0xff);
        // EtherType 0x88b5: local experiments (IEEE 802).
        frame[12..14].copy_from_slice(&[0x88, 0xb5]);
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let sent = sender.send(&frame);
            sent.map_err(|error| Trouble::Call(CallError::new("send a frame", error)))?;
            if let Some(chunk) = capture.next(Duration::from_millis(50)).map_err(Trouble::Weir)?.taken()
                && chunk.into_iter().any(|packet| packet.data == frame)
            {
                return Ok(detail.unwrap_or_default());
            }
        }
        Err(Trouble::Silent)
    }

    fn try_clsact(&self) -> Check {
        // As on a kernel without tcx.
        self.try_way("clsact", |builder| parts::tc_filters(builder.source(SourceChoice::Tc), true))
            .why("without tcx, the tc source needs sch_ingress and cls_bpf")
            .remedy("modprobe -a sch_ingress cls_bpf")
            .unless_ok()
    }

    fn try_segment(&self) -> Check {
        self.try_way("--segment", |builder| builder.source(SourceChoice::Tc).segment(true))
            .why("GSO packets cannot be captured as the segments on the wire")
            .unless_ok()
    }

    fn try_filter(&self) -> Check {
        // It accepts the frame that is sent.
        let front = |builder: Builder| builder.filter(Filter::new("ether proto 0x88b5"));
        let tried = SOURCES.map(|source| {
            let check = self.try_way("filters", |builder| front(builder.source(source)));
            Check { found: format!("{}: {}", source.as_str(), check.found), ..check }
        });
        let failed = tried.into_iter().find(|check| check.state != CheckState::Ok);
        failed.map_or_else(
            || Check::ok("filters", THERE),
            |check| check.why("packets are captured only without a filter or with another --source"),
        )
    }

    /// Tries an alternative way to capture.
    fn try_way(&self, name: &'static str, way: impl FnOnce(Builder) -> Builder + Send) -> Check {
        match self.netns.run(|| self.capture_one(way)) {
            Ok(_) => Check::ok(name, THERE),
            Err(Trouble::Weir(error)) => Check::weak(name, first_line(&error.to_string())),
            Err(Trouble::Call(error)) => Check::weak(name, error.to_string()),
            Err(Trouble::Silent) => Check::weak(name, "a test frame did not arrive"),
        }
    }

    fn try_bound(&self) -> Check {
        const NAME: &str = "VLAN tags in xdp";
        match self.netns.run(|| parts::probe::load_bound(self.receiver)) {
            Ok(()) => Check::ok(NAME, THERE),
            Err(error) => Check::weak(NAME, first_line(&error.to_string()))
                .why("if a driver strips VLAN tags, xdp captures packets without them (Linux 6.8 reports them)")
                .remedy("ethtool -K IF rxvlan off, or --source tc"),
        }
    }
}

enum Trouble {
    Weir(weir::Error),
    Call(CallError),
    Silent,
}

/// Tries a source without a private network: whether the kernel accepts the program, or the socket.
fn try_loading(source: SourceChoice) -> Check {
    let name = source.as_str();
    const UNATTACHED: &str = "not attached without cap_sys_admin";
    if matches!(source, SourceChoice::AfPacket) {
        let options = RingOptions {
            interface: Some(1), // the loopback of every namespace
            traffic: Traffic::Received,
            snap_len: 64,
            block_bytes: 1 << 16,
            blocks: 2,
            retire_ms: 1000,
        };
        return match PacketRing::open(&options) {
            Ok(_) => Check::ok(name, "a TPACKET_V3 ring opens"),
            Err(error) if error.errno() == Errno::PERM.raw_os_error() => {
                Check::missing(name, "not permitted to open a packet socket").remedy(setcap())
            }
            Err(error) => Check::missing(name, error.to_string()),
        };
    }
    match parts::probe::load(source) {
        Ok(()) => Check::ok(name, format!("its program loads; {UNATTACHED}")),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Check::missing(name, "not permitted to load its program").remedy(setcap())
        }
        Err(error) => {
            let check = Check::missing(name, first_line(&error.to_string()));
            advice::hint(&error).into_iter().fold(check, Check::remedy)
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}
