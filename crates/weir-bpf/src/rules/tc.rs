//! Rules by tc (`rules_tc.bpf.c`).

use std::hash::{BuildHasher as _, RandomState};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use libbpf_rs::Program;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use weir_filter::emit::ebpf::Context;
use weir_sys::bpf::program::ProgramKind;

use super::maps::{Contents, Maps, keep, prepare};
use super::{Link, Loaded};
use crate::filter::Behind;

skeleton!("rules_tc");

/// Loads the programs of the `wanted` directions, received and sent, without filters, and has each of them linked. `shared`: the
/// maps of a program for XDP.
pub(super) fn load(
    wanted: [bool; 2],
    contents: &Contents<'_>,
    shared: Option<&Maps>,
    behind: Option<Behind<'_>>,
    link: Link<'_>,
) -> Result<Loaded<[Option<OwnedFd>; 2]>, libbpf_rs::Error> {
    let mut storage = MaybeUninit::uninit();
    let mut open = skeleton::RulesTcSkelBuilder::default().open(&mut storage)?;
    let constants = prepare!(open, contents, shared, behind);
    constants.turned = mark();
    let programs = &mut open.progs;
    let [ingress, egress] = match behind {
        Some(_) => [&mut programs.before_ingress, &mut programs.before_egress],
        None => [&mut programs.rules_ingress, &mut programs.rules_egress],
    };
    ingress.set_autoload(wanted[0]);
    egress.set_autoload(wanted[1]);
    let loaded = open.load()?;
    let side = |outgoing, program: &Program<'_>| {
        let wanted = wanted[usize::from(outgoing)];
        wanted.then(|| link(Context::Tc { outgoing }, ProgramKind::Tc, program)).transpose()
    };
    let (ingress, egress) = match behind {
        Some(_) => (&loaded.progs.before_ingress, &loaded.progs.before_egress),
        None => (&loaded.progs.rules_ingress, &loaded.progs.rules_egress),
    };
    let linked = side(false, ingress).and_then(|received| Ok([received, side(true, egress)?]));
    Ok((linked, keep!(loaded, contents)))
}

/// Returns a number that other programs hardly use: two successive ones are, in 16 bits, and 0 is none.
fn mark() -> u32 {
    let random = RandomState::new().hash_one(0);
    u32::try_from(random & 0xfffe | 1).expect("16 bits").min(0xfffd)
}
