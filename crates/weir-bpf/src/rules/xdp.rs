//! Rules by XDP (`rules_xdp.bpf.c`).

use std::mem::MaybeUninit;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::emit::ebpf::Context;
use weir_sys::bpf::program::ProgramKind;

use super::generated::skeleton;
use super::maps::{Contents, keep, prepare};
use super::{Link, Loaded};
use crate::xdp::HAS_FRAGMENTS;

/// Loads the program without filters, and has it linked.
pub(super) fn load(
    fragments: bool,
    contents: &Contents<'_>,
    link: Link<'_>,
) -> Result<Loaded, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::RulesXdpSkelBuilder::default().open(&mut storage)?;
    let constants = prepare!(open, contents, None);
    constants.fragments = fragments;
    open.progs.rules_xdp.set_autoload(true);
    open.progs.rules_xdp.set_flags(if fragments { HAS_FRAGMENTS } else { 0 });
    let loaded = open.load()?;
    let context = Context::Xdp { fragments, interface: None };
    let kind = ProgramKind::Xdp { fragments, bound_to: None };
    let linked = link(context, kind, &loaded.progs.rules_xdp);
    Ok((linked.map(|program| [Some(program), None]), keep!(loaded, contents)))
}
