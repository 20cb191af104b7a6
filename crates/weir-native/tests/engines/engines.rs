//! One filter on every machine that runs filters.

use std::env;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use weir_filter::cbpf::Program;
use weir_filter::emit::cbpf::{self, Target};
use weir_filter::emit::ebpf::{self, Context, Ending, Symbol};
use weir_filter::graph::Graph;
use weir_filter::interpret::{Interpreter, Packet};
use weir_filter::pass;
use weir_filter::set::{Contents, Member, Set};
use weir_judge::KernelFilter;
use weir_judge::packets::Captured;
use weir_native::Native;
use weir_sys::bpf::map::{Map, MapKind};
use weir_sys::bpf::program::{self, ProgramKind};
use weir_sys::testrun;

/// What an eBPF program answers for a packet that is wanted, and for another.
const ACCEPT: u32 = 77;
const REFUSE: u32 = 66;
/// Bytes of an Ethernet header, less than which a test run does not take.
const ETHERNET: usize = 14;

/// Whether eBPF programs can be loaded. If not, says so, past the test harness.
///
/// # Panics
///
/// Where the environment demands that nothing is skipped.
pub(crate) fn can_load(test: &str) -> bool {
    // r0 = 0; exit
    let Err(error) = program::load(ProgramKind::Socket, "probe", &[0xb7, 0x95]) else { return true };
    let set = |name, value| env::var_os(name).is_some_and(|found| found == value);
    assert!(!set("WEIR_REQUIRE_ROOT", "1") && !set("CI", "true"), "{test} must not be skipped: {error}");
    let _nobody_left = writeln!(io::stderr(), "SKIP: {test}: {error}");
    false
}

/// A filter on every machine.
pub(crate) struct Engines<'a> {
    graph: &'a Graph,
    reference: Interpreter<'a>,
    optimised: Graph,
    sets: &'a [Set],
    native: Native,
    native_optimised: Native,
    classic: Option<Program>,
    kernel: Option<KernelFilter>,
    /// With the maps that they use.
    programs: Vec<(Context, OwnedFd)>,
    _maps: Vec<Map>,
}

impl<'a> Engines<'a> {
    /// Puts `graph` on each of them, on eBPF if `load`.
    ///
    /// # Panics
    ///
    /// If a machine does not take it for another reason than that it is too small.
    pub(crate) fn new(graph: &'a Graph, sets: &'a [Set], load: bool) -> Self {
        graph.check(sets).expect("the graph keeps the rules");
        let optimised = pass::optimise(graph, sets);
        optimised.check(sets).expect("the optimised graph keeps the rules");
        // `TooLong` and `Memory`, which are all that can be wrong: classic BPF has no room for the graph.
        let classic = |target| cbpf::emit(&optimised, sets, target).ok();
        let kernel = classic(Target::Kernel).map(|program| {
            let raw: Vec<_> = program.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect();
            KernelFilter::attach(&raw).unwrap_or_else(|error| {
                panic!("the kernel does not take what was made for it: {error}\n{graph}{}", program.listing())
            })
        });
        let mut maps = Vec::new();
        let programs = if load { loaded(&optimised, sets, &mut maps) } else { Vec::new() };
        Self {
            graph,
            reference: Interpreter::new(graph, sets),
            native: Native::new(graph, sets).expect("native code"),
            native_optimised: Native::new(&optimised, sets).expect("native code of the optimised graph"),
            classic: classic(Target::Library),
            kernel,
            optimised,
            sets,
            programs,
            _maps: maps,
        }
    }

    /// The interpreter's verdict, which all others must share.
    pub(crate) fn verdict(&self, captured: &Captured) -> Result<bool, String> {
        let packet = Packet { data: &captured.data, length: captured.length, ..Packet::default() };
        let wanted = self.reference.run(&packet);
        let answers = [
            ("the interpreter, optimised", Interpreter::new(&self.optimised, self.sets).run(&packet)),
            ("native code", self.native.run(&packet)),
            ("native code, optimised", self.native_optimised.run(&packet)),
            ("classic BPF", self.classic.as_ref().map_or(wanted, |program| program.run(&packet))),
        ];
        for (engine, answer) in answers {
            if answer != wanted {
                return Err(self.report(engine, answer, wanted, &captured.data));
            }
        }
        self.in_kernel(&captured.data)?;
        Ok(wanted != 0)
    }

    /// In the kernel a packet is as long as its bytes.
    fn in_kernel(&self, data: &[u8]) -> Result<(), String> {
        let length = u32::try_from(data.len()).expect("packets are short");
        let wanted = self.reference.run(&Packet { data, length, ..Packet::default() });
        if let Some(kernel) = &self.kernel {
            let kept = kernel.run(data).expect("a packet is no longer than a datagram");
            let expected = (wanted != 0).then(|| data.len().min(wanted as usize));
            if kept != expected {
                return Err(self.report("the kernel's classic BPF", u32::from(kept.is_some()), wanted, data));
            }
        }
        for (context, program) in self.programs.iter().filter(|_| can_run(data)) {
            let answer = testrun::run(program.as_fd(), data, 1).expect("a test run");
            if answer.value != if wanted == 0 { REFUSE } else { ACCEPT } {
                return Err(self.report(&format!("eBPF in {context:?}"), answer.value, wanted, data));
            }
        }
        Ok(())
    }

    fn report(&self, engine: &str, answer: u32, wanted: u32, data: &[u8]) -> String {
        let bytes: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{engine} answers {answer}, not {wanted}, for {bytes} by\n{}", self.graph)
    }
}

/// Whether a test run takes the packet: an IP header behind the Ethernet header must be whole (Linux 6.18).
fn can_run(data: &[u8]) -> bool {
    let header = match data.get(12..ETHERNET) {
        None => return false,
        Some([0x08, 0x00]) => 20,
        Some([0x86, 0xdd]) => 40,
        Some(_) => 0,
    };
    data.len() >= ETHERNET + header
}

fn loaded(graph: &Graph, sets: &[Set], maps: &mut Vec<Map>) -> Vec<(Context, OwnedFd)> {
    let contexts = [
        (Context::Xdp { fragments: true }, ProgramKind::Xdp { fragments: true, bound_to: None }),
        (Context::Tc { outgoing: false }, ProgramKind::Tc),
    ];
    let mut programs = Vec::new();
    for (context, kind) in contexts {
        let made = match ebpf::emit(graph, sets, context, Ending::Return { accept: ACCEPT, refuse: REFUSE }) {
            Ok(made) => made,
            Err(ebpf::Error::TooLong(_) | ebpf::Error::TooManyResults(_)) => continue,
        };
        let words = made.words(|symbol| {
            let Symbol::Set(set) = symbol else { unreachable!("nothing is called or counted") };
            maps.push(map(&sets[set.0 as usize]));
            maps.last().expect("it was pushed").as_fd().as_raw_fd()
        });
        match program::load(kind, "engines", &words) {
            Ok(program) => programs.push((context, program)),
            Err(error) => panic!("{context:?}: {error}\n{graph}{made}"),
        }
    }
    programs
}

/// The set as eBPF programs ask for it.
fn map(set: &Set) -> Map {
    let entries = u32::try_from(set.len().max(1)).expect("a small set");
    let words = u32::try_from(set.words()).expect("few words") * 4;
    let exact: Vec<Vec<u32>> = match &set.contents {
        Contents::Numbers(members) => members.iter().map(|&number| vec![number]).collect(),
        Contents::Macs(members) => members.iter().map(|mac| mac.to_vec()).collect(),
        Contents::Ipv4(members) => return trie(members),
        Contents::Ipv6(members) => return trie(members),
    };
    let map = Map::new(MapKind::Hash, words, 1, entries).expect("a map");
    for key in exact {
        let key: Vec<u8> = key.iter().flat_map(|word| word.to_ne_bytes()).collect();
        map.update(&key, &[1]).expect("room for each member");
    }
    map
}

fn trie<const WORDS: usize>(members: &[Member<WORDS>]) -> Map {
    let entries = u32::try_from(members.len().max(1)).expect("a small set");
    let key = u32::try_from(4 + 4 * WORDS).expect("few words");
    let map = Map::new(MapKind::Trie, key, 1, entries).expect("a map");
    for member in members {
        let mut key = u32::from(member.bits).to_ne_bytes().to_vec();
        key.extend(member.key.iter().flat_map(|word| word.to_be_bytes()));
        map.update(&key, &[1]).expect("room for each member");
    }
    map
}
