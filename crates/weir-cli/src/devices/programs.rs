//! The programs attached to an interface, their names, and the processes that hold them.

use std::path::PathBuf;

use serde::Serialize;
use weir::Holder;
use weir::link::Link;
use weir_sys::bpf::query;
use weir_sys::filter::{self, Side};

pub(crate) const NATIVE: &str = "xdp native";

/// A program or filter on an interface.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct AttachedProgram {
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
    /// The directory by which `weir guard --on-exit closed` keeps it attached; null if none is visible.
    pub(crate) guard: Option<PathBuf>,
}

impl AttachedProgram {
    /// Returns the command that detaches it, if a name in a bpffs keeps it attached.
    pub(crate) fn end(&self) -> Option<String> {
        let forward =
            self.forward.as_ref().map(|path| format!("to end it: weir forward --end {}", path.display()));
        forward.or_else(|| {
            let path = self.guard.as_ref()?.display();
            Some(format!("to take its rules off: weir guard --end -i {path}"))
        })
    }
}

/// A process.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Owner {
    pub(crate) pid: u32,
    pub(crate) command: String,
}

impl From<&Holder> for Owner {
    fn from(holder: &Holder) -> Self {
        Self { pid: holder.pid, command: holder.command.clone() }
    }
}

/// Returns the programs of an interface in the order in which packets meet them, incoming first, then outgoing.
/// Information that only others may see is added to `not_told`.
pub(crate) fn attached(link: &Link, not_told: &mut Vec<String>) -> Vec<AttachedProgram> {
    let program =
        |hook, id| AttachedProgram { hook, id, name: None, owners: Vec::new(), forward: None, guard: None };
    let xdp =
        [("xdp offload", link.xdp.offload), (NATIVE, link.xdp.native), ("xdp generic", link.xdp.generic)];
    let mut all: Vec<AttachedProgram> =
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
            all.push(AttachedProgram { name: Some(name), ..program(clsact, filter.program) });
        }
    }
    all
}
