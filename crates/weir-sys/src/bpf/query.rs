//! Finding the programs on an interface, and information about them.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::bpf;
use crate::CallError;
use crate::filter::Side;

const BPF_PROG_GET_NEXT_ID: libc::c_int = 11;
const BPF_MAP_GET_NEXT_ID: libc::c_int = 12;
const BPF_PROG_GET_FD_BY_ID: libc::c_int = 13;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_int = 15;
const BPF_PROG_QUERY: libc::c_int = 16;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;

/// `struct { ... } query` of `union bpf_attr`, up to the last field that Linux 6.6 reads for tcx.
#[repr(C)]
#[derive(Default)]
struct Query {
    target_ifindex: u32,
    attach_type: u32,
    query_flags: u32,
    attach_flags: u32,
    prog_ids: u64,
    count: u32,
    padding: u32,
    prog_attach_flags: u64,
    link_ids: u64,
    link_attach_flags: u64,
    revision: u64,
}

/// `struct { ... }` of `union bpf_attr` for `BPF_PROG_GET_FD_BY_ID` and `BPF_*_GET_NEXT_ID`.
#[repr(C)]
struct ById {
    /// For `GET_NEXT_ID`, the previous ID.
    prog_id: u32,
    next_id: u32,
    open_flags: u32,
}

/// `struct { ... } info` of `union bpf_attr`.
#[repr(C)]
struct ByFd {
    bpf_fd: u32,
    info_len: u32,
    info: u64,
}

/// `struct bpf_prog_info` up to its name.
#[repr(C)]
#[derive(Default)]
struct Info {
    kind: u32,
    id: u32,
    tag: [u8; 8],
    jited_len: u32,
    xlated_len: u32,
    jited: u64,
    xlated: u64,
    load_time: u64,
    created_by_uid: u32,
    nr_map_ids: u32,
    map_ids: u64,
    name: [u8; 16],
}

const _: () = assert!(size_of::<Query>() == 64 && size_of::<ByFd>() == 16 && size_of::<Info>() == 80);

/// A loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramInfo {
    /// Program ID.
    pub id: u32,
    /// The first 15 letters of its name.
    pub name: String,
    /// The user who loaded it.
    pub user: u32,
}

/// Returns the IDs of all programs in the kernel. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
///
/// `EPERM` without that capability.
pub fn programs() -> Result<Vec<u32>, CallError> {
    ids(BPF_PROG_GET_NEXT_ID).map_err(|error| CallError::new("list eBPF programs", error))
}

/// Returns the IDs of all maps in the kernel. Needs `CAP_SYS_ADMIN`.
///
/// This opens none of them. The kernel empties a map of programs once nobody has it open. Opening and closing such a
/// map at that moment makes the kernel empty it twice, and keep it forever (`prog_array_map_clear`,
/// kernel/bpf/arraymap.c, 6.18).
///
/// # Errors
///
/// `EPERM` without that capability.
pub fn maps() -> Result<Vec<u32>, CallError> {
    ids(BPF_MAP_GET_NEXT_ID).map_err(|error| CallError::new("list eBPF maps", error))
}

fn ids(command: libc::c_int) -> io::Result<Vec<u32>> {
    let mut attr = ById { prog_id: 0, next_id: 0, open_flags: 0 };
    let mut ids = Vec::new();
    loop {
        // SAFETY: `attr` begins like union bpf_attr for these commands. The kernel writes the next ID to it, so it is
        // passed as mutable.
        match unsafe { bpf(command, (&raw mut attr).cast_const()) } {
            Ok(_) => ids.push(attr.next_id),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(ids),
            Err(error) => return Err(error),
        }
        attr.prog_id = attr.next_id;
    }
}

/// Returns information about the program with this ID; `None` if there is none. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
///
/// `EPERM` without that capability.
pub fn program(id: u32) -> Result<Option<ProgramInfo>, CallError> {
    let failed = |error| CallError::new(format!("query eBPF program {id}"), error);
    let Some(fd) = open_program(id)? else { return Ok(None) };
    let info = info(fd.as_fd()).map_err(failed)?;
    let end = info.name.iter().position(|&byte| byte == 0).unwrap_or(info.name.len());
    let name = String::from_utf8_lossy(&info.name[..end]).into_owned();
    Ok(Some(ProgramInfo { id: info.id, name, user: info.created_by_uid }))
}

/// Opens the program with this ID; `None` if there is none. Needs `CAP_SYS_ADMIN`.
///
/// # Errors
///
/// `EPERM` without that capability.
pub fn open_program(id: u32) -> Result<Option<OwnedFd>, CallError> {
    let attr = ById { prog_id: id, next_id: 0, open_flags: 0 };
    // SAFETY: `attr` begins like union bpf_attr for this command; the kernel reads no more than its size.
    match unsafe { bpf(BPF_PROG_GET_FD_BY_ID, &raw const attr) } {
        // SAFETY: a descriptor that the kernel has just created for us.
        Ok(fd) => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(CallError::new(format!("open eBPF program {id}"), error)),
    }
}

/// What a link of XDP or tcx attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// ID of the program.
    pub program: u32,
    /// Index of the interface; 0: it is gone, or the program was detached.
    pub interface: u32,
}

/// Returns what a link of XDP or tcx attaches.
///
/// # Errors
///
/// None in practice.
pub(super) fn attached(link: BorrowedFd<'_>) -> io::Result<Attached> {
    /// `struct bpf_link_info` up to the first field of XDP and tcx.
    #[repr(C)]
    #[derive(Default)]
    struct LinkInfo {
        kind: u32,
        id: u32,
        prog_id: u32,
        padding: u32,
        ifindex: u32,
        attach_type: u32,
    }
    let mut info = LinkInfo::default();
    let attr = ByFd {
        bpf_fd: link.as_raw_fd().cast_unsigned(),
        info_len: u32::try_from(size_of::<LinkInfo>()).expect("a few bytes"),
        info: (&raw mut info).expose_provenance() as u64,
    };
    // SAFETY: as in `info`; for these links the kernel reads no lengths of further buffers.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &raw const attr) }?;
    Ok(Attached { program: info.prog_id, interface: info.ifindex })
}

/// Returns the number of a program's instructions after all of the kernel's rewriting. Needs `CAP_BPF`; without it,
/// returns 0.
///
/// # Errors
///
/// None in practice: the program exists.
pub fn instructions(program: BorrowedFd<'_>) -> io::Result<usize> {
    Ok(info(program)?.xlated_len as usize / 8)
}

fn info(program: BorrowedFd<'_>) -> io::Result<Info> {
    let mut info = Info::default();
    let attr = ByFd {
        bpf_fd: program.as_raw_fd().cast_unsigned(),
        info_len: u32::try_from(size_of::<Info>()).expect("eighty bytes"),
        info: (&raw mut info).expose_provenance() as u64,
    };
    // SAFETY: `attr` begins like union bpf_attr for this command. `info` is live, and the kernel writes at most
    // `info_len` bytes to it. All its lengths of further buffers are zero.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &raw const attr) }?;
    Ok(info)
}

/// Returns the IDs of the programs that tcx (Linux 6.6) runs on one side of the interface, in order. `None`: a kernel
/// without tcx. Needs `CAP_NET_ADMIN`, and before Linux 6.11 also `CAP_BPF`.
///
/// # Errors
///
/// `EPERM` without those capabilities, `ENODEV`: no such interface.
pub fn tcx(interface: u32, side: Side) -> Result<Option<Vec<u32>>, CallError> {
    /// More programs than the kernel allows per hook (`BPF_MPROG_MAX`).
    const MOST: u32 = 64;
    let mut ids = [0_u32; MOST as usize];
    let mut attr = Query {
        target_ifindex: interface,
        attach_type: match side {
            Side::Ingress => BPF_TCX_INGRESS,
            Side::Egress => BPF_TCX_EGRESS,
        },
        prog_ids: ids.as_mut_ptr().expose_provenance() as u64,
        count: MOST,
        ..Query::default()
    };
    // SAFETY: `attr` begins like union bpf_attr for this command. The kernel writes to it, so it is passed as mutable,
    // and writes at most `count` words to `ids`.
    match unsafe { bpf(BPF_PROG_QUERY, (&raw mut attr).cast_const()) } {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(Some(Vec::new())),
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Ok(None),
        Err(error) => Err(CallError::new(format!("list tcx programs of interface {interface}"), error)),
        Ok(_) => Ok(Some(ids[..ids.len().min(attr.count as usize)].to_vec())),
    }
}
