//! A filter on all engines.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use weir_filter::cbpf::{Program, Rules};
use weir_filter::emit::cbpf::{self, Target};
use weir_filter::graph::{Graph, Meta, Value, Verdict};
use weir_filter::interpret::{Interpreter, Metadata, Packet, VlanTag};
use weir_filter::pass;
use weir_filter::set::{Contents, Member, Set};
use weir_native::Native;
use weir_sys::bpf::map::{Map, MapKind};

use crate::KernelFilter;
use crate::ebpf::{CONTEXTS, Loaded, NotLoaded};

/// A graph on all engines. The interpreter is the reference for all others.
#[derive(Debug)]
pub struct Engines<'a> {
    graph: &'a Graph,
    reference: Interpreter<'a>,
    /// The graph after the optimiser's passes.
    optimised: Interpreter<'static>,
    native: Option<Native>,
    native_optimised: Option<Native>,
    library: Option<Program>,
    kernel: Option<Program>,
    socket: Option<KernelFilter>,
    programs: Vec<Loaded>,
    _maps: Vec<Map>,
}

/// The filters that also run in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// None.
    No,
    /// Classic BPF, which needs no privileges.
    Classic,
    /// Classic BPF and eBPF, which needs privileges.
    Full,
}

impl<'a> Engines<'a> {
    /// Loads `graph` on every engine. Engines for which it is too large are left out.
    ///
    /// # Panics
    ///
    /// If the graph breaks the rules, before or after the passes, or an engine rejects it for any reason other than its
    /// size.
    pub fn new(graph: &'a Graph, sets: &[Set], kernel: Kernel) -> Self {
        graph.check(sets).expect("the graph keeps the rules");
        let optimised = pass::optimise(graph, sets);
        optimised.check(sets).expect("the optimised graph keeps the rules");
        // All errors mean that the graph is too large for classic BPF, or has too many verdicts.
        let classic = |target| cbpf::emit(&optimised, sets, target).ok();
        let for_kernel = classic(Target::Kernel);
        if let Some(program) = &for_kernel {
            program.check(Rules::Kernel).expect("a program that the kernel takes");
        }
        let socket = for_kernel.as_ref().filter(|_| kernel != Kernel::No && !asks_interface(graph));
        let socket = socket.and_then(|program| {
            let raw: Vec<_> = program.instructions.iter().map(|i| (i.code, i.jt, i.jf, i.k)).collect();
            match KernelFilter::attach(&raw) {
                Ok(filter) => Some(filter),
                // A socket has `net.core.optmem_max` bytes for data other than its packets.
                Err(error) if error.kind() == io::ErrorKind::OutOfMemory => None,
                Err(error) => panic!(
                    "the kernel does not take what was made for it: {error}\n{graph}{}",
                    program.listing()
                ),
            }
        });
        let maps = if kernel == Kernel::Full { sets.iter().map(map).collect() } else { Vec::new() };
        let programs = if kernel == Kernel::Full { loaded(&optimised, sets, &maps) } else { Vec::new() };
        Self {
            graph,
            reference: Interpreter::new(graph, sets),
            native: native(graph, sets),
            native_optimised: native(&optimised, sets),
            library: classic(Target::Library),
            kernel: for_kernel,
            socket,
            optimised: Interpreter::owning(optimised, sets),
            programs,
            _maps: maps,
        }
    }

    /// Returns whether the interpreter accepts the packet: see [`decide`](Self::decide).
    ///
    /// # Errors
    ///
    /// The errors of [`decide`](Self::decide).
    pub fn verdict(&self, packet: &Packet<'_>) -> Result<bool, String> {
        self.decide(packet).map(|verdict| verdict == Verdict::ACCEPT)
    }

    /// Returns the interpreter's verdict, which all others must match. Classic BPF is asked only if there are two.
    ///
    /// # Errors
    ///
    /// A report of the first engine that disagrees, and on which packet.
    pub fn decide(&self, packet: &Packet<'_>) -> Result<Verdict, String> {
        let verdict = self.reference.verdict(packet);
        let decided =
            |native: &Option<Native>| native.as_ref().map_or(verdict, |native| native.verdict(packet));
        let verdicts = [
            ("the interpreter, optimised", self.optimised.verdict(packet)),
            ("native code", decided(&self.native)),
            ("native code, optimised", decided(&self.native_optimised)),
        ];
        for (engine, other) in verdicts {
            if other != verdict {
                return Err(self.report(engine, other.0.into(), verdict.0.into(), packet));
            }
        }
        let wanted = self.reference.run(packet);
        let classic =
            |program: &Option<Program>| program.as_ref().map_or(wanted, |program| program.run(packet));
        let native = |native: &Option<Native>| native.as_ref().map_or(wanted, |native| native.run(packet));
        let answers = [
            ("the interpreter, optimised", self.optimised.run(packet)),
            ("native code", native(&self.native)),
            ("native code, optimised", native(&self.native_optimised)),
            ("classic BPF", classic(&self.library)),
            ("classic BPF for the kernel", classic(&self.kernel)),
        ];
        for (engine, answer) in answers {
            if answer != wanted {
                return Err(self.report(engine, answer, wanted, packet));
            }
        }
        self.in_kernel(packet.data, packet.meta.vlan)?;
        Ok(verdict)
    }

    /// In the kernel, the length is the number of bytes, and the kernel sets the metadata, except for a tag.
    fn in_kernel(&self, data: &[u8], tag: Option<VlanTag>) -> Result<(), String> {
        let length = u32::try_from(data.len()).expect("packets are short");
        let packet = |meta| Packet { data, length, meta };
        if let Some(socket) = &self.socket {
            let packet = packet(Metadata::default());
            let wanted = self.reference.run(&packet);
            let kept = socket.run(data).expect("a packet is no longer than a datagram");
            let expected = (wanted != 0).then(|| data.len().min(wanted as usize));
            if kept != expected {
                return Err(self.report("the kernel's classic BPF", kept.is_some().into(), wanted, &packet));
            }
        }
        for program in &self.programs {
            let Some(verdict) = program.verdict(data, tag) else { continue };
            let packet = packet(program.metadata(data, tag));
            let wanted = self.reference.verdict(&packet);
            if verdict != wanted {
                let engine = format!("eBPF in {:?}", program.context);
                return Err(self.report(&engine, verdict.0.into(), wanted.0.into(), &packet));
            }
        }
        Ok(())
    }

    fn report(&self, engine: &str, answer: u32, wanted: u32, packet: &Packet<'_>) -> String {
        let bytes: String = packet.data.iter().map(|byte| format!("{byte:02x}")).collect();
        let (length, meta) = (packet.length, packet.meta);
        format!(
            "{engine} answers {answer}, not {wanted}, for {bytes} of {length} bytes, {meta:?} by\n{}",
            self.graph
        )
    }
}

/// Compiles native code, unless the graph is too large.
fn native(graph: &Graph, sets: &[Set]) -> Option<Native> {
    match Native::new(graph, sets) {
        Ok(native) => Some(native),
        Err(weir_native::Error::TooLarge(_)) => None,
        Err(error) => panic!("native code: {error}"),
    }
}

/// Returns whether a program reads the interface, which makes it reject any packet between unix sockets.
fn asks_interface(graph: &Graph) -> bool {
    graph.values().contains(&Value::Meta(Meta::Interface))
}

fn loaded(graph: &Graph, sets: &[Set], maps: &[Map]) -> Vec<Loaded> {
    let load =
        |context| match Loaded::new(graph, sets, context, |set| maps[set.0 as usize].as_fd().as_raw_fd()) {
            Ok(loaded) => Some(loaded),
            Err(NotLoaded::Size(_)) => None,
            Err(refused) => panic!("{context:?}: {refused}\n{graph}"),
        };
    CONTEXTS.into_iter().filter_map(load).collect()
}

/// Returns the set as a map for eBPF programs.
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
