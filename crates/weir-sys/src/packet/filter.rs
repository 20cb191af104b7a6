//! The filter of a packet socket: the direction of the traffic, followed by a program.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::socket::{packet_socket, set};
use super::{LOOPBACK, RingOptions, Traffic};
use crate::CallError;
use crate::bpf::query;

/// The program that decides in the kernel which packets of the chosen traffic are put into the ring.
#[derive(Clone, Copy, Debug)]
pub enum SocketFilter<'a> {
    /// No program: all packets match.
    All,
    /// Classic BPF (`SO_ATTACH_FILTER`, socket(7)): at most 4096 instructions, a few of which are needed to check the
    /// traffic's direction. It returns the number of bytes to keep, which is limited to the snap length.
    Classic(&'a [Instruction]),
    /// An eBPF program of type `BPF_PROG_TYPE_SOCKET_FILTER` (`SO_ATTACH_BPF`), which itself handles the traffic's
    /// direction and the snap length.
    Extended(BorrowedFd<'a>),
}

/// A classic BPF instruction, with the layout of `struct sock_filter` (linux/filter.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if the condition is true.
    pub jt: u8,
    /// Instructions to skip if the condition is false.
    pub jf: u8,
    /// A constant.
    pub k: u32,
}

/// The place of a [`PacketRing`](super::PacketRing)'s filter. Any thread may replace the filter.
#[derive(Debug)]
pub struct FilterPlace {
    pub(super) socket: OwnedFd,
    pub(super) options: RingOptions,
}

impl FilterPlace {
    /// Returns the place with a different snap length: programs keep up to `snap_len` bytes of a packet.
    pub fn keeping(mut self, snap_len: u32) -> Self {
        self.options.snap_len = snap_len;
        self
    }

    /// Replaces the current program. Each packet meets either the old program or the new one, never both or neither.
    ///
    /// # Errors
    ///
    /// The error of `setsockopt(2)`: `EINVAL` for an invalid program, `ENOMEM` for one that is too long
    /// (`net.core.optmem_max`).
    pub fn put(&self, program: SocketFilter<'_>) -> Result<(), CallError> {
        put(&self.socket, &self.options, program)
    }

    /// Removes the program, like [`put`](Self::put) with [`SocketFilter::All`], and keeps up to `snap_len` bytes of a
    /// packet.
    ///
    /// # Errors
    ///
    /// The errors of [`put`](Self::put).
    pub fn open_to(&self, snap_len: u32) -> Result<(), CallError> {
        put(&self.socket, &RingOptions { snap_len, ..self.options }, SocketFilter::All)
    }
}

/// Attaches `program` to a packet socket that receives nothing, to check that a socket has room for it.
///
/// # Errors
///
/// The errors of [`FilterPlace::put`], and `EPERM` without `CAP_NET_RAW`.
pub fn try_filter(options: &RingOptions, program: SocketFilter<'_>) -> Result<(), CallError> {
    put(&packet_socket()?, options, program)
}

/// Returns `net.core.optmem_max`: the bytes that a socket may use for filters and options, including a filter that is
/// being replaced. `None`: not available in this network namespace (before Linux 6.9, only in the first one).
pub fn filter_room() -> Option<u64> {
    std::fs::read_to_string("/proc/sys/net/core/optmem_max").ok()?.trim().parse().ok()
}

/// A [`filter_room`], in bytes, that suffices for the filters people write. It is the default of newer kernels; Linux
/// 6.1 has 20480.
pub const ENOUGH_ROOM: u64 = 131_072;

/// Returns whether a socket with this eBPF program has room for another one of the same size.
pub fn has_room_for_two(program: BorrowedFd<'_>) -> bool {
    /// The kernel's own part of a program, rounded up.
    const HEAD: u64 = 256;
    /// The default of kernels that do not report it.
    const UNTOLD: u64 = 20_480;
    let room = filter_room().unwrap_or(UNTOLD);
    // If the length is unknown as well, assume there is room; attaching will fail if not.
    query::instructions(program).map_or(true, |instructions| 2 * (8 * instructions as u64 + HEAD) <= room)
}

/// Sets the filter of a ring's socket.
pub(super) fn put(
    socket: &OwnedFd,
    options: &RingOptions,
    program: SocketFilter<'_>,
) -> Result<(), CallError> {
    match program {
        SocketFilter::All => attach(socket, &mut filter(options, &[])),
        SocketFilter::Classic(behind) => attach(socket, &mut filter(options, behind)),
        SocketFilter::Extended(program) => {
            set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_BPF, &program.as_raw_fd())
                .map_err(|error| CallError::new("attach an eBPF filter to a packet socket", error))
        }
    }
}

/// Builds the program that accepts the chosen traffic and makes the kernel copy no more than the snap length. If there
/// is a program `behind`, it runs for each packet of that traffic. Rejected packets are in no counter, so the kernel's
/// counters cover only matching packets.
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
        // Packets sent through the loopback are received as well.
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
        // Replaces the last instruction; no jump goes beyond it.
        program.pop();
        program.extend(behind.iter().map(|&Instruction { code, jt, jf, k }| {
            let keeps = u32::from(code) == libc::BPF_RET | libc::BPF_K;
            let k = if keeps { k.min(options.snap_len.max(1)) } else { k };
            libc::sock_filter { code, jt, jf, k }
        }));
    }
    program
}

/// Returns an instruction to keep this many bytes; 0 rejects the packet.
pub(super) fn verdict(bytes: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, 0, 0, bytes)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("codes are small"), jt, jf, k }
}

/// Replaces the filter of any socket with a classic BPF program (`SO_ATTACH_FILTER`, socket(7)).
///
/// # Errors
///
/// `EINVAL`: the kernel considers the program invalid.
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
