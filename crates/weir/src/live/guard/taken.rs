//! Rules that take over from those that a guard has left, and stay in force themselves, or do not.

use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use weir_sys::CallError;
use weir_sys::bpf::query;

use super::OnExit;
use super::pins::{AnyLink, Left, Pins, Place};
use crate::Error;
use crate::live::error::Problem;
use crate::live::source::programmed::off;

/// What rules leave behind, and have found.
#[derive(Debug)]
pub(super) struct Kept {
    /// `None`: nothing was found, and nothing stays.
    pins: Option<Pins>,
    on_exit: OnExit,
    /// Where programs are attached.
    places: Vec<Place>,
    /// The programs that were there before, in links that were taken over.
    before: Before,
    /// Links that were found, and are not taken over.
    unused: Left,
    /// The rules are accepted; before that, what was there before is put back in the end.
    is_settled: bool,
}

/// The programs of links before others were put into them.
#[derive(Debug, Default)]
pub(super) struct Before {
    links: Vec<Place>,
    programs: Vec<(Place, OwnedFd)>,
}

/// Whether rules had to be taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undone {
    /// They had not been accepted: what was there before is there again.
    Now,
    /// They were accepted, or taken back already.
    Needless,
}

impl Before {
    /// Remembers what is in those links that are to be taken over for these places.
    pub(super) fn of(left: &Left, places: &[Place], on_trial: bool) -> Result<Self, Error> {
        let (links, unused): (Vec<_>, Vec<_>) =
            left.places().into_iter().partition(|place| places.contains(place));
        if on_trial && !unused.is_empty() {
            return Err(Error::Pins(Problem::new(
                "cannot try these rules: the rules in force, which a guard has left, are attached elsewhere",
                "use the same source and direction, or take those off first",
            )));
        }
        let mut programs = Vec::new();
        for &place in &links {
            let Some(link) = left.link(place) else { continue };
            match query::open_program(link.attached()?.program) {
                Ok(program) => programs.extend(program.map(|program| (place, program))),
                Err(error) if on_trial => {
                    return Err(match Errno::from_raw_os_error(error.errno()) {
                        Errno::PERM => {
                            Error::Privilege { operation: error.operation, needs: "cap_sys_admin" }
                        }
                        _ => error.into(),
                    });
                }
                // Without the privilege, they cannot be put back if something fails.
                Err(_) => {}
            }
        }
        Ok(Self { links, programs })
    }

    /// Puts the programs back into the links.
    pub(super) fn put_back<'a>(&self, link: impl Fn(Place) -> Option<AnyLink<'a>>) -> Result<(), CallError> {
        self.programs.iter().try_for_each(|(place, program)| match link(*place) {
            Some(link) => link.exchange(program.as_fd()),
            None => Ok(()),
        })
    }
}

impl Kept {
    pub(super) fn new(
        pins: Option<Pins>,
        on_exit: OnExit,
        places: Vec<Place>,
        before: Before,
        unused: Left,
    ) -> Self {
        Self { pins, on_exit, places, before, unused, is_settled: false }
    }

    /// Returns where programs are attached.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Returns whether the rules stay in force without the process.
    pub(super) fn stays(&self) -> bool {
        self.is_settled && self.on_exit == OnExit::Closed && self.pins.is_some()
    }

    /// Sees to it that the rules stay, or do not. `link`: what is attached at a place.
    pub(super) fn settle<'a>(&mut self, link: impl Fn(Place) -> Option<AnyLink<'a>>) -> Result<(), Error> {
        let Some(pins) = self.pins.as_ref().filter(|_| !self.is_settled) else {
            self.is_settled = true;
            return Ok(());
        };
        for &place in &self.places {
            let Some(link) = link(place) else { continue };
            match (self.on_exit, self.before.links.contains(&place)) {
                (OnExit::Closed, true) => {}
                (OnExit::Closed, false) => {
                    // Of a program that is no longer attached.
                    pins.unpin(place)?;
                    link.pin(&pins.file(place))?;
                }
                (OnExit::Open, true) => {
                    pins.unpin(place)?;
                    link.stay(false);
                }
                (OnExit::Open, false) => {}
            }
        }
        for place in self.unused.places() {
            if let Some(link) = self.unused.link(place) {
                off(link.detach())?;
            }
            pins.unpin(place)?;
        }
        if self.on_exit == OnExit::Open {
            // What is no longer attached.
            Place::ALL.into_iter().try_for_each(|place| pins.unpin(place))?;
            self.pins = None;
        }
        (self.before, self.unused, self.is_settled) = (Before::default(), Left::default(), true);
        Ok(())
    }

    /// Puts back what was there before, unless the rules were accepted, and detaches what was not there.
    pub(super) fn undo<'a>(
        &mut self,
        link: impl Fn(Place) -> Option<AnyLink<'a>>,
    ) -> Result<Undone, CallError> {
        if std::mem::replace(&mut self.is_settled, true) {
            return Ok(Undone::Needless);
        }
        self.on_exit = OnExit::Open;
        let mut result = self.before.put_back(&link);
        for &place in self.places.iter().filter(|place| !self.before.links.contains(place)) {
            if let Some(pins) = &self.pins {
                let _was_not_pinned = pins.unpin(place);
            }
            if let Some(link) = link(place) {
                link.stay(false);
                let detached = off(link.detach());
                result = result.and(detached);
            }
        }
        self.pins = None;
        result.map(|()| Undone::Now)
    }

    /// Removes the names of what has gone with its interface.
    pub(super) fn forget(&mut self) {
        if let Some(pins) = self.pins.take() {
            // The next guard would do so, too.
            let _left = Place::ALL.into_iter().try_for_each(|place| pins.unpin(place));
        }
    }
}

/// Returns the error of rules that are to stay, but are attached by tc filters.
pub(super) fn not_by_filters() -> Error {
    Error::Pins(Problem::new(
        "cannot keep rules in force without a process by tc filters, and this kernel has no tcx (Linux 6.6)",
        "guard received packets only, with the xdp source",
    ))
}
