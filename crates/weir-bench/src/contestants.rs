//! Who is measured.

use weir_lab::Action;

use super::peers;
use super::program::{Counts, OWN, Program, WEIR};
use super::receive::Received;

/// One way for packets to go.
#[derive(Clone, Debug)]
pub(super) struct Contestant {
    /// In files and on the command line.
    pub(super) name: &'static str,
    /// In tables.
    pub(super) title: &'static str,
    pub(super) kind: ContestantKind,
    /// Whether the network stack still gets the packets.
    pub(super) stack: bool,
}

#[derive(Clone, Debug)]
pub(super) enum ContestantKind {
    /// Nothing but the network stack.
    Stack,
    /// A program in the kernel that looks at nothing.
    Hook(Action),
    /// A reader.
    Program(Program),
}

impl Contestant {
    pub(super) fn program(name: &'static str, title: &'static str, stack: bool, program: Program) -> Self {
        Self { name, title, kind: ContestantKind::Program(program), stack }
    }

    /// Bytes that it keeps of a packet.
    pub(super) fn kept(&self) -> usize {
        let ContestantKind::Program(program) = &self.kind else { return usize::MAX };
        program.snap_len().unwrap_or(usize::MAX)
    }

    /// Bytes of a pool of so many chunks.
    pub(super) fn pool(&self, chunks: u64) -> u64 {
        let ContestantKind::Program(program) = &self.kind else { return 0 };
        chunks * program.chunk_size()
    }

    /// Why it cannot take part.
    pub(super) fn missing(&self) -> Option<String> {
        match &self.kind {
            ContestantKind::Program(program) => program.missing(),
            _ => None,
        }
    }
}

/// All of them, in the order of their turns.
pub(super) fn all() -> Vec<Contestant> {
    let exclusive = |stamps| receive("xdp", "exclusive", stamps);
    let program = Contestant::program;
    vec![
        limit(),
        hook("limit-write", "XDP that copies and drops: the limit with a copy", Action::Write, false),
        program("weir-exclusive", "weir exclusive, no stamps", false, exclusive("none")),
        program("weir-exclusive-batch", "weir exclusive, batch stamps", false, exclusive("batch")),
        program("weir-exclusive-kernel", "weir exclusive, kernel stamps", false, exclusive("kernel")),
        program("weir-file", "weir exclusive to tmpfs, kernel stamps", false, write()),
        program("af-xdp", "AF_XDP, copy mode, bare loop", false, receive_af_xdp()),
        program("weir-af-xdp", "weir af_xdp, no stamps", false, receive("af_xdp", "exclusive", "none")),
        hook("limit-pass", "XDP pass: the limit with a stack", Action::Pass, true),
        program("weir-pass", "weir pass, no stamps", true, receive("xdp", "pass", "none")),
        program("weir-pass-kernel", "weir pass, kernel stamps", true, receive_and_pass()),
        Contestant { name: "stack", title: "stack alone", kind: ContestantKind::Stack, stack: true },
        program("weir-tc", "weir tc, kernel stamps", true, receive("tc", "pass", "kernel")),
        program("weir-af-packet", "weir af_packet", true, receive("af_packet", "pass", "kernel")),
        program("tcpdump", "tcpdump to /dev/null", true, peers::tcpdump("/dev/null")),
        program("tcpdump-file", "tcpdump to tmpfs", true, peers::tcpdump("{file}")),
        program("dumpcap-file", "dumpcap to tmpfs", true, peers::dumpcap()),
        program("netsniff-ng", "netsniff-ng to /dev/null", true, peers::netsniff_ng()),
    ]
}

/// What the machine can do without keeping a packet.
pub(super) fn limit() -> Contestant {
    hook("limit", "XDP drop: the limit", Action::Drop, false)
}

fn hook(name: &'static str, title: &'static str, action: Action, stack: bool) -> Contestant {
    Contestant { name, title, kind: ContestantKind::Hook(action), stack }
}

/// Those of them that do the same work; the first is weir.
pub(super) const VERSUS: [[&str; 2]; 8] = [
    ["weir-file", "tcpdump-file"],
    ["weir-file", "dumpcap-file"],
    ["weir-pass-kernel", "tcpdump"],
    ["weir-pass-kernel", "netsniff-ng"],
    ["weir-tc", "tcpdump"],
    ["weir-tc", "netsniff-ng"],
    ["weir-af-packet", "tcpdump"],
    ["weir-af-xdp", "af-xdp"],
];

/// A contestant's name, for the command line.
pub(super) fn name(text: &str) -> Result<String, String> {
    let names: Vec<&str> = all().iter().map(|contestant| contestant.name).collect();
    if names.contains(&text) { Ok(text.to_owned()) } else { Err(format!("available: {}", names.join(", "))) }
}

/// weir's library in a process that reads all of each packet. For each of two queues 64 MiB; a packet socket has one.
pub(super) fn receive(source: &'static str, mode: &'static str, stamps: &'static str) -> Program {
    let chunks = if source == "af_packet" { "128" } else { "64" };
    let how = ["--source", source, "--mode", mode, "--timestamps", stamps, "--chunks", chunks];
    ours(OWN, "ready", &[&["receive"], &how[..]].concat())
}

/// The same with stamps of the kernel; `active`: it never sleeps.
pub(super) fn receiving(source: &'static str, mode: &'static str, active: bool) -> Program {
    let mut program = receive(source, mode, "kernel");
    program.arguments.extend(active.then_some("--active"));
    Program { spins: active, ..program }
}

/// The same where the stack gets the packets, too.
pub(super) fn receive_and_pass() -> Program {
    receive("xdp", "pass", "kernel")
}

/// The same with room for 50 MiB a queue.
pub(super) fn receive_into_50_mib() -> Program {
    ours(OWN, "ready", &words("receive --source xdp --mode exclusive --chunks 50"))
}

/// Captures that differ in the size of their chunks, beside the limit with a copy; each has 64 MiB a queue.
pub(super) fn by_chunk_size() -> Vec<Contestant> {
    let of = |(name, title, chunks, chunk_size)| {
        let shape = ["--timestamps", "none", "--chunks", chunks, "--chunk-size", chunk_size];
        let how = [&["receive", "--source", "xdp", "--mode", "exclusive"], &shape[..]].concat();
        Contestant::program(name, title, false, ours(OWN, "ready", &how))
    };
    let limit = all().into_iter().filter(|contestant| contestant.name == "limit-write");
    let sizes = [
        ("chunks-128k", "weir, chunks of 128 KiB", "512", "131072"),
        ("chunks-256k", "weir, chunks of 256 KiB", "256", "262144"),
        ("chunks-512k", "weir, chunks of 512 KiB", "128", "524288"),
        ("chunks-1m", "weir, chunks of 1 MiB", "64", "1048576"),
        ("chunks-2m", "weir, chunks of 2 MiB", "32", "2097152"),
    ];
    limit.chain(sizes.map(of)).collect()
}

/// A queue's pool of a chosen shape, for frames as long as its cells.
pub(super) fn held_up(chunks: &'static str, chunk_size: &'static str) -> Program {
    let shape = ["--chunks", chunks, "--chunk-size", chunk_size];
    ours(OWN, "ready", &[&["receive", "--source", "xdp", "--mode", "exclusive"], &shape[..]].concat())
}

/// The bare loop with so many frames of 2 KiB.
pub(super) fn af_xdp_ring(frames: &'static str) -> Program {
    let how = ["receive-af-xdp", "--queue", "1", "--frames", frames];
    Program { spins: true, ..ours(OWN, "ready", &how) }
}

/// What a user would type to see whether anything comes.
pub(super) fn capture_without_file() -> Program {
    ours(WEIR, "source xdp", &["capture", "--source", "xdp", "--json"])
}

/// What a user types to see all that a working interface sends and receives; nothing is kept.
pub(super) fn capture_on_host(ready: &'static str, source: &'static str) -> Program {
    ours(WEIR, ready, &["capture", "--json", "--source", source, "-w", "/dev/null"])
}

/// What a user types to have the file compressed.
pub(super) fn compress() -> Program {
    let how = "capture --json --source xdp --mode exclusive --chunks 64 --compress zstd -w {file}";
    ours(WEIR, "source xdp", &words(how))
}

fn write() -> Program {
    let how = "capture --json --source xdp --mode exclusive --timestamps kernel --chunks 64 -w {file}";
    ours(WEIR, "source xdp", &words(how))
}

/// The loop that has nothing of weir in it but the interface's set-up.
fn receive_af_xdp() -> Program {
    Program { spins: true, ..ours(OWN, "ready", &["receive-af-xdp", "--queue", "1"]) }
}

/// The words of a command.
pub(super) fn words(text: &'static str) -> Vec<&'static str> {
    text.split(' ').collect()
}

/// A reader that tells its account as JSON.
pub(super) fn ours(name: &'static str, ready: &'static str, arguments: &[&'static str]) -> Program {
    Program::new([name, ""], ready, 50, [arguments, &["-i", "{interface}"]].concat(), |stdout, _| {
        let received: Received = serde_json::from_str(stdout).ok()?;
        let chunks: u64 = received.queues.iter().map(|queue| u64::from(queue.pool.total)).sum();
        Some(Counts {
            delivered: received.witness.map_or(received.captured, |witness| witness.packets),
            dropped: Some(received.lost + received.errors),
            filtered: received.filtered,
            chunks: Some(chunks).filter(|&chunks| chunks > 0),
            witness: received.witness,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_different() {
        let mut names: Vec<&str> = all().iter().map(|contestant| contestant.name).collect();
        assert!(names.iter().all(|text| name(text).as_deref() == Ok(text)));
        assert!(name("wireshark").expect_err("unknown").contains("netsniff-ng"));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn the_account_of_a_capture_and_a_receiver_are_read() {
        let parse = write().parse;
        let account = r#"{"type":"account","captured":7,"lost":2,"errors":1,"queues":[{"queue":0,"pool":{"total":3}}]}"#;
        assert_eq!(parse(account, ""), Some(Counts { dropped: Some(3), chunks: Some(3), ..Counts::of(7) }));
        assert_eq!(parse("", "weir: no such interface"), None);
    }
}
