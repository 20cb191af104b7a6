//! `weir filter`: explains, compiles and tests expressions.

mod cost;
mod decode;
mod emit;
mod explain;
mod reads;
mod run;

use std::path::PathBuf;

use clap::{ArgAction, ArgGroup, Args, ValueEnum};
use serde::Serialize;
use weir::filter::{Compiled, Filter, FilterError, Receiver};
use weir_filter::graph::Graph;
use weir_service::confine;

use self::explain::Show;
use crate::args::ConfineArgs;
use crate::failure::Failure;
use crate::filter_args::FilterArgs;
use crate::{link_types, out, style};

/// Message for a filter that rejects all packets.
const NEVER: &str = "No packet can match this.";

const EXAMPLES: &str = "\
Examples:
  weir filter tcp port 443 and net 10.0.0.0/8
        Explain how terms are joined, and what each matches.
  weir filter --bytes tcp port 443
        Also list the packet bytes that each term reads.
  weir filter -d tcp port 443
        Print classic BPF like `tcpdump -d`; -dd prints C, -ddd numbers.
  weir filter --emit ebpf 'host in {10.1.2.3, 192.168.0.0/16}'
        Print eBPF for XDP.
  weir filter --run trace.pcapng 'udp port 53 and not host 10.1.2.3'
        Count the packets in a file that match and how often each term decided.
  weir filter --cost tcp port 80
        Compare instruction counts with libpcap's, on the longest and a typical path.
  weir filter -y LINUX_SLL2 -d ifindex 2
        Compile for a link type other than Ethernet.
  tcpdump -ddd port 53 | weir filter --decode -
        Decode a classic BPF program.

Exit status: 0 success, 1 error, 2 invalid expression or usage error.";

/// What is asked of an expression.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("question").args(["dump", "emit", "explain", "run", "cost", "decode"]))]
pub(crate) struct FilterCommandArgs {
    /// Filter expression (pcap-filter(7), with extensions); default: match every packet.
    #[arg(value_name = "EXPRESSION")]
    words: Vec<String>,

    #[command(flatten)]
    filter: FilterArgs,

    /// Link type of the packets, by name or number.
    #[arg(short = 'y', long, value_name = "LINKTYPE", value_parser = link_types::parse, default_value = "EN10MB")]
    link_type: u16,

    /// Print classic BPF for the kernel; -dd as a C fragment, -ddd as numbers.
    #[arg(short = 'd', action = ArgAction::Count, help_heading = "Output")]
    dump: u8,

    /// Print the compiled filter in this form.
    #[arg(long, value_name = "FORM", value_enum, help_heading = "Output")]
    emit: Option<EmitFormat>,

    /// Explain what each term matches (the default).
    #[arg(long, help_heading = "Output")]
    explain: bool,

    /// Also list the packet bytes that each term reads; --json always does.
    #[arg(long, conflicts_with_all = ["dump", "emit", "run", "cost", "decode"], help_heading = "Output")]
    bytes: bool,

    /// Count the packets in FILE that match and how often each term decided; - is standard input.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    run: Option<PathBuf>,

    /// Count the instructions the filter needs, compared with libpcap's.
    #[arg(long, help_heading = "Output")]
    cost: bool,

    /// Read classic BPF as printed by -ddd; print a listing and an expression; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["words", "filter", "filter_file"], help_heading = "Output")]
    decode: Option<PathBuf>,

    /// Print one JSON object (with --explain, --run, --cost and --decode).
    #[arg(long, conflicts_with_all = ["dump", "emit"], help_heading = "Output")]
    json: bool,

    /// Do not optimise (with -d, --emit and --cost).
    #[arg(short = 'O', long, help_heading = "Output")]
    no_optimise: bool,

    #[command(flatten)]
    confine: ConfineArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EmitFormat {
    /// Classic BPF.
    Cbpf,
    /// eBPF for XDP.
    Ebpf,
    /// Native code of this processor.
    Asm,
    /// Intermediate representation: tests on bytes of the packet.
    Ir,
    /// Syntax tree: the expression as understood.
    Ast,
}

/// Runs the command.
pub(crate) fn run(args: &FilterCommandArgs) -> Result<(), Failure> {
    if let Some(path) = &args.decode {
        return decode::run(path, args.json);
    }
    let filter = args.filter.filter(&args.words)?.unwrap_or_else(|| Filter::new(""));
    if let Some(path) = &args.run {
        // The input may come from anybody. No code is generated, because each term is evaluated separately.
        args.confine.confine(|| confine::Needs::to_read(std::slice::from_ref(path), None))?;
        return run::run(&filter, path, args.json);
    }
    let (mut compiled, needs) = args.compile(&filter).map_err(|error| wrong(&error))?;
    if args.no_optimise {
        compiled.graph = compiled.lowered.clone();
    }
    if args.dump > 0 || args.emit.is_some() {
        warn_of_never(&compiled);
        needs.told().into_iter().for_each(|told| style::say(format_args!("{told}")));
    }
    match (args.dump, args.emit) {
        (0, Some(format)) => print(&emit::text(&compiled, format, args.no_optimise)?),
        (1.., _) => print(&emit::classic(&compiled, args.dump, args.no_optimise)?),
        (0, None) if args.cost => cost::run(&compiled, args.link_type, args.json, args.no_optimise),
        (0, None) => explain::run(&compiled, needs, args.link_type, args.how_to_explain()),
    }
}

impl FilterCommandArgs {
    fn how_to_explain(&self) -> Show {
        match (self.json, self.bytes) {
            (true, _) => Show::Json,
            (false, true) => Show::Bytes,
            (false, false) => Show::Words,
        }
    }

    /// Compiles for the receiver with the least metadata that the filter works with. BPF is for the kernel, which knows
    /// nothing of files.
    fn compile(&self, filter: &Filter) -> Result<(Compiled, Needs), FilterError> {
        let link_type = self.link_type;
        let receiver =
            Receiver { link_type, metadata: false, swapped: false, netmask: None, tags_lost: false };
        let for_file = || {
            let is_bpf =
                self.dump > 0 || self.cost || matches!(self.emit, Some(EmitFormat::Cbpf | EmitFormat::Ebpf));
            if is_bpf { None } else { filter.compile_for_file(link_type, false).ok() }
        };
        filter.compile(receiver).map(|compiled| (compiled, Needs::Bytes)).or_else(|error| {
            if let Some(compiled) = for_file() {
                return Ok((compiled, Needs::Direction));
            }
            let live = filter.compile(Receiver { metadata: true, ..receiver });
            live.map(|compiled| (compiled, Needs::Live)).map_err(|_| error)
        })
    }
}

/// The information about packets that a filter needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Needs {
    /// Their bytes.
    Bytes,
    /// Their bytes and direction.
    Direction,
    /// Information that only a live capture has.
    Live,
}

impl Needs {
    fn told(self) -> Option<&'static str> {
        match self {
            Self::Bytes => None,
            Self::Direction => Some(
                "It uses data beside the packet bytes: for live captures, and for pcapng files that record the direction.",
            ),
            Self::Live => Some("It uses data beside the packet bytes: for live captures only."),
        }
    }
}

/// Reports an invalid expression with the position of the error.
fn wrong(error: &FilterError) -> Failure {
    Failure::usage(error.to_string())
}

/// Warns that no packet can match, if the output does not show it.
fn warn_of_never(compiled: &Compiled) {
    if compiled.graph.root() == Graph::REFUSE {
        style::say(format_args!("{NEVER}"));
    }
}

/// Returns the text of each term.
fn terms(compiled: &Compiled) -> Vec<&str> {
    let text = compiled.text.as_str();
    compiled.ast.terms.iter().map(|term| text.get(term.span.clone()).unwrap_or_default()).collect()
}

fn print(text: &str) -> Result<(), Failure> {
    out::print(text.as_bytes())
}

fn print_json(object: &impl Serialize) -> Result<(), Failure> {
    print(&format!("{}\n", serde_json::to_string(object).map_err(Failure::new)?))
}
