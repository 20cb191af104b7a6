//! The programs attached to an interface, their names, and the processes that hold them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use weir::link::Link;
use weir_sys::bpf::query;
use weir_sys::filter::{self, Side};

pub(crate) const NATIVE: &str = "xdp native";

/// A program or filter on an interface.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Program {
    /// `xdp native`, `tcx ingress`, `clsact egress`, ... .
    pub(crate) hook: &'static str,
    /// ID of the eBPF program; null for other filters.
    pub(crate) id: Option<u32>,
    /// Null if not available.
    pub(crate) name: Option<String>,
    /// Processes that hold it, as far as this user may see them. If there are none, it is pinned, or held only by its
    /// interface.
    pub(crate) owners: Vec<Owner>,
    /// The directory by which `weir forward --on-exit open` keeps it attached; null if none is visible.
    pub(crate) forward: Option<PathBuf>,
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) command: String,
}

/// Returns the programs of an interface in the order in which packets meet them, incoming first, then outgoing.
/// Information that only others may see is added to `not_told`.
pub(crate) fn attached(link: &Link, not_told: &mut Vec<String>) -> Vec<Program> {
    let program = |hook, id| Program { hook, id, name: None, owners: Vec::new(), forward: None };
    let xdp =
        [("xdp offload", link.xdp.offload), (NATIVE, link.xdp.native), ("xdp generic", link.xdp.generic)];
    let mut all: Vec<Program> =
        xdp.into_iter().filter(|(_, id)| id.is_some()).map(|(hook, id)| program(hook, id)).collect();
    let sides =
        [(Side::Ingress, "tcx ingress", "clsact ingress"), (Side::Egress, "tcx egress", "clsact egress")];
    for (side, tcx, clsact) in sides {
        match query::tcx(link.index, side) {
            Ok(ids) => all.extend(ids.into_iter().flatten().map(|id| program(tcx, Some(id)))),
            Err(_) if side == Side::Ingress => not_told.push("tcx programs (CAP_NET_ADMIN, CAP_BPF)".into()),
            Err(_) => {}
        }
        // An interface that no longer exists has no filters.
        for filter in filter::filters(link.index, side).unwrap_or_default() {
            let name = filter.name.unwrap_or(filter.kind);
            all.push(Program { name: Some(name), ..program(clsact, filter.program) });
        }
    }
    all
}

/// Returns the processes that have a descriptor of one of these programs, or of a link that attaches it.
pub(crate) fn owners(ids: &BTreeSet<u32>) -> BTreeMap<u32, Vec<Owner>> {
    let mut owners: BTreeMap<u32, Vec<Owner>> = BTreeMap::new();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let descriptors = fs::read_dir(process.path().join("fdinfo")).into_iter().flatten().flatten();
        let infos = descriptors.filter_map(|descriptor| fs::read_to_string(descriptor.path()).ok());
        let held: BTreeSet<u32> = infos.filter_map(|info| program_of(&info)).collect();
        for &id in held.intersection(ids) {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            owners.entry(id).or_default().push(Owner { pid, command: command.trim().to_owned() });
        }
    }
    owners
}

/// Returns the program behind a descriptor, according to `/proc/PID/fdinfo`.
fn program_of(info: &str) -> Option<u32> {
    info.lines().find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_tell_their_program() {
        let link = "pos:\t0\nflags:\t02000000\nlink_type:\txdp\nlink_id:\t4\nprog_tag:\tab\nprog_id:\t27\nifindex:\t2\n";
        assert_eq!(program_of(link), Some(27));
        assert_eq!(program_of("pos:\t0\nflags:\t02\nmap_type:\t2\nmap_id:\t5\n"), None);
    }
}
