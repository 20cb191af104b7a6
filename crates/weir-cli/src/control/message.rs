//! What is said over the socket of a running capture. Descriptors beside a message belong to its places or programs, in
//! their order, as many to each as it says.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use weir::filter::{Form, Place, PlaceKind, PortableFilter, Program, Seat, SetLabel};

use crate::failure::Failure;

/// The version of all this, which changes with the form of anything below, or of what it is made of. Another one is refused.
pub(super) const VERSION: u32 = 3;

/// A question. What is asked is of the form [`Ask`] if the version is [`VERSION`], so this is read first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request<A> {
    pub(super) version: u32,
    pub(super) ask: A,
}

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Who are you?
    About,
    /// The account so far.
    Status,
    /// Where are the filters?
    Places,
    /// Put these programs there. `filter`: as files and people are told of it; null: everything is wanted.
    Put { filter: Option<String>, programs: Vec<SentProgram> },
    /// Make programs of this, and put them there; null: everything is wanted.
    Filter(Option<Box<PortableFilter>>),
    /// Which sets can be changed?
    Sets,
    /// Who asks is going to change this set. Until it says what has become of that, or goes away, nobody else is answered.
    Changing { set: String },
    /// It has been changed: so many members more, and fewer.
    Changed { added: usize, removed: usize },
    /// It may have been changed in part, and why not all of it.
    ChangedInPart { why: String },
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    About(About),
    /// The account, as `--json` prints it.
    Status(Box<RawValue>),
    Places {
        places: Vec<SentPlace>,
        /// Who asks is given no descriptors, and says by [`Ask::Filter`] what is wanted there.
        made_here: bool,
    },
    /// The programs are in force.
    Done {
        /// So long after they were asked for.
        nanoseconds: u64,
        /// Sets that had been changed, and have the members again with which the programs were made.
        forgotten: Vec<String>,
    },
    /// So it is.
    Noted,
    /// Of each interface its name and the sets that can change; a descriptor belongs to each.
    Sets(Vec<(Seat, Vec<SetLabel>)>),
    /// It cannot be done, and why.
    Refused {
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct About {
    pub(super) process: u32,
    /// `capture` or `count`.
    pub(super) command: String,
    pub(super) interfaces: Vec<String>,
    pub(super) filter: Option<String>,
    /// As given with -w.
    pub(super) file: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentPlace {
    seat: Seat,
    kind: PlaceKind,
    descriptors: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SentProgram {
    interface: u32,
    form: Form,
    sets: Vec<SetLabel>,
    descriptors: usize,
}

impl SentPlace {
    /// Where and what it is, and nothing that it is made of.
    pub(super) fn described(place: &Place) -> Self {
        Self { descriptors: 0, ..Self::of(place) }
    }

    pub(super) fn of(place: &Place) -> Self {
        Self { seat: place.seat.clone(), kind: place.kind.clone(), descriptors: place.descriptors.len() }
    }

    pub(super) fn received(places: Vec<Self>, descriptors: Vec<OwnedFd>) -> Result<Vec<Place>, Failure> {
        let mut descriptors = descriptors.into_iter();
        let place = |sent: Self| {
            let descriptors = take(&mut descriptors, sent.descriptors)?;
            Ok(Place { seat: sent.seat, kind: sent.kind, descriptors })
        };
        places.into_iter().map(place).collect()
    }
}

impl SentProgram {
    pub(super) fn of(program: &Program) -> Self {
        let Program { interface, form, is_never: _, sets, descriptors } = program;
        let (form, sets) = (form.clone(), sets.clone());
        Self { interface: *interface, form, sets, descriptors: descriptors.len() }
    }

    pub(super) fn received(programs: Vec<Self>, descriptors: Vec<OwnedFd>) -> Result<Vec<Program>, Failure> {
        let mut descriptors = descriptors.into_iter();
        let program = |sent: Self| {
            let descriptors = take(&mut descriptors, sent.descriptors)?;
            let Self { interface, form, sets, .. } = sent;
            Ok(Program { interface, form, is_never: false, sets, descriptors })
        };
        programs.into_iter().map(program).collect()
    }
}

fn take(descriptors: &mut impl Iterator<Item = OwnedFd>, count: usize) -> Result<Vec<OwnedFd>, Failure> {
    // Not by the count: that is the other side's word.
    let taken: Vec<OwnedFd> = descriptors.take(count).collect();
    if taken.len() == count {
        Ok(taken)
    } else {
        Err(Failure::new("a message without all of its descriptors"))
    }
}

/// All of them, in their order.
pub(super) fn borrowed<'a>(each: impl Iterator<Item = &'a Vec<OwnedFd>>) -> Vec<BorrowedFd<'a>> {
    each.flatten().map(OwnedFd::as_fd).collect()
}
