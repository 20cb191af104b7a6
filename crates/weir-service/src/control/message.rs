//! Messages on the socket of a running capture. The descriptors that accompany a message belong to its places or
//! programs in order; each states how many are its own.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir::filter::PortableFilter;
use weir::filter_control::{FilterTarget, PortableMembers, SetChange, SetLabel};
use weir::parts::{CompiledFilter, CompiledForm, FilterSlot, FilterSlotKind};

use super::order::{Obeyed, Order};
use crate::Error;

/// Version of the protocol. It changes with the format of any message, or of its parts. Other versions are rejected.
pub(super) const VERSION: u32 = 8;

/// A request. Its body has the format of [`Ask`] only if the version is [`VERSION`], so the version is read first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<A> {
    pub(super) version: u32,
    pub(super) ask: A,
}

/// The body of a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Describe the capture.
    About,
    /// The account so far.
    Status,
    /// List the places of filters.
    Slots,
    /// Install these programs. `filter`: its text for files and people; null: no filter.
    Put { filter: Option<String>, programs: Vec<SentProgram> },
    /// Build programs of this filter and install them; null: no filter.
    Filter(Option<Box<PortableFilter>>),
    /// Switch the statistics beside the capture.
    Count { on: bool },
    /// Do this; only a guard does.
    Order(Box<Order>),
    /// List the sets that can change.
    Sets,
    /// Change this set.
    ChangeSet {
        name: String,
        #[serde(with = "SentChange")]
        change: SetChange,
        members: Box<PortableMembers>,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SetChange", rename_all = "snake_case")]
enum SentChange {
    Add,
    Remove,
    Replace,
}

/// An answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    About(About),
    /// The account, as `--json` prints it.
    Status(Box<RawValue>),
    Slots {
        slots: Vec<SentSlot>,
        /// The client receives no descriptors and must send its filter as [`Ask::Filter`].
        made_here: bool,
    },
    /// The programs are in force.
    Done {
        /// Time from the request to this, in nanoseconds.
        nanoseconds: u64,
        /// Sets that had been changed and are back to the members in the filter.
        forgotten: Vec<String>,
    },
    /// Acknowledged.
    Noted,
    /// What became of an order.
    Obeyed(Obeyed),
    /// The name of each interface, and its sets that can change.
    Sets(Vec<(FilterTarget, Vec<SetLabel>)>),
    /// The set has changed, by this many members.
    Changed {
        added: usize,
        removed: usize,
    },
    /// Part of the set may have changed, and why not all of it.
    ChangedInPart {
        why: String,
    },
    /// The request failed, and why.
    Refused {
        why: String,
    },
}

/// What a running capture says about itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct About {
    /// Its process ID.
    pub process: u32,
    /// The command, such as `capture` or `count`.
    pub command: String,
    /// Names of its interfaces.
    pub interfaces: Vec<String>,
    /// The filter in force.
    pub filter: Option<String>,
    /// The output file, as it was given.
    pub file: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentSlot {
    target: FilterTarget,
    kind: FilterSlotKind,
    descriptors: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentProgram {
    interface: u32,
    form: CompiledForm,
    sets: Vec<SetLabel>,
    descriptors: usize,
}

impl SentSlot {
    /// Returns the description of a place without its descriptors.
    pub(super) fn described(slot: &FilterSlot) -> Self {
        Self { descriptors: 0, ..Self::of(slot) }
    }

    pub(super) fn of(slot: &FilterSlot) -> Self {
        Self { target: slot.target.clone(), kind: slot.kind.clone(), descriptors: slot.descriptors.len() }
    }

    pub(super) fn received(slots: Vec<Self>, descriptors: Vec<OwnedFd>) -> Result<Vec<FilterSlot>, Error> {
        let mut descriptors = descriptors.into_iter();
        let slot = |sent: Self| {
            let descriptors = take(&mut descriptors, sent.descriptors)?;
            Ok(FilterSlot { target: sent.target, kind: sent.kind, descriptors })
        };
        slots.into_iter().map(slot).collect()
    }
}

impl SentProgram {
    pub(super) fn of(program: &CompiledFilter) -> Self {
        let CompiledFilter { interface, form, is_never: _, sets, descriptors } = program;
        let (form, sets) = (form.clone(), sets.clone());
        Self { interface: *interface, form, sets, descriptors: descriptors.len() }
    }

    pub(super) fn received(
        programs: Vec<Self>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Vec<CompiledFilter>, Error> {
        let mut descriptors = descriptors.into_iter();
        let program = |sent: Self| {
            let descriptors = take(&mut descriptors, sent.descriptors)?;
            let Self { interface, form, sets, .. } = sent;
            Ok(CompiledFilter { interface, form, is_never: false, sets, descriptors })
        };
        programs.into_iter().map(program).collect()
    }
}

fn take(descriptors: &mut impl Iterator<Item = OwnedFd>, count: usize) -> Result<Vec<OwnedFd>, Error> {
    // Memory is not allocated by the count, which is the peer's claim.
    let taken: Vec<OwnedFd> = descriptors.take(count).collect();
    if taken.len() == count { Ok(taken) } else { Err(Error::Descriptors) }
}

/// Returns all descriptors in order.
pub(super) fn borrowed<'a>(each: impl Iterator<Item = &'a Vec<OwnedFd>>) -> Vec<BorrowedFd<'a>> {
    each.flatten().map(OwnedFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    use weir::filter::Receiver;

    use super::*;

    /// Two places of one and two descriptors.
    fn slots() -> [FilterSlot; 2] {
        [1, 2].map(|number| {
            let receiver =
                Receiver { link_type: 1, metadata: true, swapped: false, netmask: None, tags_lost: false };
            let target = FilterTarget { interface: number, name: format!("eth{number}"), receiver };
            let descriptors = (0..number).map(|_| File::open("/dev/null").expect("a file").into()).collect();
            FilterSlot { target, kind: FilterSlotKind::Process, descriptors }
        })
    }

    fn numbers(slots: &[FilterSlot]) -> Vec<Vec<i32>> {
        let of = |slot: &FilterSlot| slot.descriptors.iter().map(OwnedFd::as_raw_fd).collect();
        slots.iter().map(of).collect()
    }

    #[test]
    fn each_place_has_its_own_descriptors() {
        let sent = slots();
        let (texts, expected) = (sent.each_ref().map(SentSlot::of).into(), numbers(&sent));
        let descriptors = sent.into_iter().flat_map(|slot| slot.descriptors).collect();
        let received = SentSlot::received(texts, descriptors).expect("as many as are said");
        assert_eq!(numbers(&received), expected);
        let names: Vec<_> = received.iter().map(|slot| slot.target.name.as_str()).collect();
        assert_eq!(names, ["eth1", "eth2"]);
    }

    #[test]
    fn a_place_that_is_described_comes_without_descriptors() {
        let sent = slots();
        let received = SentSlot::received(sent.each_ref().map(SentSlot::described).into(), Vec::new());
        assert_eq!(numbers(&received.expect("none are said")), [const { Vec::<i32>::new() }; 2]);
        let received = SentSlot::received(sent.each_ref().map(SentSlot::of).into(), Vec::new());
        assert!(matches!(received, Err(Error::Descriptors)), "{received:?}");
    }
}
