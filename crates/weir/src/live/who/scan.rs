//! Open sockets without the help of programs: `/proc/PID/fd` tells who has which file, and the kernel's tables which file is
//! which socket.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use weir_bpf::who::{Cause, Ends, ProcessReport, Report};
use weir_sys::process::Stat;
use weir_sys::{CallError, netns, sockets};

use super::groups::Groups;

/// Returns a report for each process and each socket of this network namespace that it has open, as far as this process may see
/// them.
pub(super) fn open_sockets(at: u64, groups: &Groups) -> Result<Vec<Report>, CallError> {
    const SOCK_STREAM: u8 = 1;
    const SOCK_DGRAM: u8 = 2;
    const TCP: u8 = 6;
    let namespace = netns::cookie()?;
    let mut found = Vec::new();
    let mut sockets: HashMap<u64, sockets::Socket> =
        sockets::sockets()?.into_iter().map(|socket| (socket.inode, socket)).collect();
    sockets.remove(&0); // nobody has these open
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let inodes = files.filter_map(|file| inode(fs::read_link(file.path()).ok()?.to_str()?));
        let mut own: Vec<_> = inodes.filter_map(|inode| sockets.get(&inode)).collect();
        own.sort_unstable_by_key(|socket| socket.cookie);
        own.dedup();
        if own.is_empty() {
            continue;
        }
        let Some(process) = process(number, groups) else { continue };
        found.extend(own.into_iter().map(|socket| Report {
            at,
            cause: Cause::Found,
            socket: socket.cookie,
            namespace,
            process: Some(process),
            kind: if socket.protocol == TCP { SOCK_STREAM } else { SOCK_DGRAM },
            protocol: socket.protocol.into(),
            ends: Some(Ends { local: socket.local, remote: socket.remote }),
            program: None,
            missed: 0,
        }));
    }
    Ok(found)
}

/// Reads `socket:[INODE]`.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Returns what `/proc` says about a process.
fn process(number: u32, groups: &Groups) -> Option<ProcessReport> {
    const HUNDREDTH: u64 = 10_000_000;
    let directory = format!("/proc/{number}");
    let stat = Stat::of(number).ok()?;
    let comm = fs::read(format!("{directory}/comm")).ok()?;
    let mut name = [0; 16];
    for (to, from) in name[..15].iter_mut().zip(comm.strip_suffix(b"\n").unwrap_or(&comm)) {
        *to = *from;
    }
    let group = fs::read_to_string(format!("{directory}/cgroup")).unwrap_or_default();
    let group = group.lines().find_map(|line| line.strip_prefix("0::"));
    Some(ProcessReport {
        number,
        started: stat.started * HUNDREDTH,
        parent: stat.parent,
        // The files of a process belong to its effective user.
        user: fs::metadata(format!("{directory}/stat")).ok()?.uid(),
        cgroup: group.and_then(|path| groups.number(path)).unwrap_or(0),
        name,
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn own_sockets_are_found_with_their_process() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = match open_sockets(7, &Groups::find()) {
            Ok(found) => found,
            Err(error) => return weir_skip::this_test(error),
        };
        let own =
            |report: &&Report| report.ends.is_some_and(|ends| ends.local.1 == port) && report.protocol == 17;
        let found = found.iter().find(own);
        let Some(found) = found else {
            let udp = sockets::sockets().unwrap().iter().any(|socket| socket.protocol == 17);
            assert!(!udp, "the kernel tells of UDP, but this socket is not found");
            return weir_skip::this_test("the kernel does not tell of UDP's sockets");
        };
        let process = found.process.unwrap();
        let own = std::process::id();
        assert_eq!((process.number, process.started / 10_000_000), (own, Stat::of(own).unwrap().started));
        assert_eq!((found.at, found.cause, found.kind), (7, Cause::Found, 2));
        assert_eq!(
            (process.user, process.parent),
            (rustix::process::geteuid().as_raw(), std::os::unix::process::parent_id())
        );
    }

    #[test]
    fn links_to_sockets_are_told_from_others() {
        assert_eq!(inode("socket:[4711]"), Some(4711));
        for other in ["pipe:[4711]", "socket:[x]", "/tmp/socket:[4711]", "socket:4711"] {
            assert_eq!(inode(other), None);
        }
    }
}
