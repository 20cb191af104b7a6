//! `weir-bench`: how fast packets are captured on this machine, side by side with the limit and with other programs.
//!
//! ```text
//!  processor 1                                            | processor 0
//!  generator -> veth -> NAPI -> program or packet socket -|-> reader, a process of its own
//! ```
//!
//! All contestants get the same frames on the same interface and do the same work: every byte of every packet is touched
//! by the reader. They take turns, so that a disturbance of the machine meets all of them.
#![forbid(unsafe_code)]

mod bars;
mod compress;
mod contestants;
mod experiment;
mod failure;
mod files;
mod filter;
mod flow_rates;
mod flows;
mod forward;
mod highest;
mod host;
mod interfaces;
mod iperf;
mod libpcap;
mod list;
mod look;
mod machine;
mod methods;
mod ndr;
mod peers;
mod pf_ring;
mod process;
mod program;
mod queues;
mod receive;
mod replay;
mod rules;
mod sample;
mod savefile;
mod send;
mod spread;
mod stat;
mod steer;
mod steps;
mod style;
mod table;
mod tidy;
mod trials;
mod units;
mod versions;
mod wanted;
mod winpcap;
mod wirecap;
mod witness;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use clap::{Args, Parser, Subcommand};

use failure::{Failure, failed};

const CAPTURE: &str = "\
Examples:
  weir-bench capture --json bench.json --html bench.html
        Run everything, five rounds of one second each (about ten minutes).
  weir-bench capture --quick
        Check that the benchmark works; the rates mean little.
  weir-bench capture --only weir-exclusive,tcpdump,limit --sizes 60 --rounds 9
        Compare selected contestants.

Requires root and two otherwise idle processors. Runs in a private network that is removed at the end.";

const ALONE: &str = "\
--quick checks that the benchmark works; its figures mean little. weir-bench run measures several in the same way, and \
weir-bench compare shows what changed between two files of results.

Requires root and two otherwise idle processors. Runs in private networks that are removed at the end.";

/// Measure weir beside its limits and other programs on this machine.
#[derive(Debug, Parser)]
#[command(name = "weir-bench", version, max_term_width = 110)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    /// Measure this weir instead of the one beside weir-bench.
    #[arg(long, value_name = "PATH", global = true)]
    weir: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Compare capture rates with the XDP limit, AF_XDP, tcpdump, dumpcap and netsniff-ng.
    #[command(after_help = CAPTURE)]
    Capture(CaptureArgs),
    /// Compare the results of two runs.
    Compare(experiment::CompareArgs),
    /// Measure compression on the fly at the highest rate tcpdump sustains without it.
    #[command(after_help = ALONE)]
    Compress(experiment::Stored),
    /// Put the results of a run into the documentation: tables, figures.
    Document(experiment::DocumentArgs),
    /// Compare filters with libpcap's: size, speed, compile time, cost in XDP.
    #[command(after_help = filter::EXAMPLES)]
    Filter(experiment::How),
    /// Compare forwarding with a bare XDP redirect, a bare AF_XDP loop, the Linux bridge and tc
    /// mirred.
    #[command(after_help = forward::EXAMPLES)]
    Forward(forward::ForwardArgs),
    /// Compare what weir and tcpdump cost a busy host.
    #[command(after_help = ALONE)]
    Host(experiment::Timed),
    /// Compare programs on the system's libpcap with the same programs on weir's.
    #[command(after_help = libpcap::EXAMPLES)]
    Libpcap(libpcap::LibpcapArgs),
    /// List the experiments that run knows.
    List,
    /// Compare lines, objects and a terminal's scrolling with tcpdump and tshark: rates, delay, cost.
    #[command(after_help = look::EXAMPLES)]
    Look(look::LookArgs),
    /// Compare cooperating handlers with theory: losses, throughput, hand-over, bursts.
    #[command(after_help = queues::EXAMPLES)]
    Queues(queues::QueuesArgs),
    /// Compare reading and rewriting capture files with tcpdump, tshark and editcap.
    #[command(after_help = ALONE)]
    Read(files::ReadArgs),
    /// Compare replaying a capture file with tcpreplay: top speed, and how exactly gaps are kept.
    #[command(after_help = ALONE)]
    Replay(experiment::How),
    /// Compare rules, in what they drop and pass, with a bare XDP program and nft.
    #[command(after_help = ALONE)]
    Rules(experiment::Timed),
    /// Run experiments by name, all in the same way: a file of raw values, tables, one report with figures.
    Run(experiment::RunArgs),
    /// Compare sending with a bare live-frames loop, trafgen and tcpreplay.
    #[command(after_help = ALONE)]
    Send(experiment::Sized),
    /// Simulate handlers that help one another on machines with many queues.
    Simulate(wirecap::simulate::SimulateArgs),
    /// Compare counting by filter with an XDP program that only drops, and with libpcap.
    #[command(after_help = ALONE)]
    Stat(experiment::Timed),
    /// Measure what steering costs in the XDP program.
    #[command(after_help = ALONE)]
    Steer(experiment::How),
    /// One compilation, which measures itself.
    #[command(hide = true)]
    CompileOnce(filter::OnceArgs),
    /// The reader of a method of interception.
    #[command(hide = true)]
    Intercept(methods::InterceptArgs),
    /// Exact rules of a guard.
    #[command(hide = true)]
    Added(rules::AddedArgs),
    /// Rules of nft.
    #[command(hide = true)]
    Nft(rules::NftArgs),
    /// The reader of weir's own captures.
    #[command(hide = true)]
    Receive(receive::ReceiveArgs),
    /// The reader of an AF_XDP socket.
    #[command(hide = true)]
    ReceiveAfXdp(receive::AfXdpArgs),
}

impl What {
    /// Whether it reads packets for another weir-bench, until a signal ends it.
    fn is_reader(&self) -> bool {
        matches!(
            self,
            Self::Added(_) | Self::Intercept(_) | Self::Nft(_) | Self::Receive(_) | Self::ReceiveAfXdp(_)
        )
    }

    /// Whether the program is measured, and not the library alone.
    fn runs_weir(&self) -> bool {
        use What::{Capture, Compress, Filter, Host, Look, Read, Replay, Rules, Run, Stat};
        matches!(
            self,
            Capture(_)
                | Compress(_)
                | Filter(_)
                | Host(_)
                | Look(_)
                | Read(_)
                | Replay(_)
                | Rules(_)
                | Run(_)
                | Stat(_)
        )
    }
}

#[derive(Debug, Args)]
struct CaptureArgs {
    #[command(flatten)]
    stored: experiment::Stored,

    /// Run only these contestants, and no other trials.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = contestants::name)]
    only: Vec<String>,
}

fn main() -> ExitCode {
    // Wrong usage ends here, with clap's message and exit status 2.
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    if !cli.what.is_reader() {
        tidy::watch()?;
    }
    if cli.what.runs_weir() {
        program::measure(cli.weir.as_deref())?;
    }
    match &cli.what {
        What::Added(args) => rules::run_added(args),
        What::Capture(args) => capture(args),
        What::Compare(args) => experiment::compare(args),
        What::Compress(args) => args.sized.timed.how.run(args.settings(), &["compress"], list::ALL),
        What::CompileOnce(args) => filter::run_once(args),
        What::Document(args) => experiment::document(args, list::ALL),
        What::Filter(how) => how.run(how.settings(), &["filter"], list::ALL),
        What::Forward(args) => forward::run(args, list::ALL),
        What::Host(args) => args.how.run(args.settings(), &["host"], list::ALL),
        What::Intercept(args) => methods::intercept(args),
        What::Libpcap(args) => libpcap::run(args, list::ALL),
        What::List => list::list(),
        What::Look(args) => look::run(args, list::ALL),
        What::Nft(args) => rules::run_nft(args),
        What::Queues(args) => queues::run(args, list::ALL),
        What::Read(args) => args.how.run(args.settings(), &["read"], list::ALL),
        What::Replay(how) => how.run(how.settings(), &["replay"], list::ALL),
        What::Rules(args) => args.how.run(args.settings(), &["rules", "rules-exact"], list::ALL),
        What::Run(args) => experiment::run(args, list::ALL),
        What::Send(args) => args.timed.how.run(args.settings(), &["send"], list::ALL),
        What::Simulate(args) => wirecap::simulate::run(args),
        What::Stat(args) => args.how.run(args.settings(), &["stat"], list::ALL),
        What::Steer(how) => how.run(how.settings(), &["steer"], list::ALL),
        What::Receive(args) => receive::run(args),
        What::ReceiveAfXdp(args) => receive::run_af_xdp(args),
    }
}

/// The contest, and what is not a rate.
fn capture(args: &CaptureArgs) -> Result<(), Failure> {
    let settings = experiment::Settings { only: args.only.clone(), ..args.stored.settings() };
    let names: &[&str] = if args.only.is_empty() { &["capture", "trials"] } else { &["capture"] };
    args.stored.sized.timed.how.run(settings, names, list::ALL)
}

fn two_processors() -> Result<(), Failure> {
    if thread::available_parallelism().is_ok_and(|processors| processors.get() < 2) {
        return Err(Failure::new(
            "measuring requires two processors: one for the kernel's part, one for the reader",
        ));
    }
    Ok(())
}
