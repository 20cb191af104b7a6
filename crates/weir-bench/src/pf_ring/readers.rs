//! Who counts packets: weir's ring and libpcap, in the modes of PF_RING.

use crate::contestants::receiving;
use crate::experiment::Role;
use crate::failure::Failure;
use crate::libpcap::both::{Both, EXCLUSIVE, Library, PASS, SYSTEM, TC};
use crate::libpcap::counter;
use crate::program::Program;

/// A counter.
pub(super) struct Reader {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) role: Role,
    /// Whether the network stack gets the packets, too.
    pub(super) stack: bool,
    /// One that runs here, or why it does not.
    pub(super) program: Result<Program, String>,
}

/// The libraries, with the C program compiled.
pub(super) fn libraries() -> Result<Both, Failure> {
    let both = Both::find(None)?;
    both.compile()?;
    // Whether the library is what it is taken for.
    both.versions(&both.counter(), "version")?;
    Ok(both)
}

/// All of them.
pub(super) fn all(both: Result<&Both, &Failure>) -> Vec<Reader> {
    let ring = |name, title, how: [&'static str; 2], active| {
        let [source, mode] = how;
        let program = receiving(source, mode, active);
        Reader { name, title, role: Role::Ours, stack: mode == "pass", program: Ok(program) }
    };
    let library = |name, title, role, library: &Library| {
        let program = both.map_err(|failure| failure.message().to_owned()).map(|both| Program {
            environment: both.environment(library),
            ..counter::counting_queues(both.counter(), "loop")
        });
        Reader { name, title, role, stack: library.stack, program }
    };
    let modes = [["tc", "pass"], ["xdp", "pass"], ["xdp", "exclusive"]];
    vec![
        ring("active-0", "weir, active wait, mode 0 (tc)", modes[0], true),
        ring("active-1", "weir, active wait, mode 1 (xdp)", modes[1], true),
        ring("active-2", "weir, active wait, mode 2 (xdp, exclusive)", modes[2], true),
        ring("waiting-0", "weir, mode 0 (tc)", modes[0], false),
        ring("waiting-1", "weir, mode 1 (xdp)", modes[1], false),
        ring("waiting-2", "weir, mode 2 (xdp, exclusive)", modes[2], false),
        library("library-0", "libpcap's functions on weir, mode 0 (tc)", Role::Ours, &TC),
        library("library-1", "libpcap's functions on weir, mode 1 (xdp)", Role::Ours, &PASS),
        library("library-2", "libpcap's functions on weir, mode 2 (xdp, exclusive)", Role::Ours, &EXCLUSIVE),
        library("libpcap", "libpcap (TPACKET_V3)", Role::Peer, &SYSTEM),
    ]
}

/// Those that do the same work: the stack gets all, and the counter sleeps while nothing comes.
pub(super) const VERSUS: [&str; 4] = ["waiting-0", "waiting-1", "library-0", "library-1"];
