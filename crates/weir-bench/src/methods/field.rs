//! Where methods intercept: each in a network of its own, which it does not outlive.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use weir_lab::{FrameSender, LinkCounters, Network, Pair, StackCounters, Veth};
use weir_sys::ethtool::Ethtool;

use super::judge::{Arrived, Ends};
use super::method::{Method, QUEUE};
use super::work::Seen;
use crate::failure::{Failure, failed};
use crate::program::installed;

/// How long packets may take from end to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// TCP repeats a packet after 200 ms at the earliest (`TCP_RTO_MIN`), and doubles the time on each attempt.
const STILL: Duration = Duration::from_millis(700);
/// Frames that are sent at a time.
const FEW: usize = 100;

/// A pair of interfaces through which packets go as on a wire: none is larger than the MTU or lacks its checksum.
#[derive(Debug)]
pub(super) struct Field {
    network: Network,
}

/// The result of a method.
#[derive(Debug)]
pub(super) struct Held<T> {
    /// Of the traffic.
    pub(super) came: T,
    /// None if nobody intercepted.
    pub(super) seen: Option<Seen>,
    pub(super) arrived: Arrived,
    pub(super) ends: Ends,
}

impl Field {
    pub(super) fn new() -> Result<Self, Failure> {
        let veth = Veth::default().queues(2).ipv4().wire_packets().feature("gro", false);
        let network = Network::new(veth).map_err(failed("create a private network"))?;
        Ok(Self { network })
    }

    /// Has `method` intercept all that `traffic` makes arrive.
    pub(super) fn hold<T>(
        &self,
        method: Method,
        libpcap: Option<&Path>,
        traffic: impl FnOnce(&Pair) -> Result<T, Failure>,
    ) -> Result<Held<T>, Failure> {
        let pair = self.network.pair();
        if method == Method::Nfqueue {
            // Before the reader has begun.
            installed(IPTABLES, IPTABLES)?;
        }
        let program = method.reader(libpcap);
        let reader = program.map(|program| program.start(&pair.rx, None)).transpose()?;
        if method == Method::Nfqueue {
            queue(pair)?;
        }
        without_gro(pair)?;
        let before = Arrived::read(pair)?;
        let came = traffic(pair)?;
        if let Some(reader) = &reader {
            reader.settle()?;
        }
        let arrived = Arrived::read(pair)?.since(&before);
        let parse = |stdout: &str, _: &str| serde_json::from_str(stdout).ok();
        let seen = reader.map(|reader| reader.finish_as(parse)).transpose()?;
        Ok(Held { came, seen, arrived, ends: ends(pair) })
    }
}

impl Arrived {
    fn read(pair: &Pair) -> Result<Self, Failure> {
        let stack = StackCounters::read(&pair.rx.netns).map_err(Failure::new)?;
        let link = LinkCounters::read(&pair.rx).map_err(Failure::new)?;
        Ok(Self {
            packets: stack.get("IpInReceives"),
            bytes: stack.get("IpExtInOctets"),
            frames: link.rx_packets,
        })
    }

    fn since(&self, before: &Self) -> Self {
        let Self { packets, bytes, frames } = *self;
        Self {
            packets: packets - before.packets,
            bytes: bytes - before.bytes,
            frames: frames - before.frames,
        }
    }
}

/// The sending and the receiving address.
pub(super) fn ends(pair: &Pair) -> Ends {
    let address = |port: &weir_lab::Port| port.ipv4.expect("the pair has addresses");
    Ends { source: address(&pair.tx), destination: address(&pair.rx) }
}

/// Sends frames, a few at a time, since a processor's backlog holds no more than a thousand. Waits until they have
/// arrived.
pub(super) fn send(pair: &Pair, frames: &[Vec<u8>]) -> Result<(), Failure> {
    let before = Arrived::read(pair)?;
    let sender = FrameSender::new(&pair.tx).map_err(failed("prepare to send"))?;
    let mut sent = 0;
    for few in frames.chunks(FEW) {
        for frame in few {
            sender.send(frame).map_err(failed("send"))?;
            sent += 1;
        }
        let start = Instant::now();
        while Arrived::read(pair)?.since(&before).packets < sent && start.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(100));
        }
    }
    Ok(())
}

/// Waits until nothing has arrived for a while: after iperf3 has ended, TCP still resends what was lost.
pub(super) fn still(pair: &Pair) -> Result<(), Failure> {
    let begun = Instant::now();
    let (mut last, mut since) = (Arrived::read(pair)?.frames, begun);
    while since.elapsed() < STILL && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(20));
        let now = Arrived::read(pair)?.frames;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(())
}

/// Kernels may switch GRO on with an XDP program on veth, which would make the stack's part of the work less than with other
/// methods.
fn without_gro(pair: &Pair) -> Result<(), Failure> {
    let ethtool = pair.rx.netns.run(Ethtool::new).map_err(Failure::new)?;
    ethtool.set_features(&pair.rx.name, &[("gro", false)]).map_err(Failure::new)
}

const IPTABLES: &str = "iptables";

/// Passes everything that arrives to the netfilter queue, before anything else looks at it.
fn queue(pair: &Pair) -> Result<(), Failure> {
    let mut rule = Command::new(installed(IPTABLES, IPTABLES)?);
    rule.args(["-w", "-t", "raw", "-A", "PREROUTING", "-i", &pair.rx.name, "-j", "NFQUEUE"]);
    rule.args(["--queue-num", &QUEUE.to_string()]);
    rule.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let ran = pair.rx.netns.spawn(&mut rule).and_then(std::process::Child::wait_with_output);
    let ran = ran.map_err(failed("run iptables"))?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let said = said.trim();
    Err(Failure::new(format_args!(
        "cannot make a rule for the netfilter queue: {said}; try a kernel with CONFIG_NETFILTER_XT_TARGET_NFQUEUE"
    )))
}
