//! Test runs in the kernel of eBPF programs compiled from graphs.

use std::fmt;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use weir_filter::emit::ebpf::{self, Context, Ending, Instruction, Register, Symbol};
use weir_filter::graph::{Graph, Verdict};
use weir_filter::interpret::{Metadata, VlanTag};
use weir_filter::set::{Set, SetId};
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

/// All contexts that a test run supports.
pub const CONTEXTS: [Context; 7] = [
    Context::Xdp { fragments: false, interface: None },
    Context::Xdp { fragments: true, interface: None },
    Context::XdpTagged { fragments: false, interface: None },
    Context::XdpTagged { fragments: true, interface: None },
    Context::Tc { outgoing: false },
    Context::Tc { outgoing: true },
    Context::Socket,
];

/// Return values of a program, by verdict. None is what a program returns by mistake.
const ANSWERS: [u32; 8] = [66, 77, 88, 99, 111, 222, 333, 444];
/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Calls the function that follows it. The packet's metadata, if any, is passed as the EtherType and contents of a
/// stripped tag.
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

/// Returns whether eBPF programs can be loaded. If not, reports it past the test harness.
///
/// # Panics
///
/// If the environment demands that no test is skipped.
pub fn can_load(test: &str) -> bool {
    // r0 = 0; exit
    let Err(error) = program::load(ProgramKind::Socket, "probe", &[0xb7, 0x95]) else { return true };
    weir_skip::unless_required(test, error);
    false
}

/// A program loaded into the kernel.
#[derive(Debug)]
pub struct Loaded {
    /// Context of the program.
    pub context: Context,
    program: OwnedFd,
}

/// The reason why no program was loaded.
#[derive(Debug)]
pub enum NotLoaded {
    /// The graph is too large for an eBPF program.
    Size(ebpf::Error),
    /// The kernel rejects the program.
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
    /// Loads `graph`, which refers to `sets` by map descriptors.
    ///
    /// # Errors
    ///
    /// The graph is too large or has more than eight verdicts, privileges are missing, or the verifier rejects the program.
    pub fn new(
        graph: &Graph,
        sets: &[Set],
        context: Context,
        mut map: impl FnMut(SetId) -> RawFd,
    ) -> Result<Self, NotLoaded> {
        let made = ebpf::emit(graph, sets, context, Ending::Return(&ANSWERS)).map_err(NotLoaded::Size)?;
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

    /// Returns whether the packet matches: see [`verdict`](Self::verdict).
    pub fn accepts(&self, data: &[u8], tag: Option<VlanTag>) -> Option<bool> {
        self.verdict(data, tag).map(|verdict| verdict == Verdict::ACCEPT)
    }

    /// Returns what the program decides. `tag` was stripped from the packet; only a function can be passed one. `None` if
    /// the kernel rejects such a packet for a test run: one without an Ethernet header, or, for tc, one that ends within
    /// its IP header (Linux 6.18).
    ///
    /// # Panics
    ///
    /// If the test run fails for another reason, or the program returns something else.
    pub fn verdict(&self, data: &[u8], tag: Option<VlanTag>) -> Option<Verdict> {
        let answer = match self.context {
            // A socket filter does not see the Ethernet header that a test run begins with.
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
        let answer = answer.expect("a test run").value;
        let number = ANSWERS.iter().position(|&known| known == answer);
        let number = number.unwrap_or_else(|| panic!("{:?} answers {answer}", self.context));
        Some(Verdict(u16::try_from(number).expect("there are few")))
    }

    /// Returns the metadata that a program sees in a test run of a packet from which `tag` was stripped. The packet
    /// comes from the loopback device.
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

/// `eth_type_trans()` turns anything that is not an EtherType into 802.2 (4) or Novell's (1).
fn protocol(kind: u16, data: &[u8]) -> u16 {
    match kind {
        0x600.. => kind,
        _ if data.get(14..16) == Some(&[0xff, 0xff]) => 1,
        _ => 4,
    }
}

/// The kernel classifies the packet by its destination address; the loopback device's own address is all zeros.
fn packet_type(data: &[u8]) -> u8 {
    match data {
        [0, 0, 0, 0, 0, 0, ..] => 0,
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => 1,
        [first, ..] if first & 1 != 0 => 2,
        _ => 3,
    }
}
