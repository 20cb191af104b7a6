//! The filter of a packet socket: what is wanted of an interface's traffic, and the program behind that.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::socket::{packet_socket, set};
use super::{LOOPBACK, RingOptions, Traffic};
use crate::CallError;
use crate::bpf::query;

/// What decides in the kernel whether a packet of the wanted traffic is put into the ring.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// Nothing: all are.
    All,
    /// Classic BPF (`SO_ATTACH_FILTER`, socket(7)): 4096 instructions at most, a few of which are taken for what traffic is
    /// wanted. It answers with the bytes to keep; more than the snap length are taken for the snap length.
    Classic(&'a [Instruction]),
    /// An eBPF program of type `BPF_PROG_TYPE_SOCKET_FILTER` (`SO_ATTACH_BPF`), which sees to the wanted traffic and to the
    /// snap length itself.
    Extended(BorrowedFd<'a>),
}

/// An instruction of classic BPF, laid out as `struct sock_filter` (linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to pass over if the answer is yes.
    pub jt: u8,
    /// The same if it is no.
    pub jf: u8,
    /// A constant.
    pub k: u32,
}

/// The place of the filter of a [`PacketRing`](super::PacketRing), which any thread may exchange.
#[derive(Debug)]
pub struct FilterPlace {
    pub(super) socket: OwnedFd,
    pub(super) options: RingOptions,
}

impl FilterPlace {
    /// The same place, where programs let through packets of up to `snap_len` bytes.
    pub fn keeping(mut self, snap_len: u32) -> Self {
        self.options.snap_len = snap_len;
        self
    }

    /// Has `program` decide from now on. Each packet meets this one or the one before, never both, never none.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` says: `EINVAL` of a program that is no program, `ENOMEM` of one that is too long
    /// (`net.core.optmem_max`).
    pub fn put(&self, program: Program<'_>) -> Result<(), CallError> {
        put(&self.socket, &self.options, program)
    }

    /// As [`put`](Self::put) of nothing, with packets kept up to `snap_len` bytes.
    ///
    /// # Errors
    ///
    /// As that.
    pub fn open_to(&self, snap_len: u32) -> Result<(), CallError> {
        put(&self.socket, &RingOptions { snap_len, ..self.options }, Program::All)
    }
}

/// Attaches `program` to a packet socket that receives nothing, to see whether one has room for it.
///
/// # Errors
///
/// As [`FilterPlace::put`], and `EPERM` without `CAP_NET_RAW`.
pub fn try_filter(options: &RingOptions, program: Program<'_>) -> Result<(), CallError> {
    put(&packet_socket()?, options, program)
}

/// `net.core.optmem_max`: bytes that a socket may have for filters and options, the filter before one that is exchanged
/// included. `None`: not told in this network namespace (before Linux 6.9 only in the first).
pub fn filter_room() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/net/core/optmem_max").ok()?.trim().parse().ok()
}

/// Bytes of [`filter_room`] that hold the filters that people write: what newer kernels have; Linux 6.1 has 20480.
pub const ENOUGH_ROOM: u64 = 131_072;

/// Whether a socket that has this eBPF program has room for another one of its size.
pub fn has_room_for_two(program: BorrowedFd<'_>) -> bool {
    /// The kernel's own part of a program, and more.
    const HEAD: u64 = 256;
    /// What kernels have that do not tell it, unless somebody has set it.
    const UNTOLD: u64 = 20_480;
    let room = filter_room().unwrap_or(UNTOLD);
    // Where its length is not told either, it will show.
    query::instructions(program).map_or(true, |instructions| 2 * (8 * instructions as u64 + HEAD) <= room)
}

/// Sets the filter of a ring's socket.
pub(super) fn put(socket: &OwnedFd, options: &RingOptions, program: Program<'_>) -> Result<(), CallError> {
    match program {
        Program::All => attach(socket, &mut filter(options, &[])),
        Program::Classic(behind) => attach(socket, &mut filter(options, behind)),
        Program::Extended(program) => {
            set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &program.as_raw_fd())
                .map_err(|error| CallError::new("attach an eBPF filter to a packet socket", error))
        }
    }
}

/// The program that lets in what is wanted and has the kernel copy no more than the snap length: the program `behind` is
/// asked for each packet of the wanted traffic, if there is one. What is refused is in no counter, so that with it the
/// kernel's counters are about what is wanted.
fn filter(options: &RingOptions, behind: &[Instruction]) -> Vec<libc::sock_filter> {
    const LOAD_BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const LOAD_WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let about = |what: i32| (libc::SKF_AD_OFF + what).cast_unsigned();
    let kind = instruction(LOAD_BYTE, 0, 0, about(libc::SKF_AD_PKTTYPE));
    let keep = verdict(options.snap_len.max(1));
    let mut program = match options.traffic {
        Traffic::Received => vec![keep],
        Traffic::Both if options.interface.is_some() => vec![keep],
        Traffic::Sent => {
            vec![kind, instruction(IF_EQUAL, 1, 0, libc::PACKET_OUTGOING.into()), verdict(0), keep]
        }
        // What the loopback sends, it receives.
        Traffic::Both => vec![
            kind,
            instruction(IF_EQUAL, 0, 3, libc::PACKET_OUTGOING.into()),
            instruction(LOAD_WORD, 0, 0, about(libc::SKF_AD_IFINDEX)),
            instruction(IF_EQUAL, 0, 1, LOOPBACK),
            verdict(0),
            keep,
        ],
    };
    if !behind.is_empty() {
        // In the place of the last instruction, behind which nothing comes that the others jump to.
        program.pop();
        program.extend(behind.iter().map(|&Instruction { code, jt, jf, k }| {
            let keeps = u32::from(code) == libc::BPF_RET | libc::BPF_K;
            let k = if keeps { k.min(options.snap_len.max(1)) } else { k };
            libc::sock_filter { code, jt, jf, k }
        }));
    }
    program
}

/// Keep so many bytes; 0: refuse the packet.
pub(super) fn verdict(bytes: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, bytes)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("codes are small"), jt, jf, k }
}

/// Gives any socket a filter in classic BPF (`SO_ATTACH_FILTER`, socket(7)) in place of the one before.
///
/// # Errors
///
/// `EINVAL`: the kernel does not hold the program for valid.
pub fn attach_filter(socket: &impl AsFd, instructions: &[Instruction]) -> Result<(), CallError> {
    attach(socket, &mut instructions.iter().map(raw).collect::<Vec<_>>())
}

fn raw(&Instruction { code, jt, jf, k }: &Instruction) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

pub(super) fn attach(socket: &impl AsFd, program: &mut [libc::sock_filter]) -> Result<(), CallError> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| {
            CallError::new(
                "attach a filter with too many instructions",
                io::Error::from_raw_os_error(libc::EINVAL),
            )
        })?,
        filter: program.as_mut_ptr(),
    };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
        .map_err(|error| CallError::new("attach a filter to a socket", error))
}

const _: () = assert!(size_of::<libc::sock_filter>() == 8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_keeps_what_is_wanted() {
        let options = |interface, traffic, snap_len| RingOptions {
            interface,
            traffic,
            snap_len,
            block_bytes: 4096,
            blocks: 2,
            retire_ms: 1,
        };
        let plain = |program: &[libc::sock_filter]| {
            program.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect::<Vec<_>>()
        };
        assert_eq!(plain(&filter(&options(Some(7), Traffic::Both, 96), &[])), [(6, 0, 0, 96)]);
        assert_eq!(
            plain(&filter(&options(None, Traffic::Both, 96), &[])),
            [
                (0x30, 0, 0, 0xffff_f004),
                (0x15, 0, 3, 4),
                (0x20, 0, 0, 0xffff_f008),
                (0x15, 0, 1, 1),
                (6, 0, 0, 0),
                (6, 0, 0, 96)
            ]
        );
        assert_eq!(plain(&filter(&options(Some(7), Traffic::Received, 0), &[])), [(6, 0, 0, 1)]);
        let sent = [(0x30, 0, 0, 0xffff_f004), (0x15, 1, 0, 4), (6, 0, 0, 0), (6, 0, 0, 128)];
        assert_eq!(plain(&filter(&options(None, Traffic::Sent, 128), &[])), sent);
        // A program behind it keeps no more than the snap length.
        let behind = [(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (6, 0, 0, 262_144), (6, 0, 0, 0)];
        let behind = behind.map(|(code, jt, jf, k)| Instruction { code, jt, jf, k });
        assert_eq!(
            plain(&filter(&options(None, Traffic::Sent, 128), &behind)),
            [&sent[..3], &[(0x28, 0, 0, 12), (0x15, 0, 1, 0x800), (6, 0, 0, 128), (6, 0, 0, 0)]].concat()
        );
    }
}
