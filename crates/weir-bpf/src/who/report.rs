//! What the programs tell.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::layout::{get, who_cause, who_executed, who_process, who_report};

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// A process has the socket open, and may have had for long.
    Found,
    /// A process has made it.
    Created,
    /// A process has bound it.
    Bound,
    /// A process connects it.
    Connecting,
    /// A process has sent on it without a connection.
    Sent,
    /// A process takes connections by it.
    Listening,
    /// It was made for a connection from elsewhere. The process is that of the listening socket.
    Accepted,
    /// The connection that was begun by it stands. No process is told.
    Established,
    /// Nobody has it open any longer.
    Closed,
    /// The process runs another program. No socket.
    Executed,
    /// The process has ended. No socket.
    Ended,
}

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessReport {
    /// Its number in the first pid namespace.
    pub number: u32,
    /// When it started, in nanoseconds since the system did, also while that slept; 0: not known.
    pub started: u64,
    /// The number of its parent; 0: not known.
    pub parent: u32,
    /// Its effective user; without types of the kernel (BTF), the real one.
    pub user: u32,
    /// The number of its control group in cgroup2: the inode of its directory.
    pub cgroup: u64,
    /// The name of its main thread, filled up with zeros; without types of the kernel, of the thread.
    pub name: [u8; 16],
}

/// A socket's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// Its own address, unspecified if it has none, and port, 0 if it has none. A raw socket's is its protocol.
    pub local: (IpAddr, u16),
    /// The other end; unspecified and 0 if it has none that was told.
    pub remote: (IpAddr, u16),
}

/// What was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// When, by `CLOCK_TAI` in nanoseconds.
    pub at: u64,
    /// What has happened.
    pub cause: Cause,
    /// The socket's cookie; 0: none.
    pub socket: u64,
    /// The cookie of its network namespace; 0: none.
    pub namespace: u64,
    /// The process, if one is known.
    pub process: Option<ProcessReport>,
    /// The kind of socket: `SOCK_STREAM` and others.
    pub kind: u8,
    /// Its protocol; beyond 255 for those that only sockets have, as `IPPROTO_MPTCP`.
    pub protocol: u16,
    /// Its ends, as far as they were told.
    pub ends: Option<Ends>,
    /// The path of the program that the process runs, as it was given to the kernel: with [`Cause::Executed`].
    pub program: Option<Vec<u8>>,
    /// How many reports were lost before this one on its processor, since the last one there.
    pub missed: u32,
}

impl Report {
    /// Reads a report; `None`: it is none.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < size_of::<who_report>() {
            return None;
        }
        let cause = cause_of(get!(bytes, who_report.cause))?;
        let program = (cause == Cause::Executed && bytes.len() >= size_of::<who_executed>()).then(|| {
            let program = &bytes[std::mem::offset_of!(who_executed, program)..size_of::<who_executed>()];
            program.iter().copied().take_while(|&byte| byte != 0).collect()
        });
        let process = &bytes[std::mem::offset_of!(who_report, process)..][..size_of::<who_process>()];
        Some(Self {
            at: get!(bytes, who_report.at),
            cause,
            socket: get!(bytes, who_report.socket),
            namespace: get!(bytes, who_report.namespace),
            process: ProcessReport::from_bytes(process),
            kind: get!(bytes, who_report.kind),
            protocol: get!(bytes, who_report.protocol),
            ends: Ends::from_bytes(bytes),
            program,
            missed: get!(bytes, who_report.missed),
        })
    }
}

impl ProcessReport {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        const NAME: usize = std::mem::offset_of!(who_process, name);
        let number = get!(bytes, who_process.number);
        (number != 0).then(|| Self {
            number,
            started: get!(bytes, who_process.started),
            parent: get!(bytes, who_process.parent),
            user: get!(bytes, who_process.user),
            cgroup: get!(bytes, who_process.cgroup),
            name: *bytes[NAME..].first_chunk().expect("a whole process"),
        })
    }
}

impl Ends {
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        const AF_INET: u8 = 2;
        const AF_INET6: u8 = 10;
        let address = |words: [u32; 4]| match get!(bytes, who_report.family) {
            AF_INET => Some(IpAddr::from(Ipv4Addr::from(words[0].to_ne_bytes()))),
            AF_INET6 => {
                let mut octets = [0; 16];
                for (to, word) in octets.chunks_exact_mut(4).zip(words) {
                    to.copy_from_slice(&word.to_ne_bytes());
                }
                Some(Ipv6Addr::from(octets).to_canonical())
            }
            _ => None,
        };
        Some(Self {
            local: (address(get!(bytes, who_report.local))?, get!(bytes, who_report.local_port)),
            remote: (address(get!(bytes, who_report.remote))?, get!(bytes, who_report.remote_port)),
        })
    }
}

fn cause_of(number: u8) -> Option<Cause> {
    Some(match who_cause(number.into()) {
        who_cause::WHO_FOUND => Cause::Found,
        who_cause::WHO_CREATED => Cause::Created,
        who_cause::WHO_BOUND => Cause::Bound,
        who_cause::WHO_CONNECTING => Cause::Connecting,
        who_cause::WHO_SENT => Cause::Sent,
        who_cause::WHO_LISTENING => Cause::Listening,
        who_cause::WHO_ACCEPTED => Cause::Accepted,
        who_cause::WHO_ESTABLISHED => Cause::Established,
        who_cause::WHO_CLOSED => Cause::Closed,
        who_cause::WHO_EXECUTED => Cause::Executed,
        who_cause::WHO_ENDED => Cause::Ended,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::set;

    fn report(cause: who_cause, family: u8) -> Vec<u8> {
        let mut bytes = vec![0; size_of::<who_report>()];
        set!(&mut bytes, who_report.cause = u8::try_from(cause.0).unwrap());
        set!(&mut bytes, who_report.family = family);
        bytes
    }

    #[test]
    fn addresses_are_as_on_the_wire() {
        let mut bytes = report(who_cause::WHO_CONNECTING, 2);
        set!(&mut bytes, who_report.local = [u32::from_ne_bytes([10, 0, 0, 1]), 0, 0, 0]);
        set!(&mut bytes, who_report.remote_port = 443_u16);
        let read = Report::from_bytes(&bytes).unwrap();
        let ends = read.ends.unwrap();
        assert_eq!((ends.local, ends.remote), (([10, 0, 0, 1].into(), 0), ([0, 0, 0, 0].into(), 443)));
        assert_eq!((read.process, read.program), (None, None));

        // IPv4 in IPv6 is IPv4, but any address of IPv6 may be both.
        let mut bytes = report(who_cause::WHO_BOUND, 10);
        let mapped = [0, 0, u32::from_ne_bytes([0, 0, 255, 255]), u32::from_ne_bytes([10, 0, 0, 2])];
        set!(&mut bytes, who_report.remote = mapped);
        let ends = Report::from_bytes(&bytes).unwrap().ends.unwrap();
        assert_eq!((ends.local.0, ends.remote.0), (Ipv6Addr::UNSPECIFIED.into(), [10, 0, 0, 2].into()));
        assert_eq!(Report::from_bytes(&report(who_cause::WHO_CLOSED, 0)).unwrap().ends, None);
    }

    #[test]
    fn what_is_no_report_is_none() {
        let whole = report(who_cause::WHO_SENT, 2);
        assert!(Report::from_bytes(&whole).is_some());
        for shorter in 0..whole.len() {
            assert_eq!(Report::from_bytes(&whole[..shorter]), None);
        }
        assert_eq!(Report::from_bytes(&report(who_cause(0), 2)), None);
        assert_eq!(Report::from_bytes(&report(who_cause(200), 2)), None);
    }

    #[test]
    fn a_program_ends_at_its_zero() {
        let mut bytes = report(who_cause::WHO_EXECUTED, 0);
        bytes.resize(size_of::<who_executed>(), 0);
        bytes[std::mem::offset_of!(who_executed, program)..][..7].copy_from_slice(b"/bin/ls");
        assert_eq!(Report::from_bytes(&bytes).unwrap().program.as_deref(), Some(b"/bin/ls".as_slice()));
        // Of no other is it told.
        set!(&mut bytes, who_report.cause = u8::try_from(who_cause::WHO_ENDED.0).unwrap());
        assert_eq!(Report::from_bytes(&bytes).unwrap().program, None);
    }
}
