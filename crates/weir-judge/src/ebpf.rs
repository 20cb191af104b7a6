//! eBPF in the kernel: test runs of the program that a graph becomes.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use weir_filter::emit::ebpf::{self, Context, Ending, Instruction, Register, Symbol};
use weir_filter::graph::Graph;
use weir_filter::interpret::{Metadata, VlanTag};
use weir_filter::set::{Set, SetId};
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::{skip, testrun};

/// Every context that a test run can make.
pub const CONTEXTS: [Context; 7] = [
    Context::Xdp { fragments: false, interface: None },
    Context::Xdp { fragments: true, interface: None },
    Context::XdpTagged { fragments: false, interface: None },
    Context::XdpTagged { fragments: true, interface: None },
    Context::Tc { outgoing: false },
    Context::Tc { outgoing: true },
    Context::Socket,
];

/// What a program answers for a packet that is wanted, and for another.
const ENDING: Ending = Ending::Return { accept: 77, refuse: 66 };
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// Calls the function behind it with the packet's metadata, if it has any, as the EtherType and contents of a tag that was
/// taken off.
const CALLER: [Instruction; 13] = [
    instruction(0xb7, 2, 0, 0, 0), // tagged = 0
    instruction(0xb7, 3, 0, 0, 0), // protocol = 0
    instruction(0xb7, 4, 0, 0, 0), // contents = 0
    instruction(0x61, 5, 1, 8, 0), // from = context->data_meta
    instruction(0x61, 0, 1, 0, 0), // to = context->data
    instruction(0xbf, 6, 5, 0, 0), // end = from
    instruction(0x07, 6, 0, 0, 8), // end += 8
    instruction(0x2d, 6, 0, 3, 0), // if (end > to) goto call
    instruction(0xb7, 2, 0, 0, 1), // tagged = 1
    instruction(0x61, 3, 5, 0, 0), // protocol = from[0]
    instruction(0x61, 4, 5, 4, 0), // contents = from[1]
    instruction(0x85, 0, 1, 0, 1), // call: what is behind the next
    instruction(0x95, 0, 0, 0, 0), // return
];

const fn instruction(code: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> Instruction {
    let (destination, source) = (Register(destination), Register(source));
    Instruction { code, destination, source, offset, immediate }
}

/// Whether eBPF programs can be loaded. If not, says so, past the test harness.
///
/// # Panics
///
/// Where the environment demands that nothing is skipped.
pub fn can_load(test: &str) -> bool {
    // r0 = 0; exit
    let Err(error) = program::load(ProgramKind::Socket, "probe", &[0xb7, 0x95]) else { return true };
    skip::unless_required(test, error);
    false
}

/// A program in the kernel.
#[derive(Debug)]
pub struct Loaded {
    /// Where it runs.
    pub context: Context,
    program: OwnedFd,
}

/// There is no program in the kernel.
#[derive(Debug)]
pub enum NotLoaded {
    /// The graph is too large for one.
    Size(ebpf::Error),
    /// The kernel does not take it.
    Refused(Box<(program::Refused, ebpf::Program)>),
}

impl fmt::Display for NotLoaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(error) => error.fmt(f),
            Self::Refused(refused) => write!(f, "{}\n{:.3000}", refused.0, refused.1.to_string()),
        }
    }
}

impl Loaded {
    /// Loads `graph`, which looks into `sets` by maps of these descriptors.
    ///
    /// # Errors
    ///
    /// The graph is too large, the privilege to load it is missing, or the verifier does not take it.
    pub fn new(
        graph: &Graph,
        sets: &[Set],
        context: Context,
        mut map: impl FnMut(SetId) -> RawFd,
    ) -> Result<Self, NotLoaded> {
        let made = ebpf::emit(graph, sets, context, ENDING).map_err(NotLoaded::Size)?;
        let words = made.words(|symbol| match symbol {
            Symbol::Set(set) => map(set),
            other => unreachable!("{other:?} is asked for by other endings"),
        });
        let words = match context {
            Context::XdpTagged { .. } => CALLER.into_iter().map(Instruction::to_word).chain(words).collect(),
            _ => words,
        };
        match program::load(kind(context), "judged", &words) {
            Ok(program) => Ok(Self { context, program }),
            Err(refused) => Err(NotLoaded::Refused(Box::new((refused, made)))),
        }
    }

    /// Whether the packet is wanted, of which `tag` was taken off; only a function can be told so. `None` where the kernel runs
    /// nothing on such a packet: one without an Ethernet header, or, for tc, one that ends within its IP header (Linux 6.18).
    ///
    /// # Panics
    ///
    /// If the kernel does not run the program for another reason, or the program answers neither yes nor no.
    pub fn accepts(&self, data: &[u8], tag: Option<VlanTag>) -> Option<bool> {
        let answer = match self.context {
            // A socket filter is not shown the Ethernet header that a test run begins with.
            Context::Socket => testrun::run(self.program.as_fd(), &[&[0; ETHERNET], data].concat(), 1),
            context if !is_run(context, data) => return None,
            Context::XdpTagged { .. } => {
                let words = |tag: VlanTag| [u32::from(tag.protocol), u32::from(tag.tci)];
                let words = tag.into_iter().flat_map(words);
                let metadata: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
                testrun::run_with_metadata(self.program.as_fd(), &metadata, data)
            }
            _ => testrun::run(self.program.as_fd(), data, 1),
        };
        match answer.expect("a test run").value {
            77 => Some(true),
            66 => Some(false),
            other => panic!("{:?} answers {other}", self.context),
        }
    }

    /// What a test run tells the program of a packet beside its bytes, of which `tag` was taken off. It comes from the loopback
    /// device.
    pub fn metadata(&self, data: &[u8], tag: Option<VlanTag>) -> Metadata {
        let kind = data.get(12..ETHERNET).map_or(0, |bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
        let (protocol, packet_type) = match self.context {
            Context::Xdp { .. } | Context::XdpTagged { .. } => (kind, 0),
            Context::Tc { outgoing: true } => (protocol(kind, data), 4),
            Context::Tc { outgoing: false } => (protocol(kind, data), packet_type(data)),
            Context::Socket => (4, 0),
        };
        let vlan = tag.filter(|_| matches!(self.context, Context::XdpTagged { .. }));
        Metadata { protocol, packet_type, interface: 1, vlan }
    }
}

fn kind(context: Context) -> ProgramKind {
    match context {
        Context::Xdp { fragments, .. } | Context::XdpTagged { fragments, .. } => {
            ProgramKind::Xdp { fragments, bound_to: None }
        }
        Context::Tc { .. } => ProgramKind::Tc,
        Context::Socket => ProgramKind::Socket,
    }
}

fn is_run(context: Context, data: &[u8]) -> bool {
    let header = match data.get(12..ETHERNET) {
        None => return false,
        Some([0x08, 0x00]) if matches!(context, Context::Tc { .. }) => 20,
        Some([0x86, 0xdd]) if matches!(context, Context::Tc { .. }) => 40,
        Some(_) => 0,
    };
    data.len() >= ETHERNET + header
}

/// `eth_type_trans()` takes what is no EtherType for 802.2 (4) or Novell's (1).
fn protocol(kind: u16, data: &[u8]) -> u16 {
    match kind {
        0x600.. => kind,
        _ if data.get(14..16) == Some(&[0xff, 0xff]) => 1,
        _ => 4,
    }
}

/// It knows for whom the packet is by its address; the loopback device has none.
fn packet_type(data: &[u8]) -> u8 {
    match data {
        [0, 0, 0, 0, 0, 0, ..] => 0,
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => 1,
        [first, ..] if first & 1 != 0 => 2,
        _ => 3,
    }
}
