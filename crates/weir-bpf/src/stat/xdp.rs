//! Counting by XDP (`stat_xdp.bpf.c`).

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::emit::ebpf::Context;
use weir_sys::bpf::program::ProgramKind;

use super::{Counting, Link, Loaded, Xdp, keep, prepare};
use crate::filter::Device;
use crate::writers::{Driven, prepare_chosen};
use crate::xdp::{HAS_FRAGMENTS, bind};

skeleton!("stat_xdp");

/// Loads the program without filters, and has it linked.
pub(super) fn load(xdp: &Xdp, counting: &Counting<'_>, link: Link<'_>) -> Result<Loaded, libbpf_rs::Error> {
    let &Xdp { fragments, from, chosen, tags_of, exclusive } = xdp;
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::StatXdpSkelBuilder::default().open(&mut storage)?;
    let constants = prepare!(open, counting);
    constants.fragments = fragments;
    constants.exclusive = exclusive;
    if let Some(from) = from {
        constants.arrived_on = from.constant();
    }
    prepare_chosen!(constants, chosen);
    match tags_of {
        Some(index) => bind(&mut open.progs.stat_xdp_tagged, Device { index, fragments })?,
        None => {
            open.progs.stat_xdp.set_autoload(true);
            open.progs.stat_xdp.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
        }
    }
    let loaded = open.load()?;
    let kind = ProgramKind::Xdp { fragments, bound_to: tags_of };
    let interface = from.and_then(Driven::only);
    let (context, program) = match tags_of {
        Some(_) => (Context::XdpTagged { fragments, interface: tags_of }, &loaded.progs.stat_xdp_tagged),
        None => (Context::Xdp { fragments, interface }, &loaded.progs.stat_xdp),
    };
    let linked = link(context, kind, program.insns()).map(|program| [Some(program), None]);
    Ok(keep!(loaded, counting, linked))
}
