//! Packet sockets, and the ring of blocks that the kernel fills for them: `TPACKET_V3` (packet(7); the kernel's
//! `Documentation/networking/packet_mmap.rst` and `net/packet/af_packet.c`).
//!
//! The ring is kernel memory, mapped here. A block goes back and forth by its status word:
//!
//! ```text
//!            fills          closes: full, or old enough           walks            gives back
//!   kernel ---------> open ----------------------------> ready ---------> begun ----------------> kernel
//!                                 status = USER                               status = KERNEL
//! ```
//!
//! Each `SAFETY` comment names the rules that it relies on:
//!
//! - **P1** A block whose status has `TP_STATUS_USER` is ours: the kernel writes to none of its bytes until we store
//!   `TP_STATUS_KERNEL`. Only `Ring` stores it, and only through `&mut`, when no slice of the block is left.
//! - **P2** The mapping has `blocks * block_bytes` bytes, is page-aligned and lives as long as its `Ring`.

mod block;

use std::io;
use std::mem::size_of;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt::socket_error};

use crate::{CallError, bpf};
use block::{Cursor, STATUS};
pub use block::{Origin, Packet};

/// Keeps an interface in promiscuous mode: it receives every frame, whoever it is for. The kernel counts those who ask,
/// and takes this one off when the value is dropped or the process dies.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// Asks for promiscuous mode on the interface with index `interface`.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENODEV`: no such interface.
    pub fn new(interface: u32) -> Result<Self, CallError> {
        let socket = packet_socket(SocketType::RAW)?;
        let request = libc::packet_mreq {
            mr_ifindex: index(interface)?,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a small number"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
            .map_err(|error| CallError::new(format!("set interface {interface} promiscuous"), error))?;
        Ok(Self { _socket: socket })
    }
}

/// What of an interface's traffic is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// What it receives.
    Received,
    /// What this host sends through it.
    Sent,
    /// Both; of the loopback, where what is sent is received at once, only what is received.
    Both,
}

/// The measures of a [`PacketRing`].
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Index of the interface in this thread's network namespace. `None`: all that are there or will be, and packets
    /// begin behind their link-layer header, which [`Packet::origin`] stands for.
    pub interface: Option<u32>,
    /// What of its traffic is wanted.
    pub traffic: Traffic,
    /// Bytes kept of a packet. A packet that is not wholly in a block is cut by the kernel, and tells so.
    pub snap_len: u32,
    /// Bytes of a block: a multiple of the page size.
    pub block_bytes: u32,
    /// Number of blocks.
    pub blocks: u32,
    /// Milliseconds after which the kernel closes a block that is not full, and not empty. Before Linux 6.18 this rounds
    /// up to ticks of the kernel's clock, and then the block may wait one tick more.
    pub retire_ms: u32,
}

impl RingOptions {
    fn is_loopback(&self) -> bool {
        self.interface == Some(LOOPBACK)
    }
}

/// What the kernel has counted since the ring was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets that were wanted: put into the ring, or lost.
    pub packets: u64,
    /// Of these, packets that found no room.
    pub drops: u64,
}

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

/// The place of the filter of a [`PacketRing`], which any thread may exchange.
#[derive(Debug)]
pub struct FilterPlace {
    socket: OwnedFd,
    options: RingOptions,
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
}

/// A packet socket, bound to one interface or to all, with its ring.
#[derive(Debug)]
pub struct PacketRing {
    socket: OwnedFd,
    options: RingOptions,
    ring: Ring,
    statistics: Statistics,
}

/// A block that the kernel has finished with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// How many blocks the kernel had finished before this one.
    pub number: u64,
    /// It was closed because of its age, not because it was full.
    pub aged: bool,
    /// When it was closed, packets had been dropped that no [`PacketRing::statistics`] had told of.
    pub losing: bool,
}

/// How far a walk has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The block has been given back. So many of its packets could not be made sense of.
    Done {
        /// Packets that the block told of and that were not in it.
        damaged: u32,
    },
    /// It stopped at a packet, which is the first of the next walk; or no block is ready.
    Stopped,
}

impl PacketRing {
    /// Opens a socket with a ring. Packets come in from the moment of the return, and none that is not wanted.
    ///
    /// # Errors
    ///
    /// `EPERM`: without `CAP_NET_RAW`. `ENOMEM`: no memory for the ring. `ENODEV`: no such interface.
    pub fn open(options: &RingOptions) -> Result<Self, CallError> {
        Self::open_behind(options, Program::All)
    }

    /// The same with `program` in front: no packet that it refuses ever comes in.
    ///
    /// # Errors
    ///
    /// The same, and those of [`FilterPlace::put`].
    pub fn open_behind(options: &RingOptions, program: Program<'_>) -> Result<Self, CallError> {
        // Without a protocol no packet of any interface gets in before the socket is bound.
        let kind = if options.interface.is_some() { SocketType::RAW } else { SocketType::DGRAM };
        let socket = packet_socket(kind)?;
        let option = |name, value: i32, what: &str| {
            set(&socket, libc::SOL_PACKET, name, &value).map_err(|error| CallError::new(what, error))
        };
        let version = i32::try_from(libc::tpacket_versions::TPACKET_V3 as u32).expect("a small number");
        option(libc::PACKET_VERSION, version, "choose TPACKET_V3 for a packet socket")?;
        if options.traffic == Traffic::Received || options.is_loopback() && options.traffic == Traffic::Both {
            option(libc::PACKET_IGNORE_OUTGOING, 1, "leave outgoing packets out (PACKET_IGNORE_OUTGOING)")?;
        }
        put(&socket, options, program)?;
        let request = libc::tpacket_req3 {
            tp_block_size: options.block_bytes,
            tp_block_nr: options.blocks,
            // This version packs packets by their length; the kernel only checks that the product is right.
            tp_frame_size: options.block_bytes,
            tp_frame_nr: options.blocks,
            tp_retire_blk_tov: options.retire_ms,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request).map_err(|error| {
            let (blocks, bytes) = (options.blocks, options.block_bytes);
            CallError::new(format!("make a packet ring of {blocks} blocks of {bytes} bytes"), error)
        })?;
        let ring = Ring::map(&socket, options.blocks, options.block_bytes)
            .map_err(|error| CallError::new("map the packet ring", error))?;
        bind(&socket, options.interface)?;
        Ok(Self { socket, options: *options, ring, statistics: Statistics::default() })
    }

    /// The place of its filter.
    ///
    /// # Errors
    ///
    /// No free descriptor.
    pub fn filter_place(&self) -> Result<FilterPlace, CallError> {
        let socket = self.socket.try_clone();
        let socket = socket.map_err(|error| CallError::new("duplicate a packet socket", error))?;
        Ok(FilterPlace { socket, options: self.options })
    }

    /// The oldest block that is ours, if any. Costs one load.
    #[inline]
    pub fn ready(&self) -> Option<Ready> {
        let status = self.ring.status();
        (status & libc::TP_STATUS_USER != 0).then_some(Ready {
            number: self.ring.returned,
            aged: status & libc::TP_STATUS_BLK_TMO != 0,
            losing: status & libc::TP_STATUS_LOSING != 0,
        })
    }

    /// Looks at all blocks that are ready: gives the number of the first one, not before `from`, that is
    /// [losing](Ready::losing), and the number of the block that the kernel is filling or, if all are ready, fills next.
    pub fn look_ahead(&self, from: u64) -> (Option<u64>, u64) {
        self.ring.look_ahead(from)
    }

    /// Gives the packets of the block that is [`ready`](Self::ready) to `each`, until there are no more, or until it
    /// breaks. The packet that it breaks at counts as not given.
    pub fn walk(&mut self, each: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> Walk {
        self.ring.walk(each)
    }

    /// Asks the kernel for its counters. They are of 32 bits there: between two calls not more than 2^32 packets may pass.
    ///
    /// # Errors
    ///
    /// What `getsockopt(2)` says.
    pub fn statistics(&mut self) -> Result<Statistics, CallError> {
        let mut fresh = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = option_length::<libc::tpacket_stats_v3>();
        // SAFETY: the kernel writes at most `length` bytes to `fresh`, which are its size; any bits are valid in it.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut fresh).cast(),
                &raw mut length,
            )
        };
        if result < 0 {
            return Err(CallError::last("read statistics of a packet socket"));
        }
        // The kernel starts again from zero with each call (packet_getsockopt), and has added the drops to the packets.
        self.statistics.packets += u64::from(fresh.tp_packets);
        self.statistics.drops += u64::from(fresh.tp_drops);
        Ok(self.statistics)
    }

    /// Lets nothing more in. When it returns, the kernel is through with the packets that it had begun with; the block
    /// that they are in is closed in its time.
    ///
    /// # Errors
    ///
    /// What `setsockopt(2)` and `membarrier(2)` say.
    pub fn shut(&self) -> Result<(), CallError> {
        attach(&self.socket, &mut [verdict(0)])?;
        // tpacket_rcv runs in an RCU read-side section: after a grace period nobody uses the filter from before.
        bpf::synchronize()
    }

    /// Whether packets still come. Tells each trouble once.
    ///
    /// # Errors
    ///
    /// `ENETDOWN`: the interface was set down; packets come again when it is set up. `ENODEV`: it is gone for good.
    pub fn health(&self) -> Result<(), CallError> {
        let trouble = match socket_error(&self.socket) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(rustix::io::Errno::NETDOWN)) if self.unbound() => rustix::io::Errno::NODEV,
            Ok(Err(errno)) | Err(errno) => errno,
        };
        Err(CallError::new("receive from a packet socket", trouble))
    }

    /// Whether the kernel has taken the interface from the socket (`packet_notifier`, NETDEV_UNREGISTER).
    fn unbound(&self) -> bool {
        let mut address = link_layer_address();
        let mut length = option_length::<libc::sockaddr_ll>();
        // SAFETY: the kernel writes at most `length` bytes to `address`, which are its size; any bits are valid in it.
        let result =
            unsafe { libc::getsockname(self.socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
        result == 0 && address.sll_ifindex < 0
    }
}

impl AsFd for PacketRing {
    /// Readable when the kernel has closed a block and it has not been given back, or when there is trouble.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The mapped blocks, and where in them we are.
#[derive(Debug)]
struct Ring {
    base: NonNull<u8>,
    blocks: u32,
    block_bytes: u32,
    /// The block that is ours next. The kernel fills them in order.
    next: u32,
    /// Blocks given back so far.
    returned: u64,
    /// Where in the next block we are, once we have begun with it.
    cursor: Option<Cursor>,
}

// SAFETY: a ring is an address range and numbers, bound to no thread.
unsafe impl Send for Ring {}

impl Ring {
    fn map(socket: &OwnedFd, blocks: u32, block_bytes: u32) -> io::Result<Self> {
        let length = blocks as usize * block_bytes as usize;
        // SAFETY: a new mapping at an address of the kernel's choice touches nobody else's memory.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                socket,
                0,
            )
        }?;
        Ok(Self::over(base.cast(), blocks, block_bytes))
    }

    /// The ring takes the mapping at `base` over.
    fn over(base: *mut u8, blocks: u32, block_bytes: u32) -> Self {
        let base = NonNull::new(base).expect("mmap never maps the null page without being told to");
        Self { base, blocks, block_bytes, next: 0, returned: 0, cursor: None }
    }

    /// The status word of the block that comes `ahead` blocks after the next one.
    #[inline]
    fn status_word(&self, ahead: u32) -> &AtomicU32 {
        let block = (self.next as usize + ahead as usize) % self.blocks as usize;
        let at = block * self.block_bytes as usize + STATUS;
        // SAFETY: P2; `block` is below `blocks`.
        let word = unsafe { self.base.add(at) };
        // SAFETY: P2; aligned, since blocks begin on pages. Both sides access this word whole.
        unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) }
    }

    #[inline]
    fn status(&self) -> u32 {
        // Acquire, with the smp_wmb in prb_close_block before prb_flush_block stores the status: the packets are there.
        self.status_word(0).load(Ordering::Acquire)
    }

    fn look_ahead(&self, from: u64) -> (Option<u64>, u64) {
        let mut marked = None;
        for (number, ahead) in (self.returned..).zip(0..self.blocks) {
            // Relaxed: nothing else of the block is looked at.
            let status = self.status_word(ahead).load(Ordering::Relaxed);
            if status & libc::TP_STATUS_USER == 0 {
                return (marked, number);
            }
            if status & libc::TP_STATUS_LOSING != 0 && number >= from {
                marked = marked.or(Some(number));
            }
        }
        (marked, self.returned + u64::from(self.blocks))
    }

    /// The bytes of the next block, if it is ours.
    #[inline]
    fn block(&self) -> Option<&[u8]> {
        if self.status() & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let at = self.next as usize * self.block_bytes as usize;
        // SAFETY: P2; `next` is below `blocks`.
        let first = unsafe { self.base.add(at) };
        // SAFETY: P2 for the range, P1 for the bytes, which do not change while `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(first.as_ptr(), self.block_bytes as usize) })
    }

    fn walk(&mut self, mut each: impl FnMut(&Packet<'_>) -> ControlFlow<()>) -> Walk {
        let Some(block) = self.block() else { return Walk::Stopped };
        let mut cursor = self.cursor.unwrap_or_else(|| Cursor::new(block));
        while let Some((packet, behind)) = cursor.packet(block) {
            if each(&packet).is_break() {
                self.cursor = Some(cursor);
                return Walk::Stopped;
            }
            cursor = behind;
        }
        self.give_back();
        Walk::Done { damaged: cursor.left() }
    }

    fn give_back(&mut self) {
        // Release, with the kernel's load of the status in prb_dispatch_next_block and prb_curr_blk_in_use: it writes to
        // the block only after it has seen this, and what we have read of it came before.
        self.status_word(0).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.cursor = None;
        self.returned += 1;
        self.next = (self.next + 1) % self.blocks;
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.blocks as usize * self.block_bytes as usize;
        // SAFETY: P2, and no slice of the mapping outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), length) };
    }
}

/// A packet socket that receives nothing yet: packets with their link-layer header (`RAW`) or without (`DGRAM`).
fn packet_socket(kind: SocketType) -> Result<OwnedFd, CallError> {
    socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)
        .map_err(|error| CallError::new("open a packet socket", error))
}

/// Binds to every protocol, on one interface or on all.
fn bind(socket: &OwnedFd, interface: Option<u32>) -> Result<(), CallError> {
    const ALL: libc::c_int = 0;
    let mut address = link_layer_address();
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).expect("a small number").to_be();
    address.sll_ifindex = interface.map_or(Ok(ALL), index)?;
    // SAFETY: the kernel reads as many bytes as `address` has.
    let result = unsafe {
        libc::bind(socket.as_raw_fd(), (&raw const address).cast(), option_length::<libc::sockaddr_ll>())
    };
    match result {
        0 => Ok(()),
        _ => Err(CallError::last(match interface {
            Some(interface) => format!("bind a packet socket to interface {interface}"),
            None => "bind a packet socket to all interfaces".to_owned(),
        })),
    }
}

fn link_layer_address() -> libc::sockaddr_ll {
    libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).expect("a small number"),
        sll_protocol: 0,
        sll_ifindex: 0,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    }
}

fn index(interface: u32) -> Result<libc::c_int, CallError> {
    libc::c_int::try_from(interface).map_err(|_| {
        CallError::new(format!("find interface {interface}"), io::Error::from_raw_os_error(libc::ENODEV))
    })
}

/// Sets the filter of a ring's socket.
fn put(socket: &OwnedFd, options: &RingOptions, program: Program<'_>) -> Result<(), CallError> {
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

/// Index of the loopback, in each namespace (`LOOPBACK_IFINDEX` in the kernel's include/net/flow.h).
const LOOPBACK: u32 = 1;

/// Keep so many bytes; 0: refuse the packet.
fn verdict(bytes: u32) -> libc::sock_filter {
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

fn attach(socket: &impl AsFd, program: &mut [libc::sock_filter]) -> Result<(), CallError> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| {
            CallError::new(
                "attach a filter of so many instructions",
                io::Error::from_raw_os_error(libc::EINVAL),
            )
        })?,
        filter: program.as_mut_ptr(),
    };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
        .map_err(|error| CallError::new("attach a filter to a socket", error))
}

fn set<T>(socket: &impl AsFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as `value` has. A pointer in it is to memory that the caller borrows.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            option_length::<T>(),
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn option_length<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).expect("options are small")
}

// As in linux/if_packet.h.
const _: () = assert!(size_of::<libc::tpacket_req3>() == 28 && size_of::<libc::tpacket_stats_v3>() == 12);
const _: () = assert!(size_of::<libc::packet_mreq>() == 16 && size_of::<libc::sock_filter>() == 8);

#[cfg(test)]
mod tests {
    use rustix::mm::mmap_anonymous;

    use super::block::fake::{BLOCK_HEAD, Sample, fill, set};
    use super::*;

    const BLOCK: u32 = 4096;

    /// A ring of anonymous memory, and the test plays the kernel.
    fn ring(blocks: u32) -> Ring {
        let length = (blocks * BLOCK) as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: as in `Ring::map`.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, MapFlags::PRIVATE) };
        Ring::over(base.unwrap().cast(), blocks, BLOCK)
    }

    /// Block `number`, for the kernel to write to.
    fn bytes(ring: &mut Ring, number: u32) -> &mut [u8] {
        assert!(number < ring.blocks);
        // SAFETY: P2.
        let first = unsafe { ring.base.add((number * BLOCK) as usize) };
        // SAFETY: P2, and `ring` is borrowed for as long.
        unsafe { std::slice::from_raw_parts_mut(first.as_ptr(), BLOCK as usize) }
    }

    fn close(ring: &mut Ring, number: u32, data: &[&[u8]], status: u32) {
        let block = bytes(ring, number);
        fill(block, &data.iter().map(|data| Sample::of(data)).collect::<Vec<_>>());
        set(block, STATUS, status);
    }

    fn collect(ring: &mut Ring, most: usize) -> (Vec<Vec<u8>>, Walk) {
        let mut packets = Vec::new();
        let walk = ring.walk(|packet| {
            if packets.len() == most {
                return ControlFlow::Break(());
            }
            packets.push(packet.data.to_vec());
            ControlFlow::Continue(())
        });
        (packets, walk)
    }

    #[test]
    fn blocks_come_in_order_and_go_back() {
        let mut ring = ring(3);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Stopped));
        for turn in 0..7u8 {
            let number = u32::from(turn) % 3;
            close(&mut ring, number, &[&[turn; 60], &[turn; 90]], libc::TP_STATUS_USER);
            let (packets, walk) = collect(&mut ring, 9);
            assert_eq!(packets, [vec![turn; 60], vec![turn; 90]]);
            assert_eq!(walk, Walk::Done { damaged: 0 });
            let status = bytes(&mut ring, number)[STATUS..STATUS + 4].to_vec();
            assert_eq!(status, libc::TP_STATUS_KERNEL.to_ne_bytes());
            assert_eq!(ring.returned, u64::from(turn) + 1);
        }
        assert_eq!(ring.status(), 0);
    }

    #[test]
    fn a_walk_goes_on_where_it_stopped() {
        let mut ring = ring(1);
        close(&mut ring, 0, &[&[1], &[2], &[3]], libc::TP_STATUS_USER | libc::TP_STATUS_BLK_TMO);
        assert_eq!(collect(&mut ring, 0), (vec![], Walk::Stopped));
        assert_eq!(collect(&mut ring, 2), (vec![vec![1], vec![2]], Walk::Stopped));
        assert_eq!(ring.returned, 0);
        assert_eq!(collect(&mut ring, 2), (vec![vec![3]], Walk::Done { damaged: 0 }));
        assert_eq!(collect(&mut ring, 2), (vec![], Walk::Stopped));
    }

    #[test]
    fn a_damaged_or_empty_block_goes_back_too() {
        let mut ring = ring(2);
        close(&mut ring, 0, &[&[1; 60], &[2; 60], &[3; 60]], libc::TP_STATUS_USER);
        set(bytes(&mut ring, 0), BLOCK_HEAD, 0); // the first packet's step
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Done { damaged: 3 }));
        close(&mut ring, 1, &[], libc::TP_STATUS_USER);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Done { damaged: 0 }));
        // What is not ours is not looked at, whatever else the status says.
        close(&mut ring, 0, &[&[1]], !libc::TP_STATUS_USER);
        assert_eq!(collect(&mut ring, 9), (vec![], Walk::Stopped));
    }

    #[test]
    fn the_first_marked_and_the_open_block_are_found() {
        const LOSING: u32 = libc::TP_STATUS_USER | libc::TP_STATUS_LOSING;
        let mut ring = ring(4);
        assert_eq!(ring.look_ahead(0), (None, 0));
        for (number, status) in [(0, 1), (1, LOSING), (2, LOSING), (3, libc::TP_STATUS_LOSING)] {
            close(&mut ring, number, &[&[1]], status);
        }
        assert_eq!(
            [0, 1, 2, 3].map(|from| ring.look_ahead(from)),
            [(Some(1), 3), (Some(1), 3), (Some(2), 3), (None, 3)]
        );
        close(&mut ring, 3, &[&[1]], libc::TP_STATUS_USER);
        assert_eq!(ring.look_ahead(0), (Some(1), 4));
        collect(&mut ring, 9);
        collect(&mut ring, 9);
        assert_eq!(ring.look_ahead(0), (Some(2), 4));
    }

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
