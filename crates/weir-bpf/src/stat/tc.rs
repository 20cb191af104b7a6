//! Counting by tc (`stat_tc.bpf.c`).

use std::mem::MaybeUninit;

use libbpf_rs::libbpf_sys::bpf_insn;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::emit::ebpf::Context;
use weir_sys::bpf::program::ProgramKind;

use super::{Counting, Link, Loaded, keep, prepare};

skeleton!("stat_tc");

/// Loads the programs of the `wanted` directions, received and sent, without filters, and has each of them linked.
pub(super) fn load(
    wanted: [bool; 2],
    counting: &Counting<'_>,
    link: Link<'_>,
) -> Result<Loaded, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::StatTcSkelBuilder::default().open(&mut storage)?;
    prepare!(open, counting);
    open.progs.stat_ingress.set_autoload(wanted[0]);
    open.progs.stat_egress.set_autoload(wanted[1]);
    let loaded = open.load()?;
    let side = |outgoing, around: &[bpf_insn]| {
        let wanted = wanted[usize::from(outgoing)];
        wanted.then(|| link(Context::Tc { outgoing }, ProgramKind::Tc, around)).transpose()
    };
    let (ingress, egress) = (&loaded.progs.stat_ingress, &loaded.progs.stat_egress);
    let linked =
        side(false, ingress.insns()).and_then(|received| Ok([received, side(true, egress.insns())?]));
    Ok(keep!(loaded, counting, linked))
}
