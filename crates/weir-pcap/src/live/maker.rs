//! A process that keeps the right to load filters.
//!
//! tcpdump opens a capture as root, becomes another user, and only then sets its filter. This process is started when
//! the capture begins, has nothing but this right and the place of the filter, and ends with the capture.
//!
//! ```text
//!   program, without rights           weir-filter
//!     --- instructions, 8 bytes each -->  FilterSlot::make_classic
//!     <-- descriptors, or why not ------
//! ```

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recv, recvmsg, send, sendmsg,
};
use weir::filter_control::FilterControl;
use weir::parts::{CompiledFilter, CompiledForm, FilterSlot};
use weir_filter::cbpf::{Instruction, Program as Classic};
use weir_sys::fork::{Forked, hidden};
use weir_sys::landlock::{Files, restrict};
use weir_sys::privilege::{Capabilities, effective, keep_only};

/// Bytes of an instruction.
const SIZE: usize = 8;
/// The longest message: the kernel takes 4096 instructions.
const LONGEST: usize = 4096 * SIZE;
/// Most descriptors of an answer: a program for each hook.
const MOST: usize = 16;
/// Longest time for a filter on a busy processor.
const PATIENCE: Duration = Duration::from_secs(20);
/// The rights that loading a filter may take.
const RIGHTS: Capabilities = Capabilities::BPF.union(Capabilities::PERFMON).union(Capabilities::NET_ADMIN);

/// What it may read: its namespace, and what kinds of programs the kernel knows.
const SYSTEM: [&str; 2] = ["/proc", "/sys"];

/// The process.
#[derive(Debug)]
pub(super) struct Maker {
    process: Forked,
    interface: u32,
    /// It did not answer once: what it says next may be about that filter.
    lost: Cell<bool>,
}

impl Maker {
    /// Starts the process.
    ///
    /// # Errors
    ///
    /// This process has threads, which a fork would leave in an unknown state, or no resources.
    pub(super) fn start(filter_control: &FilterControl) -> io::Result<Self> {
        let slots = filter_control.slots().map_err(io::Error::other)?;
        let [slot] = &slots[..] else { return Err(io::Error::other("not one interface")) };
        let interface = slot.target.interface;
        let kept: Vec<_> = slot.descriptors.iter().map(OwnedFd::as_fd).collect();
        let process = hidden(c"weir-filter", &kept, |socket| work(slot, &socket))?;
        Ok(Self { process, interface, lost: Cell::new(false) })
    }

    /// Makes the program of a filter.
    ///
    /// # Errors
    ///
    /// It has not been made, and why.
    pub(super) fn make(&self, filter: &Classic) -> Result<CompiledFilter, String> {
        let answer = || {
            retry_on_intr(|| send(self.process.socket(), &written(filter), SendFlags::NOSIGNAL))?;
            self.answer()
        };
        if self.lost.get() {
            return Err("the process weir-filter has stopped answering".to_owned());
        }
        let (why, descriptors) = answer().map_err(|error| {
            self.lost.set(true);
            format!("the process weir-filter does not answer: {error}")
        })?;
        if !why.is_empty() {
            return Err(why);
        }
        Ok(CompiledFilter {
            interface: self.interface,
            form: CompiledForm::Programs,
            is_never: false,
            sets: Vec::new(),
            descriptors,
        })
    }

    fn answer(&self) -> io::Result<(String, Vec<OwnedFd>)> {
        let until = Instant::now() + PATIENCE;
        let socket = self.process.socket();
        let ready = retry_on_intr(|| {
            let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok();
            poll(&mut [PollFd::new(&socket, PollFlags::IN)], left.as_ref())
        });
        if ready? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut text = [0; 1024];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = retry_on_intr(|| {
            let mut into = [IoSliceMut::new(&mut text)];
            recvmsg(socket, &mut into, &mut beside, RecvFlags::CMSG_CLOEXEC)
        })?;
        let rights = beside.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights),
            _ => None,
        });
        let descriptors = rights.flatten().collect();
        match &text[..received.bytes] {
            [MADE] => Ok((String::new(), descriptors)),
            [] => Err(io::ErrorKind::UnexpectedEof.into()),
            why => Ok((String::from_utf8_lossy(why).into_owned(), descriptors)),
        }
    }
}

/// The answer that comes with descriptors.
const MADE: u8 = 0;

/// Makes programs until the capture ends.
fn work(slot: &FilterSlot, socket: &OwnedFd) {
    let confined = || -> io::Result<()> {
        let rights = effective().map_err(io::Error::other)?;
        keep_only(rights & RIGHTS).map_err(io::Error::other)?;
        let read = SYSTEM.map(PathBuf::from).to_vec();
        restrict(&Files { read, ..Files::default() }).map_err(io::Error::other)?;
        Ok(())
    };
    if confined().is_err() {
        return;
    }
    let mut bytes = vec![0; LONGEST];
    while let Ok((length @ 1.., _)) = recv(socket, &mut bytes, RecvFlags::empty()) {
        let made = slot.make_classic(&read(&bytes[..length])).map_err(|error| error.to_string());
        let made = made.and_then(|program| match program.form {
            CompiledForm::Programs => Ok(program),
            _ => Err("this takes no right".to_owned()),
        });
        let descriptors: &[OwnedFd] = made.as_ref().map_or(&[], |program| &program.descriptors);
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(OwnedFd::as_fd).collect();
        let text = match &made {
            Ok(_) => vec![MADE],
            Err(why) => why.clone().into_bytes(),
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let fits = descriptors.is_empty() || beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        if !fits || sendmsg(socket, &[IoSlice::new(&text)], &mut beside, SendFlags::NOSIGNAL).is_err() {
            return;
        }
    }
}

fn written(filter: &Classic) -> Vec<u8> {
    let instructions = filter.instructions.iter();
    let bytes = instructions.flat_map(|one| {
        let [code, other] = one.code.to_le_bytes();
        let [a, b, c, d] = one.k.to_le_bytes();
        [code, other, one.jt, one.jf, a, b, c, d]
    });
    bytes.collect()
}

fn read(bytes: &[u8]) -> Classic {
    let (instructions, _) = bytes.as_chunks::<SIZE>();
    let instruction = |&[code, other, jt, jf, a, b, c, d]: &[u8; SIZE]| Instruction {
        code: u16::from_le_bytes([code, other]),
        jt,
        jf,
        k: u32::from_le_bytes([a, b, c, d]),
    };
    Classic { instructions: instructions.iter().map(instruction).collect() }
}
