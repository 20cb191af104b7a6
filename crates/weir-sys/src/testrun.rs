//! `BPF_PROG_TEST_RUN`: the kernel runs a program on a made-up packet. With live frames, it carries out the verdicts of
//! an XDP program.

use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd};

use crate::CallError;
use crate::bpf::bpf;

const BPF_PROG_TEST_RUN: libc::c_int = 10;
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
    /// The kernel requires all bytes after the last field it knows to be zero.
    padding: u32,
}
const _: () = assert!(size_of::<TestRun>() == 80);

/// Returns a `struct xdp_md`: the packet's place behind its metadata, and the device that it seems to come from.
fn xdp_context(data: u32, data_end: u32, ingress: u32) -> [u32; 6] {
    [data, data_end, 0, ingress, 0, 0]
}

/// `struct __sk_buff`: its size, and the place of `gso_size`, in words of four bytes.
const SK_BUFF_WORDS: usize = 48;
const SK_BUFF_GSO_SIZE: usize = 44;

/// Runs an XDP program `count` times on frames that begin as copies of `frame`, and carries out its verdicts, on the
/// calling CPU.
///
/// The frames seem to come from device `ingress`, which must be in the calling thread's namespace. The program and then
/// the driver get `batch` frames at a time (at most 256; the kernel's default is 64). The same `batch` pages are reused
/// with the contents they were left with.
///
/// # Errors
///
/// `EINTR`: after a signal; fewer frames were made than requested, and only the program can tell how many. `EINVAL`:
/// also for a frame that does not fit into a page together with the kernel's own structures. `EPERM`: without `CAP_BPF`
/// and `CAP_NET_ADMIN`.
pub fn live_frames(
    program: BorrowedFd<'_>,
    frame: &[u8],
    ingress: u32,
    batch: u32,
    count: u32,
) -> Result<(), CallError> {
    let size = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    let context = xdp_context(0, size, ingress);
    let mut attributes = TestRun {
        prog_fd: program.as_raw_fd(),
        data_size_in: size,
        data_in: frame.as_ptr().expose_provenance() as u64,
        repeat: count,
        ctx_size_in: 24,
        ctx_in: context.as_ptr().expose_provenance() as u64,
        flags: BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..TestRun::default()
    };
    // SAFETY: the attributes, `context` and `frame` are live for the call and as long as the sizes say; with live
    // frames the kernel writes only to the attributes' `retval` and `duration`, and refuses output buffers.
    unsafe { bpf(BPF_PROG_TEST_RUN, (&raw mut attributes).cast_const()) }
        .map(drop)
        .map_err(|error| CallError::new(format!("send live frames of {size} bytes"), error))
}

/// The result of test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Return value of the last run.
    pub value: u32,
    /// Average nanoseconds per run.
    pub duration: u32,
}

/// Runs `program` on `packet` `repeat` times (0: once), without carrying out its verdicts.
///
/// The packet must begin with an Ethernet header. XDP and tc programs see it from there; socket filters see only what
/// follows the header. An XDP program that accepts fragments gets a long packet in several buffers.
///
/// # Errors
///
/// `EINVAL`: no Ethernet header, or a packet for a tc program that does not fit into a page. `EPERM`. `EOPNOTSUPP`:
/// this kind of program does not support test runs.
pub fn run(program: BorrowedFd<'_>, packet: &[u8], repeat: u32) -> Result<Answer, CallError> {
    let attributes = TestRun { prog_fd: program.as_raw_fd(), repeat, ..TestRun::default() };
    attempt(attributes, &[], packet, packet.len())
}

/// Runs a tc program once on `packet` as a super-frame, whose segments have this much payload (Linux 5.7). 0: as [`run`] does.
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_super_frame(program: BorrowedFd<'_>, packet: &[u8], payload: u32) -> Result<Answer, CallError> {
    let mut context = [0; SK_BUFF_WORDS];
    context[SK_BUFF_GSO_SIZE] = payload;
    let attributes = TestRun { prog_fd: program.as_raw_fd(), ..TestRun::default() };
    attempt(attributes, &context, packet, packet.len())
}

/// Runs the program of a raw tracepoint once with these arguments, on the calling CPU (Linux 5.10).
///
/// # Errors
///
/// `EINVAL`: the program reads more arguments. `EPERM`.
pub fn run_tracepoint(program: BorrowedFd<'_>, arguments: &[u64]) -> Result<(), CallError> {
    let mut attributes = TestRun {
        prog_fd: program.as_raw_fd(),
        ctx_size_in: u32::try_from(size_of_val(arguments)).unwrap_or(u32::MAX),
        ctx_in: arguments.as_ptr().expose_provenance() as u64,
        ..TestRun::default()
    };
    // SAFETY: the attributes and `arguments` are live for the call and as long as the size says; the kernel writes only to
    // the attributes.
    unsafe { bpf(BPF_PROG_TEST_RUN, (&raw mut attributes).cast_const()) }
        .map(drop)
        .map_err(|error| CallError::new("run the program of a tracepoint", error))
}

/// Runs an XDP program once on `packet` with this metadata in front of it (`data_meta`; a multiple of four bytes).
///
/// # Errors
///
/// The errors of [`run`].
pub fn run_with_metadata(
    program: BorrowedFd<'_>,
    metadata: &[u8],
    packet: &[u8],
) -> Result<Answer, CallError> {
    let data = [metadata, packet].concat();
    let bytes = |data: &[u8]| u32::try_from(data.len()).unwrap_or(u32::MAX);
    let context = xdp_context(bytes(metadata), bytes(&data), 0);
    let attributes = TestRun { prog_fd: program.as_raw_fd(), ..TestRun::default() };
    attempt(attributes, &context, &data, packet.len())
}

/// Runs an XDP program once on `packet`, and returns its verdict and the packet that it left, of at most
/// `room` bytes.
///
/// # Errors
///
/// The errors of [`run`], and `ENOSPC` if the packet became longer than `room`.
pub fn rewrite(program: BorrowedFd<'_>, packet: &[u8], room: usize) -> Result<(Answer, Vec<u8>), CallError> {
    let mut left = vec![0; room];
    let mut attributes = TestRun {
        prog_fd: program.as_raw_fd(),
        data_size_in: u32::try_from(packet.len()).unwrap_or(u32::MAX),
        data_in: packet.as_ptr().expose_provenance() as u64,
        data_size_out: u32::try_from(room).unwrap_or(u32::MAX),
        data_out: left.as_mut_ptr().expose_provenance() as u64,
        ..TestRun::default()
    };
    // SAFETY: the attributes, `packet` and `left` are live for the call and as long as the sizes say; the kernel writes
    // to the attributes, and to `left` up to its size.
    unsafe { bpf(BPF_PROG_TEST_RUN, (&raw mut attributes).cast_const()) }.map_err(|error| {
        CallError::new(format!("run program on a packet of {} bytes", packet.len()), error)
    })?;
    left.truncate(attributes.data_size_out as usize);
    Ok((Answer { value: attributes.retval, duration: attributes.duration }, left))
}

/// `context`: that of the program, or none. `packet`: how many bytes of `data` are the packet.
fn attempt(attributes: TestRun, context: &[u32], data: &[u8], packet: usize) -> Result<Answer, CallError> {
    let mut attributes = TestRun {
        data_size_in: u32::try_from(data.len()).unwrap_or(u32::MAX),
        data_in: data.as_ptr().expose_provenance() as u64,
        ctx_size_in: u32::try_from(size_of_val(context)).unwrap_or(u32::MAX),
        ctx_in: if context.is_empty() { 0 } else { context.as_ptr().expose_provenance() as u64 },
        ..attributes
    };
    // SAFETY: the attributes, `context` and `data` are live for the call and as long as the sizes
    // say; the kernel writes only to the attributes, since no output buffers are given.
    unsafe { bpf(BPF_PROG_TEST_RUN, (&raw mut attributes).cast_const()) }
        .map_err(|error| CallError::new(format!("run program on a packet of {packet} bytes"), error))?;
    Ok(Answer { value: attributes.retval, duration: attributes.duration })
}
