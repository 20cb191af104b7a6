//! Programs as filters of an interface's `clsact` queueing discipline, for kernels without tcx (before Linux 6.6).
//!
//! Unlike a link, such a filter does not go with the process that made it. So it is made by another: a guard, forked for
//! this alone, which takes off what it has put on as soon as we ask, or are gone.

mod guard;

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use self::guard::{Guard, Outcome, Step};
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
/// Where the discipline is, and what it is called there.
const TC_H_CLSACT: u32 = 0xffff_fff1;
const CLSACT_HANDLE: u32 = 0xffff_0000;
const TC_H_INGRESS_FILTERS: u32 = 0xffff_fff2;
const TC_H_EGRESS_FILTERS: u32 = 0xffff_fff3;
const ETH_P_ALL: u16 = 3;
/// Bytes of `struct tcmsg`, and places in it.
const TCMSG: usize = 20;
const IFINDEX: usize = 4;
const PARENT: usize = 12;
const INFO: usize = 16;

/// How often another's change in between is met before giving up.
const ATTEMPTS: u32 = 5;

/// Programs on an interface, as direct-action filters. They are taken off when this is dropped or the process dies, and
/// so is the discipline, if it was made for them and nobody else has come to use it.
#[derive(Debug)]
pub struct Clsact {
    guard: Guard,
    ifindex: u32,
}

impl Clsact {
    /// Puts `ingress` and `egress` on the interface with index `ifindex` of this thread's network namespace, in front of
    /// the filters that are there, or where priority 1 is taken, at the first free one.
    ///
    /// # Errors
    ///
    /// `EPERM`: needs `CAP_NET_ADMIN`. `ENODEV`: no such interface. `EBUSY`: its discipline is the old `ingress`, which has
    /// no filters for what is sent. `ENOENT`: a kernel without clsact or `cls_bpf`.
    pub fn attach(
        ingress: Option<BorrowedFd<'_>>,
        egress: Option<BorrowedFd<'_>>,
        ifindex: u32,
    ) -> Result<Self, CallError> {
        let failed = |what: &str, error| {
            CallError::new(format!("attach tc filters to interface {ifindex}: {what}"), error)
        };
        let mut attempt = 0;
        loop {
            let plan = Plan::new(ingress, egress, ifindex)?;
            let (guard, outcome) = Guard::start(plan).map_err(|error| failed("start a guard", error))?;
            let Outcome { step, errno } = outcome;
            attempt += 1;
            match errno {
                0 => return Ok(Self { guard, ifindex }),
                // Somebody has changed in between what the plan was made for.
                libc::EEXIST | libc::EINVAL if attempt < ATTEMPTS => {}
                _ => return Err(failed(step.what(), io::Error::from_raw_os_error(errno))),
            }
        }
    }

    /// Takes the filters off. Packets that a program has begun with may still be in it: see [`crate::bpf::synchronize`].
    ///
    /// # Errors
    ///
    /// `ENOLINK`: they are off already, the interface being gone.
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

/// All messages that the guard may have to send, made before it is forked: it cannot allocate.
#[derive(Debug)]
struct Plan {
    /// `None`: the discipline is there, and somebody else's.
    make_discipline: Option<Vec<u8>>,
    remove_discipline: Vec<u8>,
    /// Asks for the filters of each side.
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

impl Plan {
    fn new(
        ingress: Option<BorrowedFd<'_>>,
        egress: Option<BorrowedFd<'_>>,
        ifindex: u32,
    ) -> Result<Self, CallError> {
        let discipline = |kind, flags| {
            Request::new(kind, flags, &tcmsg(ifindex, CLSACT_HANDLE, TC_H_CLSACT, 0))
                .attribute(TCA_KIND, b"clsact\0")
        };
        let list = |parent| Request::new(RTM_GETTFILTER, DUMP, &tcmsg(ifindex, 0, parent, 0));
        let ask = |error| CallError::new(format!("list the tc filters of interface {ifindex}"), error);
        let there = discipline_of(ifindex).map_err(ask)?;
        if egress.is_some() && there.as_deref() == Some("ingress") {
            let what = format!(
                "attach tc filters to interface {ifindex}: its `ingress` discipline has no filters for what is sent"
            );
            return Err(CallError::new(what, Errno::BUSY));
        }
        let sides =
            [(ingress, TC_H_INGRESS_FILTERS, Step::Ingress), (egress, TC_H_EGRESS_FILTERS, Step::Egress)];
        let sides = sides.into_iter().filter_map(|(program, parent, step)| Some((program?, parent, step)));
        let sides = sides.map(|(program, parent, step)| {
            let priority = free_priority(&priorities(&list(parent))?);
            let filter = |kind, flags| {
                let info = u32::from(priority) << 16 | u32::from(ETH_P_ALL.to_be());
                Request::new(kind, flags, &tcmsg(ifindex, handle(), parent, info))
                    .attribute(TCA_KIND, b"bpf\0")
            };
            let make = filter(RTM_NEWTFILTER, CREATE).nested(TCA_OPTIONS, &[], |options| {
                options
                    .attribute(TCA_BPF_FD, &program.as_raw_fd().to_ne_bytes())
                    .attribute(TCA_BPF_NAME, b"weir\0")
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
            make_discipline: there.is_none().then(|| discipline(RTM_NEWQDISC, CREATE).message(1)),
            remove_discipline: discipline(RTM_DELQDISC, 0).message(1),
            list: [TC_H_INGRESS_FILTERS, TC_H_EGRESS_FILTERS].map(|parent| list(parent).message(1)),
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

/// Of our filters: one that nobody else is likely to choose, so that ours alone are removed.
fn handle() -> u32 {
    const WEIR: u32 = 0x7765_0000;
    WEIR ^ std::process::id()
}

/// What kind of discipline is where clsact would be.
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

/// Priorities that filters have; the lower, the earlier.
fn priorities(list: &Request) -> io::Result<Vec<u16>> {
    let mut priorities = Vec::new();
    netlink::ask(netlink::ROUTE, list, RTM_NEWTFILTER, |message| {
        let info = message.get(INFO..).map_or(0, netlink::word);
        priorities.push((info >> 16) as u16);
    })?;
    Ok(priorities)
}

/// In front of all of them; where priority 1 is taken, the first free one behind.
fn free_priority(taken: &[u16]) -> u16 {
    /// What the kernel gives to the first filter that asks for none.
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
