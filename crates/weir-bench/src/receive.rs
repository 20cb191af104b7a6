//! The readers of weir's own captures and of the AF_XDP socket: hidden commands, so that each is a process of its own, as
//! the programs of others are.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use weir::{Capture, CaptureStats, Chunk, Delivery, Filter, Mode, PacketCounters, SourceChoice, Timestamps};
use weir_lab::programs::xsk::Redirect;
use weir_sys::bpf::{XdpHook, XdpLink};
use weir_sys::link::Links;
use weir_sys::xsk::{FrameSize, Umem, UmemOptions, XskOptions, XskSocket};

use super::steps::{StepArgs, Steps};
use super::witness::Witness;
use crate::failure::{Failure, failed};
use crate::style;

/// A signal ends the wait; this is for the one that comes just before it.
const WAIT: Duration = Duration::from_millis(250);

/// Bytes kept of a packet where chunks are small: there is room for one behind each.
const SNAP_LEN: u32 = 2048;

#[derive(Debug, Args)]
pub(super) struct ReceiveArgs {
    #[arg(short)]
    interface: String,
    #[arg(long, value_parser = source)]
    source: SourceChoice,
    #[arg(long, value_parser = mode)]
    mode: Mode,
    #[arg(long, value_parser = timestamps, default_value = "kernel")]
    timestamps: Timestamps,
    #[arg(long)]
    chunks: u32,
    /// Bytes.
    #[arg(long)]
    chunk_size: Option<u32>,
    /// Never sleeps.
    #[arg(long)]
    active: bool,
    /// For the kernel.
    #[arg(long)]
    filter: Option<String>,
    #[command(flatten)]
    steps: StepArgs,
}

fn source(text: &str) -> Result<SourceChoice, String> {
    use SourceChoice::{AfPacket, AfXdp, Tc, Xdp};
    let source = [Xdp, Tc, AfPacket, AfXdp].into_iter().find(|source| source.as_str() == text);
    source.ok_or_else(|| "no such source".to_owned())
}

fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "pass" => Ok(Mode::Pass),
        "exclusive" => Ok(Mode::Exclusive),
        _ => Err("no such mode".to_owned()),
    }
}

fn timestamps(text: &str) -> Result<Timestamps, String> {
    match text {
        "kernel" => Ok(Timestamps::Kernel),
        "batch" => Ok(Timestamps::Batch),
        "none" => Ok(Timestamps::None),
        _ => Err("no such timestamps".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(super) struct AfXdpArgs {
    #[arg(short)]
    interface: String,
    #[arg(long)]
    queue: u32,
    /// As many bytes as the others have.
    #[arg(long, default_value = "65536")]
    frames: u32,
}

/// What a reader prints at the end. `weir capture --json` prints this and more, but for the witness.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Received {
    pub(super) captured: u64,
    /// None where nobody has counted them.
    #[serde(default)]
    pub(super) filtered: Option<u64>,
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
    let stop = interrupted()?;
    let builder = Capture::builder().interface(&args.interface).source(args.source).mode(args.mode);
    let builder = builder.timestamps(args.timestamps).chunks(args.chunks);
    let builder = match args.chunk_size {
        Some(bytes) => builder.chunk_size(bytes).snap_len(SNAP_LEN),
        None => builder,
    };
    let builder = if args.active { builder.delivery(Delivery::Active) } else { builder };
    let builder = match &args.filter {
        Some(filter) => builder.filter(Filter::new(filter)),
        None => builder,
    };
    let mut steps = Steps::new(&args.steps)?;
    let capture = builder.open()?;
    style::say(format_args!("ready"));
    let mut witness = Witness::default();
    let account = take_all(capture, &stop, |frame| {
        if let Some(frame) = steps.take(frame) {
            witness.take(frame);
        }
    })?;
    let queues = account.interfaces.iter().flat_map(|interface| &interface.queues);
    let queues = queues.map(|queue| Queue { pool: Pool { total: queue.pool.total } }).collect();
    let PacketCounters { captured, filtered, lost, errors, .. } = account.total();
    print(&Received { captured, filtered, lost, errors, queues, witness: Some(witness) })
}

/// Has `take` read each frame, until told to stop, and then the rest.
pub(super) fn take_all(
    mut capture: Capture,
    stop: &AtomicBool,
    mut take: impl FnMut(&[u8]),
) -> Result<CaptureStats, Failure> {
    let mut take = |chunk: Chunk| chunk.packets().for_each(|packet| take(packet.data));
    while !stop.load(Ordering::Relaxed) {
        if let Some(chunk) = capture.next(WAIT)?.taken() {
            take(chunk);
        }
    }
    capture.stop()?;
    while let Some(chunk) = capture.next(Duration::ZERO)?.taken() {
        take(chunk);
    }
    Ok(capture.stats()?)
}

/// An AF_XDP socket with its memory, and what brings packets to it.
pub(super) struct Bare {
    pub(super) umem: Umem,
    pub(super) socket: XskSocket,
    _program: (Redirect, XdpLink),
}

impl Bare {
    /// On one queue of so many, with so many frames that wait for packets.
    pub(super) fn open(
        interface: u32,
        [queue, queues]: [u32; 2],
        frames: u32,
        frame_size: FrameSize,
    ) -> Result<Self, Failure> {
        let redirect = Redirect::load(queues, false).map_err(failed("load the AF_XDP program"))?;
        let options = UmemOptions { frames, frame_size, zero_copy: false, segments: false };
        let umem = Umem::new(options).map_err(failed("allocate packet memory"))?;
        let socket = XskSocket::bind(&umem, interface, queue, XskOptions { receive: frames, send: 0 });
        let mut socket = socket.map_err(failed("open an AF_XDP socket"))?;
        let mut all = Vec::new();
        umem.take(frames as usize, &mut all);
        socket.refill(&mut all);
        drop(all);
        redirect.insert(queue, &socket).map_err(failed("redirect to the socket"))?;
        let link = XdpLink::attach(redirect.program(), interface, XdpHook::Native);
        let link = link.map_err(failed("attach"))?;
        Ok(Self { umem, socket, _program: (redirect, link) })
    }

    /// Packets for which there was no room.
    pub(super) fn lost(&self) -> Result<u64, Failure> {
        let loss = self.socket.loss().map_err(failed("read the loss counters"))?;
        Ok(loss.dropped + loss.ring_full)
    }
}

/// The same with an AF_XDP socket and as little as possible around it; asks again without ever sleeping, which is the
/// fastest way to read one.
pub(super) fn run_af_xdp(args: &AfXdpArgs) -> Result<(), Failure> {
    /// Packets whose frames go back at once.
    const BATCH: u32 = 256;
    let stop = interrupted()?;
    let port = Links::open().and_then(|links| links.get(&args.interface)).map_err(Failure::new)?;
    let mut bare = Bare::open(port.index, [args.queue, port.rx_queues], args.frames, FrameSize::TwoKib)?;
    let Bare { umem, socket, .. } = &mut bare;
    style::say(format_args!("ready"));
    let (mut frames, mut witness) = (Vec::new(), Witness::default());
    loop {
        // What has arrived before the signal is taken.
        let ends = stop.load(Ordering::Relaxed);
        // Some may have found no room in the fill ring: the kernel shows packets before it shows that it took frames.
        let seen = frames.len();
        if socket.receive(umem, BATCH, &mut frames) == 0 {
            if ends {
                break;
            }
            socket.wake().map_err(failed("request packets"))?;
        }
        frames[seen..].iter().for_each(|frame| witness.take(frame.bytes()));
        socket.refill(&mut frames);
    }
    let (captured, errors) = (witness.packets, socket.counts().refused);
    drop(frames);
    let lost = bare.lost()?;
    print(&Received { captured, filtered: None, lost, errors, queues: Vec::new(), witness: Some(witness) })
}

/// True once somebody has sent SIGINT.
pub(super) fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    flag::register(SIGINT, Arc::clone(&stop)).map_err(failed("install signal handlers"))?;
    Ok(stop)
}

/// Last words of a reader.
pub(super) fn print(said: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(said).map_err(failed("make JSON"))?;
    writeln!(io::stdout(), "{text}").map_err(failed("write to standard output"))
}
