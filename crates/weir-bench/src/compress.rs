//! `weir-bench compress`: the highest rate at which tcpdump writes plain files without loss, and whether weir compresses on
//! the way at that rate without loss.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tempfile::NamedTempFile;
use weir_lab::{Rate, Traffic};

use super::bars::Bar;
use super::contestants::compress;
use super::machine::Machine;
use super::peers;
use super::program::Program;
use super::sample::Lab;
use super::spread::Spread;
use super::table::{bar_rows, table};
use super::witness::Witness;
use super::{believable, create, failed, save};
use crate::failure::Failure;
use crate::{style, tidy, units};

const EXAMPLES: &str = "\
Examples:
  weir-bench compress
        Run three rounds with frames of 60 and 1514 bytes (about a minute).
  weir-bench compress --rounds 1 --duration 100ms --sizes 60
        Check that the benchmark works; the rates mean little.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompressArgs {
    /// Number of rounds.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// Sending time per contestant and round.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = units::duration)]
    duration: Duration,

    /// Frame sizes in bytes, without the checksum: 60 to 1514.
    #[arg(long, value_name = "SIZE,...", value_delimiter = ',', default_value = "60,1514")]
    #[arg(value_parser = clap::value_parser!(u16).range(60..=1514))]
    sizes: Vec<u16>,

    /// Directory for files; should be a tmpfs with 2 GiB to spare.
    #[arg(long, value_name = "DIR", default_value = "/dev/shm")]
    dir: PathBuf,

    /// Write all measurements to FILE.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// No file holds more bytes of packets.
const LARGEST: u64 = 1 << 30;
/// From one try to the next, when tcpdump has lost packets.
const SLOWER: f64 = 0.85;
/// Packets a second at which it is given up.
const SLOWEST: f64 = 1000.0;

/// One round with one size.
#[derive(Debug, Serialize)]
struct Sample {
    size: usize,
    round: u32,
    /// Packets a second that tcpdump wrote without loss, and that weir was then offered.
    rate: f64,
    packets: u64,
    lost: u64,
    /// Of the compressed file, over that of its packets' bytes.
    share: f64,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct Report {
    machine: Machine,
    samples: Vec<Sample>,
    bars: Vec<Bar>,
}

/// Runs the command.
pub(super) fn run(args: &CompressArgs) -> Result<(), Failure> {
    let json = create(args.json.as_deref())?;
    if super::program::find("zstd").is_none() {
        return Err(Failure::new("cannot find zstd, which checks the files: it is not installed")
            .hint("apt-get install zstd"));
    }
    let machine = Machine::describe(&args.dir);
    style::say(format_args!("{machine}"));
    let lab = Lab::new()?;
    let mut report = Report { machine, samples: Vec::new(), bars: Vec::new() };
    let turns = (1..=args.rounds).flat_map(|round| args.sizes.iter().map(move |&size| (round, size)));
    for (round, size) in turns {
        let sample = Turn { lab: &lab, args, size: usize::from(size) }.sample(round)?;
        style::say(format_args!(
            "[{round}] {size:>4} B  tcpdump sustains {}pps; compressed at that rate: {} of {} lost, {:.0} % of the bytes  {}",
            units::scaled(sample.rate),
            units::grouped(sample.lost),
            units::grouped(sample.packets),
            sample.share * 100.0,
            style::stderr().red(sample.problem.as_deref().unwrap_or_default())
        ));
        report.samples.push(sample);
    }
    for &size in &args.sizes {
        let size = usize::from(size);
        let lost =
            report.samples.iter().filter(|sample| sample.size == size).map(|sample| sample.lost as f64);
        let name = "compressed at the rate that tcpdump holds plain: lost";
        report.bars.push(Bar::worst(name, Some(size), 0.0, "packets", Spread::of(lost)));
    }
    let mut stdout = io::stdout().lock();
    let printed = write!(stdout, "\nTargets\n{}", table(&bar_rows(&report.bars)));
    printed.and_then(|()| stdout.flush()).map_err(failed("write to standard output"))?;
    if let Some((path, file)) = json {
        save(path, file, &serde_json::to_string_pretty(&report).map_err(failed("make JSON"))?)?;
    }
    believable(report.samples.iter().filter(|sample| sample.problem.is_some()).count())
}

struct Turn<'a> {
    lab: &'a Lab,
    args: &'a CompressArgs,
    size: usize,
}

/// What was written of what was sent.
struct Written {
    traffic: Traffic,
    packets: u64,
    lost: u64,
    /// As fast as it really was.
    rate: f64,
    file: NamedTempFile,
}

impl Turn<'_> {
    fn sample(&self, round: u32) -> Result<Sample, Failure> {
        let rate = self.rate_of_tcpdump()?;
        let written = self.write(&compress(), Some(rate))?;
        let length = written.file.as_file().metadata().map_err(failed("inspect the file"))?.len();
        Ok(Sample {
            size: self.size,
            round,
            rate,
            packets: written.packets,
            lost: written.lost,
            share: length as f64 / (written.packets * self.size as u64) as f64,
            problem: problem(&written).map_err(failed("read the compressed file"))?,
        })
    }

    /// The highest rate, in steps, that it holds.
    fn rate_of_tcpdump(&self) -> Result<f64, Failure> {
        let mut rate = None;
        loop {
            let written = self.write(&peers::tcpdump("{file}"), rate)?;
            if written.lost == 0 {
                return Ok(written.rate);
            }
            let slower = written.rate.min(rate.unwrap_or(f64::INFINITY)) * SLOWER;
            if slower < SLOWEST {
                return Err(Failure::new("tcpdump loses packets at every rate tried"));
            }
            rate = Some(slower);
        }
    }

    /// Offers packets at a rate, or as fast as they can be made.
    fn write(&self, program: &Program, rate: Option<f64>) -> Result<Written, Failure> {
        let dir = &self.args.dir;
        let file = tidy::file_in(dir);
        let file = file.map_err(failed(format_args!("create a file in {}", dir.display())))?;
        let reader = program.start(&self.lab.pair().rx, Some(file.path()))?;
        let (traffic, generator) = self.lab.generator(self.size)?;
        let mut generator = match rate {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some million")]
            Some(rate) => generator.rate(Rate::PerSecond(rate as u64)).map_err(failed("prepare to send"))?,
            None => generator,
        };
        // To see how many it will be, and for the caches.
        let warm_up = generator.send_for(self.args.duration / 10).map_err(failed("send"))?;
        let most = LARGEST / self.size as u64;
        let per_second = warm_up.sent() as f64 / warm_up.elapsed.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some million")]
        let frames = (per_second * self.args.duration.as_secs_f64()) as u64;
        let timed = generator.send(frames.clamp(1, most)).map_err(failed("send"))?;
        reader.settle()?;
        let counts = reader.finish()?;
        let packets = warm_up.accepted + timed.accepted;
        let lost = packets.saturating_sub(counts.delivered);
        let rate = timed.accepted as f64 / timed.elapsed.as_secs_f64();
        Ok(Written { traffic, packets, lost, rate, file })
    }
}

/// What is wrong with the compressed file, in the eyes of zstd and of a reader that shares nothing with weir's writer.
fn problem(written: &Written) -> io::Result<Option<String>> {
    let mut zstd = Command::new("zstd");
    zstd.args(["-dc", "-q"]).stdin(File::open(written.file.path())?).stdout(Stdio::piped());
    let mut zstd = zstd.spawn()?;
    let mut output = zstd.stdout.take().expect("a pipe was asked for");
    let witness = Witness::read(output.by_ref());
    drop(output);
    let status = zstd.wait()?;
    let witness = witness?;
    if !status.success() {
        return Ok(Some(format!("zstd -dc: {status}")));
    }
    let kept = written.packets - written.lost;
    if witness.packets != kept {
        return Ok(Some(format!("{} packets in the file instead of {kept}", witness.packets)));
    }
    let whole = written.lost > 0 || witness == Witness::of(&written.traffic, 0..kept);
    Ok((!whole).then(|| "wrong bytes or order".to_owned()))
}
