//! The `tc` source's programs (`tc.bpf.c`).

use std::mem::MaybeUninit;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::graph::Verdict;
use weir_sys::cpu::Processors;

use crate::filter::{Calls, Gate, Hook, RULED};
use crate::log::{LoadError, logged};
use crate::pool::{
    PoolMaps, PoolOptions, Sampling, Steering, keep_maps, prepare, prepare_rules, prepare_sampling,
    prepare_steering,
};
use crate::writers;

skeleton!("tc");

/// The constants of one capture on one interface.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool.
    pub pool: PoolOptions,
    /// The pool's writers.
    pub processors: Processors,
    /// How packets are steered, if at all.
    pub steering: Option<Steering>,
    /// Which packets are selected, if not all.
    pub sampling: Option<Sampling>,
    /// Whether, and how, to cut TCP super-frames into segments.
    pub segments: Option<Segments>,
    /// The cookie of a socket whose packets are not captured when they are sent.
    pub left_out: Option<u64>,
    /// The mark (`SO_MARK`) of packets that count as filtered.
    pub left_out_mark: Option<NonZeroU32>,
    /// Load the program for incoming packets.
    pub ingress: bool,
    /// Load the program for outgoing packets.
    pub egress: bool,
    /// Whether rules can be in front.
    pub rules: bool,
}

/// How super-frames are cut. Chunks have room for `payload` plus [`Segments::HEADERS`] bytes.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    /// Most payload bytes in a segment; frames with larger segments stay whole.
    pub payload: u32,
}

impl Segments {
    /// Room for headers, and for offsets that only the verifier considers possible (`segment.h`).
    pub const HEADERS: u32 = 1024;
}

/// The loaded programs.
#[derive(Debug)]
pub struct Programs {
    ingress: Option<OwnedFd>,
    egress: Option<OwnedFd>,
}

impl Programs {
    /// Loads the programs with these constants, and returns the maps that they share. They run once attached.
    ///
    /// # Errors
    ///
    /// Missing privileges, no memory for the maps, or a kernel without a function that the programs call.
    pub fn load(options: &Options) -> Result<(Self, PoolMaps), LoadError> {
        logged("tc", || Self::try_load(options))
    }

    fn try_load(options: &Options) -> Result<(Self, PoolMaps), libbpf_rs::Error> {
        let mut storage = MaybeUninit::uninit();
        let mut open = skeleton::TcSkelBuilder::default().open(&mut storage)?;
        let constants = prepare!(open, &options.pool);
        prepare_sampling!(open, constants, options.sampling);
        prepare_steering!(open, constants, options.steering);
        writers::measure(&mut open.maps.processors, Some(&options.processors))?;
        constants.left_out = options.left_out.unwrap_or(0);
        constants.left_out_mark = options.left_out_mark.map_or(0, NonZeroU32::get);
        if let Some(segments) = options.segments {
            constants.segments = true;
            constants.segment_payload = segments.payload;
        }
        prepare_rules!(open, options.rules, ruled_ingress, ruled_egress);
        open.progs.ruled_ingress.set_autoload(options.rules && options.ingress);
        open.progs.ruled_egress.set_autoload(options.rules && options.egress);
        open.progs.ingress.set_autoload(options.ingress);
        open.progs.egress.set_autoload(options.egress);
        open.progs.wanted_ingress.set_autoload(options.ingress);
        open.progs.wanted_egress.set_autoload(options.egress);
        let loaded = open.load()?;
        writers::enter(&loaded.maps.processors, Some(&options.processors))?;
        let keep =
            |wanted: bool, program: BorrowedFd<'_>| wanted.then(|| program.try_clone_to_owned()).transpose();
        let programs = Self {
            ingress: keep(options.ingress, loaded.progs.ingress.as_fd())?,
            egress: keep(options.egress, loaded.progs.egress.as_fd())?,
        };
        let sides = [
            (options.ingress, Hook::Ingress, &loaded.progs.wanted_ingress, &loaded.progs.ruled_ingress),
            (options.egress, Hook::Egress, &loaded.progs.wanted_egress, &loaded.progs.ruled_egress),
        ];
        let sides = sides.into_iter().filter(|(wanted, ..)| *wanted);
        let (mut hooks, mut outcomes) = (Vec::new(), Vec::new());
        for (_, hook, program, ruled) in sides {
            hooks.push(hook);
            outcomes
                .extend([(hook, Verdict::ACCEPT, program), (hook, Verdict::REFUSE, &loaded.progs.unwanted)]);
            outcomes.extend(options.rules.then_some((hook, RULED, ruled)));
        }
        let calls = Calls::new(hooks, &loaded.maps.filters, &loaded.maps.outcomes, outcomes)?;
        let calls = calls.ruled_by(options.rules.then(|| loaded.maps.rulings.as_fd()))?;
        let gate = Arc::new(Gate::Calls(calls));
        Ok((programs, keep_maps!(loaded, &options.pool, gate)))
    }

    /// Returns the program for incoming packets, to attach it, if it was requested.
    pub fn ingress(&self) -> Option<BorrowedFd<'_>> {
        self.ingress.as_ref().map(OwnedFd::as_fd)
    }

    /// Returns the program for outgoing packets, to attach it, if it was requested.
    pub fn egress(&self) -> Option<BorrowedFd<'_>> {
        self.egress.as_ref().map(OwnedFd::as_fd)
    }
}
