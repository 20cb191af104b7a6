//! `pcap_live_dump`: a thread of ours writes all packets of a capture to a file, until a limit is reached.
//!
//! The thread has the capture as long as it writes; then the handle gets it back. It runs no signal handlers. A child
//! of the program has no such thread: the parent goes on, and the child can only close the handle.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::mem;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use rustix::event::{EventfdFlags, eventfd};
use weir_sys::thread::spawn_deaf;

use crate::abi::*;
use crate::cancel::{Wait, Woken};
use crate::dump::record;
use crate::file_header::{FILE_HEADER, header};
use crate::filter::Filter;
use crate::guard::{BUG, caught, word};
use crate::handle::{Dump, Ended, Handle, Pcap, Source, with};
use crate::live::Live;
use crate::savefile::Packet;
use crate::stdio::text_of;

/// Bytes of a record beside its packet.
const RECORD: u64 = 16;

/// When a dump ends.
#[derive(Clone, Copy)]
struct Limits {
    /// Bytes of the file.
    bytes: Option<u64>,
    packets: Option<u64>,
}

/// What ends a dump before its limits.
struct Stop {
    /// The handle is closed.
    quit: Arc<AtomicBool>,
    /// `pcap_breakloop`.
    broken: &'static AtomicBool,
}

impl Stop {
    fn is_wanted(&self) -> bool {
        self.quit.load(Ordering::Relaxed)
            || self.broken.load(Ordering::Relaxed) && self.broken.swap(false, Ordering::Relaxed)
    }
}

/// Writes all packets to a file, without the program, until the file would be larger than `max_size` bytes or has
/// `max_packets` packets; 0: no limit. Returns 0 at once, or -1.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_live_dump(
    pcap: *mut Pcap,
    name: *const c_char,
    max_size: c_int,
    max_packets: c_int,
) -> c_int {
    // SAFETY: C1.
    let name = unsafe { word(name) };
    let dump = |pcap: &Pcap, handle: &mut Handle| {
        if handle.live().is_none() {
            return handle.needs_device(pcap, "dump packets");
        }
        let begun = limits(max_size, max_packets).and_then(|limits| begin(pcap, handle, name, limits));
        match begun {
            Ok(()) => 0,
            Err(text) => pcap.fail(PCAP_ERROR, &text),
        }
    };
    // SAFETY: C1.
    unsafe { with(pcap, PCAP_ERROR, dump) }
}

fn limits(max_size: c_int, max_packets: c_int) -> Result<Limits, String> {
    let limit = |number: c_int| match u64::try_from(number) {
        Ok(0) => Ok(None),
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(format!("cannot dump packets: the limit {number} is less than none")),
    };
    Ok(Limits { bytes: limit(max_size)?, packets: limit(max_packets)? })
}

/// Begins a file, and gives the capture to a thread.
fn begin(pcap: &Pcap, handle: &mut Handle, name: Option<&CStr>, limits: Limits) -> Result<(), String> {
    if handle.special().statistics.is_some() {
        return Err("cannot dump packets in statistics mode; call pcap_setmode with MODE_CAPT".to_owned());
    }
    let name = name.ok_or("A null pointer was supplied as the file name")?;
    let shown = name.to_string_lossy().into_owned();
    let header = header(handle, &shown)?;
    let notifier = handle.live().ok_or("there is no capture")?.notifier().try_clone_to_owned();
    let notifier = notifier.map_err(|error| format!("cannot dump packets: {}", text_of(&error)))?;
    let wrong = |error: io::Error| format!("{shown}: {}", text_of(&error));
    // Not a `FILE`: the program may flush all of those, or fork while one has half a record.
    let mut file =
        BufWriter::new(File::create(Path::new(OsStr::from_bytes(name.to_bytes()))).map_err(wrong)?);
    file.write_all(&header).map_err(wrong)?;
    let quit = Arc::new(AtomicBool::new(false));
    let stop = Stop {
        quit: Arc::clone(&quit),
        // SAFETY: the handle is there until `pcap_close` has dropped `Dump`, which waits for the thread.
        broken: unsafe { &*ptr::from_ref(&pcap.stop) },
    };
    let over = Arc::new(
        eventfd(0, EventfdFlags::CLOEXEC)
            .map_err(|error| format!("cannot dump packets: {}", text_of(&error.into())))?,
    );
    let end = Arc::clone(&over);
    let (give, taken) = sync_channel::<(Box<Live>, Option<Box<Filter>>)>(1);
    let work = move || {
        let (mut live, filter) = taken.recv().ok()?;
        let result =
            caught(Err(BUG.to_owned()), || write(&mut live, filter.as_deref(), &mut file, limits, &stop));
        let kept = file.flush().map_err(|error| text_of(&error));
        drop(file);
        let _ = rustix::io::write(&*end, &1u64.to_ne_bytes());
        Some(Ended { live, filter, result: result.and(kept).map_err(|why| format!("{shown}: {why}")) })
    };
    let thread = spawn_deaf("weir-dump", work);
    let thread = thread.map_err(|error| format!("cannot dump packets: {}", text_of(&error)))?;
    let dump = Dump { thread: Some(thread), process: process::id(), quit, notifier, over };
    if let Source::Live(live) = mem::replace(&mut handle.source, Source::Dumping(Box::new(dump))) {
        // It has room for one, and the thread waits for it.
        let _ = give.send((live, handle.filter.take()));
    }
    Ok(())
}

/// Writes packets until something ends it.
fn write(
    live: &mut Live,
    filter: Option<&Filter>,
    file: &mut BufWriter<File>,
    limits: Limits,
    stop: &Stop,
) -> Result<(), String> {
    let mut packet = Packet::NONE;
    let mut size = FILE_HEADER as u64;
    let mut packets = 0;
    while !stop.is_wanted() && limits.packets.is_none_or(|limit| packets < limit) {
        if !live.next(filter, &mut packet)? {
            // Whoever looks at the file finds what has arrived.
            file.flush().map_err(|error| text_of(&error))?;
            live.wait(None)?;
            continue;
        }
        size += RECORD + u64::from(packet.header.caplen);
        if limits.bytes.is_some_and(|limit| size > limit) {
            break;
        }
        file.write_all(&record(&packet.header)).map_err(|error| text_of(&error))?;
        file.write_all(packet.seen().data).map_err(|error| text_of(&error))?;
        packets += 1;
    }
    Ok(())
}

/// Returns whether the dump has ended: 1 if it has, 0 if not, -1 if it failed, with a text, or if there was none. If
/// `sync` is not 0, waits for its end; a dump without limits ends by `pcap_breakloop`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_live_dump_ended(pcap: *mut Pcap, sync: c_int) -> c_int {
    let mut over = false;
    loop {
        // SAFETY: C1.
        match unsafe { with(pcap, Ok(PCAP_ERROR), |pcap, handle| ended(pcap, handle, over)) } {
            Ok(status) => return status,
            Err(_) if sync == 0 => return 0,
            // The thread may be cancelled here: a plain frame (C6).
            Err(wait) => over = matches!(wait.now(), Woken::Events(events) if events != 0),
        }
    }
}

/// Takes the capture back once the dump has ended; until then, returns how to wait for that. `over`: this was waited for.
fn ended(pcap: &Pcap, handle: &mut Handle, over: bool) -> Result<c_int, Wait> {
    if let Source::Dumping(dump) = &mut handle.source {
        if dump.process != process::id() {
            let text = "cannot tell whether the dump has ended: it runs in the parent of this process";
            return Ok(pcap.fail(PCAP_ERROR, text));
        }
        if !over && !dump.has_ended() {
            return Err(Wait::Ready { fds: [dump.over.as_raw_fd(), -1], until: None });
        }
        let result = match dump.join() {
            Some(Ended { live, filter, result }) => {
                (handle.source, handle.filter) = (Source::Live(live), filter);
                result
            }
            None => Err("the thread that wrote the dump was lost".to_owned()),
        };
        handle.special().dumped = Some(result);
    }
    Ok(match handle.special.as_ref().and_then(|special| special.dumped.as_ref()) {
        Some(Ok(())) => 1,
        Some(Err(text)) => pcap.fail(PCAP_ERROR, text),
        None if handle.live().is_some() => pcap.fail(PCAP_ERROR, "pcap_live_dump was not called"),
        None => handle.needs_device(pcap, "dump packets"),
    })
}
