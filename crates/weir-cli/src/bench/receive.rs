//! The readers of weir's own captures and of the AF_XDP socket: hidden commands, so that each is a process of its own, as
//! the programs of others are.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use weir::{Chunk, Delivery, Tally, Timestamps};
use weir_bpf::xsk::Redirect;
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::link;
use weir_sys::xsk::{FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use super::failed;
use super::witness::Witness;
use crate::args::{OriginArgs, PoolArgs};
use crate::failure::Failure;
use crate::interfaces;
use crate::signals::Signals;
use crate::style;

/// A signal ends the wait; this is for the one that comes just before it.
const WAIT: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(super) struct ReceiveArgs {
    #[command(flatten)]
    origin: OriginArgs,
    #[command(flatten)]
    pool: PoolArgs,
}

#[derive(Debug, Args)]
pub(super) struct AfXdpArgs {
    #[arg(short)]
    interface: String,
    #[arg(long)]
    queue: u32,
}

/// What a reader prints at the end. `weir capture --json` prints this and more, but for the witness.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Received {
    pub(super) captured: u64,
    pub(super) lost: u64,
    pub(super) errors: u64,
    pub(super) queues: Vec<Queue>,
    #[serde(default)]
    pub(super) witness: Option<Witness>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Queue {
    pub(super) pool: Pool,
}

/// Chunks of a queue.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Pool {
    pub(super) total: u32,
}

/// Captures until SIGINT, reading every byte.
pub(super) fn run(args: &ReceiveArgs) -> Result<(), Failure> {
    let signals = Signals::install().map_err(failed("install signal handlers"))?;
    let builder = args.origin.builder(&interfaces::chosen(&args.origin)?, Timestamps::Kernel);
    let mut capture = args.pool.apply(builder, Delivery::Adaptive).open()?;
    style::say(format_args!("ready"));
    let mut witness = Witness::default();
    let mut take = |chunk: Chunk| chunk.packets().for_each(|packet| witness.take(packet.data));
    while !signals.stop() {
        if let Some(chunk) = capture.next(WAIT)? {
            take(chunk);
        }
    }
    capture.stop()?;
    while let Some(chunk) = capture.next(Duration::ZERO)? {
        take(chunk);
    }
    let account = capture.account()?;
    let queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
    let queues = queues.map(|queue| Queue { pool: Pool { total: queue.pool.total } }).collect();
    let Tally { captured, lost, errors, .. } = account.total();
    print(&Received { captured, lost, errors, queues, witness: Some(witness) })
}

/// The same with an AF_XDP socket and as little as possible around it; asks again without ever sleeping, which is the
/// fastest way to read one.
pub(super) fn run_af_xdp(args: &AfXdpArgs) -> Result<(), Failure> {
    /// As many bytes as the others have.
    const FRAMES: u32 = 1 << 16;
    /// Packets whose frames go back at once.
    const BATCH: u32 = 256;
    let signals = Signals::install().map_err(failed("install signal handlers"))?;
    let links = link::links().map_err(failed("list interfaces"))?;
    let port = links.iter().find(|link| link.name == args.interface);
    let port = port.ok_or_else(|| Failure::new(format_args!("cannot find {}", args.interface)))?;
    let redirect = Redirect::load(port.rx_queues, false).map_err(failed("load the AF_XDP program"))?;
    let options =
        UmemOptions { frames: FRAMES, frame_size: FrameSize::TwoKib, zero_copy: false, segments: false };
    let umem = Umem::new(options).map_err(failed("allocate packet memory"))?;
    let mut socket = XskSocket::bind(&umem, port.index, args.queue, XskOptions { receive: FRAMES, send: 0 })
        .map_err(failed("open an AF_XDP socket"))?;
    let mut frames = Vec::new();
    umem.take(FRAMES as usize, &mut frames);
    socket.refill(&mut frames);
    redirect.insert(args.queue, &socket).map_err(failed("redirect to the socket"))?;
    let _link = XdpLink::attach(redirect.program(), port.index, XdpHook::Native).map_err(failed("attach"))?;
    style::say(format_args!("ready"));
    let mut witness = Witness::default();
    while !signals.stop() {
        // Some may have found no room in the fill ring: the kernel shows packets before it shows that it took frames.
        let seen = frames.len();
        if socket.receive(&umem, BATCH, &mut frames) == 0 {
            socket.wake().map_err(failed("request packets"))?;
        }
        frames[seen..].iter().for_each(|frame| witness.take(frame.bytes()));
        socket.refill(&mut frames);
    }
    let loss = socket.loss().map_err(failed("read the loss counters"))?;
    let lost = loss.dropped + loss.ring_full;
    let (captured, errors) = (witness.packets, socket.counts().refused);
    print(&Received { captured, lost, errors, queues: Vec::new(), witness: Some(witness) })
}

fn print(received: &Received) -> Result<(), Failure> {
    let text = serde_json::to_string(received).map_err(failed("make JSON"))?;
    writeln!(io::stdout(), "{text}").map_err(failed("write to standard output"))
}
