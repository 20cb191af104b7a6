//! Rules by XDP (`rules_xdp.bpf.c`).

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::emit::ebpf::Context;
use weir_sys::bpf::program::ProgramKind;

use super::generated::skeleton;
use super::maps::{Contents, Maps, keep, prepare};
use super::{Link, Loaded};
use crate::filter::Behind;
use crate::xdp::HAS_FRAGMENTS;

/// Loads the program without filters, and has it linked.
pub(super) fn load(
    fragments: bool,
    interface: Option<u32>,
    contents: &Contents<'_>,
    shared: Option<&Maps>,
    behind: Option<Behind<'_>>,
    link: Link<'_>,
) -> Result<Loaded<OwnedFd>, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::RulesXdpSkelBuilder::default().open(&mut storage)?;
    let constants = prepare!(open, contents, shared, behind);
    constants.fragments = fragments;
    let program = if behind.is_some() { &mut open.progs.before_xdp } else { &mut open.progs.rules_xdp };
    program.set_autoload(true);
    program.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
    let loaded = open.load()?;
    let context = Context::Xdp { fragments, interface };
    let kind = ProgramKind::Xdp { fragments, bound_to: None };
    let program = if behind.is_some() { &loaded.progs.before_xdp } else { &loaded.progs.rules_xdp };
    let linked = link(context, kind, program);
    Ok((linked, keep!(loaded, contents)))
}
