//! The readers of all methods except libpcap's: a hidden command, so that each is a process of its own.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use weir::{Capture, Direction, Mode, PacketCounters, SourceChoice};
use weir_lab::programs::inline::{Hook, Inline, Intercepted};
use weir_sys::bpf::{AttachPosition, TcxHook, TcxLink, XdpHook, XdpLink};
use weir_sys::link::Links;
use weir_sys::nfqueue::Queue;

use super::method::{BUFFER, Method, QUEUE};
use super::work::{Seen, Work};
use crate::failure::{Failure, failed};
use crate::receive::{interrupted, print, take_all};
use crate::style;

/// Packets that a netfilter queue may hold in addition to its socket's buffer: as many as fit in that.
const LENGTH: u32 = 1 << 16;
/// Packets for which a netfilter queue gets one verdict.
const BATCH: u32 = 64;
/// A signal ends the wait; this is for one that comes just before it begins.
const WAIT: Duration = Duration::from_millis(50);

#[derive(Debug, Args)]
pub(crate) struct InterceptArgs {
    #[arg(value_parser = Method::parse)]
    method: Method,
    #[arg(short)]
    interface: String,
    #[arg(long)]
    address: Ipv4Addr,
}

/// Intercepts packets until SIGINT, and prints what it has seen.
pub(crate) fn run(args: &InterceptArgs) -> Result<(), Failure> {
    let stop = interrupted()?;
    let seen = match args.method {
        Method::Xdp => library(args, SourceChoice::Xdp, &stop)?,
        Method::Tc => library(args, SourceChoice::Tc, &stop)?,
        Method::AfPacket => library(args, SourceChoice::AfPacket, &stop)?,
        Method::InlineXdp => inline(args, Hook::Xdp, &stop)?,
        Method::InlineTc => inline(args, Hook::Tc, &stop)?,
        Method::Nfqueue => nfqueue(args, &stop)?,
        Method::None | Method::Libpcap => {
            return Err(Failure::new(format_args!(
                "cannot intercept with {}: it has no reader here",
                args.method.name()
            )));
        }
    };
    print(&seen)
}

/// With weir's library.
fn library(args: &InterceptArgs, source: SourceChoice, stop: &AtomicBool) -> Result<Seen, Failure> {
    // Packet sockets have one queue; the others have two, of the same size together.
    let queues = if source == SourceChoice::AfPacket { 1 } else { 2 };
    let chunks = u32::try_from(BUFFER).unwrap_or(u32::MAX) / weir::DEFAULT_CHUNK_SIZE / queues;
    let builder = Capture::builder().interface(&args.interface).source(source).mode(Mode::Pass);
    let capture = builder.direction(Direction::In).chunks(chunks).open()?;
    style::say(format_args!("ready"));
    let mut work = Work::new(args.address);
    let account = take_all(capture, stop, |frame| work.frame(frame))?;
    let PacketCounters { lost, errors, .. } = account.total();
    Ok(work.seen(lost + errors))
}

/// With a program in the kernel, which has no queue that could be full.
fn inline(args: &InterceptArgs, hook: Hook, stop: &AtomicBool) -> Result<Seen, Failure> {
    let port = Links::open().and_then(|links| links.get(&args.interface)).map_err(Failure::new)?.index;
    let inline = Inline::load(hook, args.address).map_err(Failure::new)?;
    let attach = || {
        Ok(match hook {
            Hook::Xdp => (Some(XdpLink::attach(inline.program(), port, XdpHook::Native)?), None),
            Hook::Tc => (
                None,
                Some(TcxLink::attach(inline.program(), port, TcxHook::Ingress, AttachPosition::First)?),
            ),
        })
    };
    let _links = attach().map_err(|error: weir_sys::CallError| Failure::new(error))?;
    style::say(format_args!("ready"));
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(WAIT);
    }
    let Intercepted { packets, bytes, sum, others } = inline.intercepted();
    Ok(Seen { packets, bytes, sum, others, ..Seen::default() })
}

/// With a netfilter queue.
fn nfqueue(args: &InterceptArgs, stop: &AtomicBool) -> Result<Seen, Failure> {
    let mut queue = Queue::open(QUEUE, LENGTH, BUFFER).map_err(Failure::new)?;
    style::say(format_args!("ready"));
    let mut work = Work::new(args.address);
    let wait = Timespec::try_from(WAIT).expect("a short time");
    loop {
        // Takes what arrived before the signal.
        let ends = stop.load(Ordering::Relaxed);
        let mut taken = 0;
        while taken < BATCH
            && let Some(packet) = queue.take().map_err(Failure::new)?
        {
            work.packet(packet);
            taken += 1;
        }
        queue.accept().map_err(Failure::new)?;
        if taken > 0 {
            continue;
        }
        if ends {
            break;
        }
        match poll(&mut [PollFd::from_borrowed_fd(queue.as_fd(), PollFlags::IN)], Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("wait for packets")(error)),
        }
    }
    Ok(work.seen(queue.dropped().map_err(Failure::new)?))
}
