//! Programs as filters of an interface's `clsact` queueing discipline, for kernels without tcx (before Linux 6.6).
//!
//! Unlike a link, such a filter outlives the process that made it. A guard process, forked for this purpose, therefore
//! makes the filters and removes them when we ask or end. If the guard is killed, too, the next capture that attaches
//! to the interface removes what it left.

mod guard;
mod mark;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use self::guard::{Guard, Outcome, Step};
use self::mark::{Alive, Mark};
use crate::CallError;
use crate::netlink::{self, CREATE, DUMP, Request};

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTFILTER: u16 = 44;
const RTM_DELTFILTER: u16 = 45;
const RTM_GETTFILTER: u16 = 46;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_BPF_FD: u16 = 6;
const TCA_BPF_NAME: u16 = 7;
const TCA_BPF_FLAGS: u16 = 8;
const TCA_BPF_FLAG_ACT_DIRECT: u32 = 1;
/// Parent and handle of the discipline.
const TC_H_CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const TC_H_INGRESS_FILTERS: u32 = 0xffff_fff2;
const TC_H_EGRESS_FILTERS: u32 = 0xffff_fff3;
const PARENTS: [u32; 2] = [TC_H_INGRESS_FILTERS, TC_H_EGRESS_FILTERS];
const ETH_P_ALL: u16 = 3;
/// Size of `struct tcmsg`, and offsets in it.
const TCMSG: usize = 20;
const IFINDEX: usize = 4;
const HANDLE: usize = 8;
const PARENT: usize = 12;
const INFO: usize = 16;

/// Attempts before giving up if others keep changing the filters.
const ATTEMPTS: u32 = 5;

/// Programs attached to an interface as direct-action filters. They are removed when this is dropped or the process
/// dies. So is the discipline, if it was created for them and has no other users.
#[derive(Debug)]
pub struct Clsact {
    guard: Guard,
    ifindex: u32,
    /// Dropped after the guard, so that a process is responsible for the filters as long as they exist.
    _alive: Alive,
}

impl Clsact {
    /// Attaches `ingress` and `egress` to the interface with index `ifindex` in this thread's network namespace. They
    /// run before the existing filters, or at the first free priority if priority 1 is taken. This first removes
    /// filters left by a capture whose guard was killed with it.
    ///
    /// # Errors
    ///
    /// `EPERM`: needs `CAP_NET_ADMIN`. `ENODEV`: no such interface. `EBUSY`: its discipline is the old `ingress`, which
    /// has no filters for outgoing packets. `ENOENT`: a kernel without clsact or `cls_bpf`.
    pub fn attach(
        ingress: Option<BorrowedFd<'_>>,
        egress: Option<BorrowedFd<'_>>,
        ifindex: u32,
    ) -> Result<Self, CallError> {
        let failed = |what: &str, error| {
            CallError::new(format!("attach tc filters to interface {ifindex}: {what}"), error)
        };
        let inherited =
            sweep(ifindex).map_err(|error| failed("remove filters that another process left", error))?;
        let mut attempt = 0;
        loop {
            let ask = |error| CallError::new(format!("list the tc filters of interface {ifindex}"), error);
            let there = discipline_of(ifindex).map_err(ask)?;
            let mark = Mark::new(inherited || there.is_none());
            let messages = GuardMessages::new([ingress, egress], ifindex, there.as_deref(), mark)?;
            let alive = mark.hold().map_err(|error| failed("mark the filters as in use", error))?;
            let (guard, outcome) =
                Guard::start(messages, &alive).map_err(|error| failed("start a guard process", error))?;
            let Outcome { step, errno } = outcome;
            attempt += 1;
            match errno {
                0 => return Ok(Self { guard, ifindex, _alive: alive }),
                // The filters have changed since the messages were made.
                libc::EEXIST | libc::EINVAL if attempt < ATTEMPTS => {}
                _ => return Err(failed(step.what(), io::Error::from_raw_os_error(errno))),
            }
        }
    }

    /// Removes the filters. A program may still be processing packets afterwards: see [`crate::bpf::grace`].
    ///
    /// # Errors
    ///
    /// `ENOLINK`: they are already gone, because the interface is gone.
    pub fn detach(&mut self) -> Result<(), CallError> {
        let Some(Outcome { errno, .. }) = self.guard.end() else { return Ok(()) };
        let failed = |errno| {
            let what = format!("detach tc filters from interface {}", self.ifindex);
            Err(CallError::new(what, io::Error::from_raw_os_error(errno)))
        };
        match errno {
            0 => Ok(()),
            libc::ENODEV | libc::ENOENT | libc::EINVAL => failed(libc::ENOLINK),
            other => failed(other),
        }
    }
}

/// All messages that the guard may send. They are built before the fork, because the guard cannot allocate.
#[derive(Debug)]
struct GuardMessages {
    /// `None`: the discipline exists.
    make_discipline: Option<Vec<u8>>,
    /// `None`: the discipline is not ours.
    remove_discipline: Option<Vec<u8>>,
    /// Requests to list the filters of each side.
    list: [Vec<u8>; 2],
    sides: Vec<Side>,
}

/// One filter.
#[derive(Debug)]
struct Side {
    step: Step,
    program: i32,
    make: Vec<u8>,
    remove: Vec<u8>,
}

impl GuardMessages {
    fn new(
        [ingress, egress]: [Option<BorrowedFd<'_>>; 2],
        ifindex: u32,
        there: Option<&str>,
        mark: Mark,
    ) -> Result<Self, CallError> {
        let ask = |error| CallError::new(format!("list the tc filters of interface {ifindex}"), error);
        if egress.is_some() && there == Some("ingress") {
            let what = format!(
                "attach tc filters to interface {ifindex}: its `ingress` qdisc has no egress filters"
            );
            return Err(CallError::new(what, Errno::BUSY));
        }
        let sides =
            [(ingress, TC_H_INGRESS_FILTERS, Step::Ingress), (egress, TC_H_EGRESS_FILTERS, Step::Egress)];
        let sides = sides.into_iter().filter_map(|(program, parent, step)| Some((program?, parent, step)));
        let sides = sides.map(|(program, parent, step)| {
            let priority = free_priority(&priorities(&list(ifindex, parent))?);
            let info = u32::from(priority) << 16 | u32::from(ETH_P_ALL.to_be());
            let filter = |kind, flags| {
                Request::new(kind, flags, &tcmsg(ifindex, mark.handle(), parent, info))
                    .attribute(TCA_KIND, b"bpf\0")
            };
            let make = filter(RTM_NEWTFILTER, CREATE).nested(TCA_OPTIONS, &[], |options| {
                options
                    .attribute(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes())
                    .attribute(TCA_BPF_NAME, format!("{}\0", mark.name()).as_bytes())
                    .attribute(TCA_BPF_FLAGS, &TCA_BPF_FLAG_ACT_DIRECT.to_ne_bytes())
            });
            Ok(Side {
                step,
                program: program.as_raw_fd(),
                make: make.message(1),
                remove: filter(RTM_DELTFILTER, 0).message(1),
            })
        });
        Ok(Self {
            make_discipline: there.is_none().then(|| discipline(ifindex, RTM_NEWQDISC, CREATE).message(1)),
            remove_discipline: mark.own.then(|| discipline(ifindex, RTM_DELQDISC, 0).message(1)),
            list: PARENTS.map(|parent| list(ifindex, parent).message(1)),
            sides: sides.collect::<io::Result<_>>().map_err(ask)?,
        })
    }
}

/// `struct tcmsg` (linux/rtnetlink.h).
fn tcmsg(ifindex: u32, handle: u32, parent: u32, info: u32) -> [u8; TCMSG] {
    let mut header = [0; TCMSG];
    for (word, value) in header[IFINDEX..].chunks_exact_mut(4).zip([ifindex, handle, parent, info]) {
        word.copy_from_slice(&value.to_ne_bytes());
    }
    header
}

fn discipline(ifindex: u32, kind: u16, flags: u16) -> Request {
    Request::new(kind, flags, &tcmsg(ifindex, CLSACT_HANDLE, TC_H_CLSACT, 0)).attribute(TCA_KIND, b"clsact\0")
}

fn list(ifindex: u32, parent: u32) -> Request {
    Request::new(RTM_GETTFILTER, DUMP, &tcmsg(ifindex, 0, parent, 0))
}

/// Removes abandoned filters. Returns whether the discipline was created for one of them: if so, the next
/// filters take it over and remove it.
fn sweep(ifindex: u32) -> io::Result<bool> {
    let mut inherited = false;
    for parent in PARENTS {
        let mut left = Vec::new();
        netlink::ask(netlink::ROUTE, &list(ifindex, parent), RTM_NEWTFILTER, |message| {
            let at = |place: usize| message.get(place..).map_or(0, netlink::word);
            let options = netlink::attribute(message.get(TCMSG..).unwrap_or_default(), TCA_OPTIONS);
            let name = netlink::attribute(options.unwrap_or_default(), TCA_BPF_NAME).map(netlink::text);
            // A kernel without clsact lists the filters of the root.
            match name.and_then(|name| Mark::of(&name)) {
                Some(mark) if at(PARENT) == parent && at(HANDLE) == mark.handle() => {
                    left.push((mark, at(INFO)))
                }
                _ => {}
            }
        })?;
        for (mark, info) in left.into_iter().filter(|(mark, _)| mark.is_left()) {
            let filter = tcmsg(ifindex, mark.handle(), parent, info);
            let remove = Request::new(RTM_DELTFILTER, 0, &filter).attribute(TCA_KIND, b"bpf\0");
            match netlink::ask(netlink::ROUTE, &remove, RTM_NEWTFILTER, |_| {}) {
                // Another process removed it at the same time.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                swept => swept?,
            }
            inherited |= mark.own;
        }
    }
    Ok(inherited)
}

/// Returns the kind of discipline in the place of clsact.
fn discipline_of(ifindex: u32) -> io::Result<Option<String>> {
    let mut kind = None;
    let request = Request::new(RTM_GETQDISC, DUMP, &tcmsg(ifindex, 0, 0, 0));
    netlink::ask(netlink::ROUTE, &request, RTM_NEWQDISC, |message| {
        let at = |place: usize| message.get(place..).map(netlink::word);
        if at(IFINDEX) == Some(ifindex) && at(PARENT) == Some(TC_H_CLSACT) {
            kind = netlink::attribute(message.get(TCMSG..).unwrap_or_default(), TCA_KIND).map(netlink::text);
        }
    })?;
    Ok(kind)
}

/// Returns the priorities of the filters; lower ones run first.
fn priorities(list: &Request) -> io::Result<Vec<u16>> {
    let mut priorities = Vec::new();
    netlink::ask(netlink::ROUTE, list, RTM_NEWTFILTER, |message| {
        let info = message.get(INFO..).map_or(0, netlink::word);
        priorities.push((info >> 16) as u16);
    })?;
    Ok(priorities)
}

/// Returns a priority before all others, or the first free one if priority 1 is taken.
fn free_priority(taken: &[u16]) -> u16 {
    /// The kernel's choice for the first filter without a priority.
    const USUAL: u16 = 0xc000;
    match taken.iter().min() {
        None => USUAL,
        Some(&first @ 2..) => first - 1,
        Some(_) => (2..=u16::MAX).find(|priority| !taken.contains(priority)).unwrap_or(USUAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_in_front_or_free() {
        for (taken, priority) in
            [(&[][..], 0xc000), (&[49152, 7], 6), (&[2], 1), (&[1], 2), (&[1, 2, 3, 5], 4), (&[0], 2)]
        {
            assert_eq!(free_priority(taken), priority, "{taken:?}");
        }
    }

    #[test]
    fn the_loopback_of_the_host_has_no_filters_of_ours() {
        assert_eq!(discipline_of(1).expect("it can be asked"), None);
    }
}
