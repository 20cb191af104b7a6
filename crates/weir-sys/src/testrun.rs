//! `BPF_PROG_TEST_RUN`: the kernel runs a program on a packet out of nothing; with live frames it sends what an XDP program
//! decides about them.

use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::CallError;

const BPF_PROG_TEST_RUN: libc::c_long = 10;
/// Linux 5.18.
const BPF_F_TEST_XDP_LIVE_FRAMES: u32 = 1 << 1;

/// The part of `union bpf_attr` for `BPF_PROG_TEST_RUN`.
#[repr(C)]
#[derive(Default)]
struct TestRun {
    prog_fd: i32,
    retval: u32,
    data_size_in: u32,
    data_size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    ctx_size_in: u32,
    ctx_size_out: u32,
    ctx_in: u64,
    ctx_out: u64,
    flags: u32,
    cpu: u32,
    batch_size: u32,
    /// The kernel wants the bytes behind the last field it knows to be zero.
    padding: u32,
}
const _: () = assert!(size_of::<TestRun>() == 80);

/// `struct xdp_md`.
#[repr(C)]
#[derive(Default)]
struct XdpContext {
    data: u32,
    data_end: u32,
    data_meta: u32,
    ingress_ifindex: u32,
    rx_queue_index: u32,
    egress_ifindex: u32,
}
const _: () = assert!(size_of::<XdpContext>() == 24);

/// Runs an XDP program `count` times on frames that begin as copies of `frame`, and carries out its verdicts, on the
/// calling CPU.
///
/// The frames seem to come from device `ingress`, which must be in the calling thread's namespace. They are handed to
/// the program and then to the driver `batch` at a time (at most 256, the kernel's default is 64); the same `batch`
/// pages are used again and again, with the contents they were left with.
///
/// # Errors
///
/// `EINTR`, a signal: fewer frames were made than asked for, and only the program can tell how many. `EINVAL`: also for a
/// frame that does not fit into a page beside the kernel's own structures. `EPERM` without `CAP_BPF` and `CAP_NET_ADMIN`.
pub fn live_frames(
    program: BorrowedFd<'_>,
    frame: &[u8],
    ingress: u32,
    batch: u32,
    count: u32,
) -> Result<(), CallError> {
    let size = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let context = XdpContext { data_end: size, ingress_ifindex: ingress, ..XdpContext::default() };
    let attributes = TestRun {
        prog_fd: program.as_raw_fd(),
        data_size_in: size,
        data_in: (&raw const *frame).addr() as u64,
        repeat: count,
        ctx_size_in: 24,
        ctx_in: (&raw const context).addr() as u64,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the attributes, `context` and `frame` are live for the call and as long as the sizes say; with live frames
    // the kernel writes only to the attributes' `retval` and `duration`, and refuses output buffers.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_TEST_RUN,
            (&raw const attributes).cast_mut(),
            size_of::<TestRun>(),
        )
    };
    if result < 0 { Err(CallError::last(format!("send live frames of {size} bytes"))) } else { Ok(()) }
}

/// What a program answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it returned, the last time.
    pub value: u32,
    /// Nanoseconds that a run took, on average.
    pub duration: u32,
}

/// Runs `program` on `packet` `repeat` times (0: once), and carries nothing out.
///
/// Programs for XDP and tc see the packet from its Ethernet header on, which it must have; socket filters only what is
/// behind the header. An XDP program that takes fragments gets a long packet in several buffers.
///
/// # Errors
///
/// `EINVAL` for a packet without an Ethernet header, and for a tc program for one that does not fit into a page; `EPERM`;
/// `EOPNOTSUPP`: the kind of program cannot be run so.
pub fn run(program: BorrowedFd<'_>, packet: &[u8], repeat: u32) -> Result<Answer, CallError> {
    let attributes = TestRun { prog_fd: program.as_raw_fd(), repeat, ..TestRun::default() };
    attempt(attributes, None, packet, packet.len())
}

/// Runs an XDP program once on `packet` with this metadata in front of it (`data_meta`; a multiple of four bytes).
///
/// # Errors
///
/// As [`run`].
pub fn run_with_metadata(
    program: BorrowedFd<'_>,
    metadata: &[u8],
    packet: &[u8],
) -> Result<Answer, CallError> {
    let data = [metadata, packet].concat();
    let bytes = |data: &[u8]| u32::try_from(data.len()).unwrap_or(u32::MAX);
    let context = XdpContext { data: bytes(metadata), data_end: bytes(&data), ..XdpContext::default() };
    let attributes = TestRun { prog_fd: program.as_raw_fd(), ..TestRun::default() };
    attempt(attributes, Some(&context), &data, packet.len())
}

/// `packet`: bytes of `data` that are packet.
fn attempt(
    attributes: TestRun,
    context: Option<&XdpContext>,
    data: &[u8],
    packet: usize,
) -> Result<Answer, CallError> {
    let mut attributes = TestRun {
        data_size_in: u32::try_from(data.len()).unwrap_or(u32::MAX),
        data_in: data.as_ptr().expose_provenance() as u64,
        ctx_size_in: context.map_or(0, |_| 24),
        ctx_in: context.map_or(0, |context| (&raw const *context).expose_provenance() as u64),
        ..attributes
    };
    // SAFETY: the attributes, the context if there is one, and `data` are live for the call and as long as the sizes
    // say; the kernel writes only to the attributes, since no output buffers are given.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_TEST_RUN, &raw mut attributes, size_of::<TestRun>()) };
    if result < 0 {
        return Err(CallError::last(format!("run program on a packet of {packet} bytes")));
    }
    Ok(Answer { value: attributes.retval, duration: attributes.duration })
}
