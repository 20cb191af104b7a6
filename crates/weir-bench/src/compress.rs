//! `weir-bench compress`: the highest rate at which tcpdump writes plain files without loss, and whether weir compresses on
//! the way at that rate without loss.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::NamedTempFile;
use weir_lab::{Rate, Traffic};

use crate::contestants::compress;
use crate::experiment::{
    About, Axis, Experiment, Judged, Measure, Outcome, Role, Series, Settings, Taken, Turn,
};
use crate::failure::{Failure, failed};
use crate::program::{Program, installed};
use crate::sample::Lab;
use crate::witness::Witness;
use crate::{peers, tidy};

/// No file holds more bytes of packets.
const LARGEST: u64 = 1 << 30;
/// From one try to the next, when tcpdump has lost packets.
const SLOWER: f64 = 0.85;
/// Packets a second at which it is given up.
const SLOWEST: f64 = 1000.0;

/// The only series.
const WEIR: &str = "weir";

/// The network, and how to send.
struct Compress {
    lab: Lab,
    sizes: Vec<u16>,
    duration: Duration,
    dir: PathBuf,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    settings.without_cards("compress")?;
    installed("zstd", "zstd")?;
    let (sizes, duration) = (settings.sizes(&[60, 1514]), settings.time(2000));
    Ok(Box::new(Compress { lab: Lab::new()?, sizes, duration, dir: settings.dir.clone() }))
}

impl Experiment for Compress {
    fn about(&self) -> About {
        About {
            name: "compress".to_owned(),
            title: "Compression".to_owned(),
            method: "The highest rate, in steps of 15 %, at which tcpdump writes plain files without loss. weir then compresses at \
                     that rate; zstd and a reader of its own check the file."
                .to_owned(),
            axis: Some(Axis::frame()),
            measures: vec![
                Measure::higher("rate", "rate that tcpdump holds, and that weir is offered", "Mpps"),
                Measure::lower("lost", "packets that weir has lost", "packets"),
                Measure::lower("share", "compressed file over the bytes of its packets", "%"),
                Measure::fact("sent", "packets that weir was offered", "packets"),
            ],
            series: vec![Series::new(WEIR, "weir, compressing, at tcpdump's rate", Role::Ours)],
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        self.sizes.iter().map(|&size| Turn::of(WEIR, Some(size.into()))).collect()
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let size = usize::try_from(turn.at.expect("turns have a size")).expect("frames are short");
        let rate = self.rate_of_tcpdump(size)?;
        let written = self.write(&compress(), size, Some(rate))?;
        let length = written.file.as_file().metadata().map_err(failed("inspect the file"))?.len();
        let problem = problem(&written).map_err(failed("read the compressed file"))?;
        let mut taken = Taken { problems: problem.into_iter().collect(), ..Taken::default() };
        taken.add(turn, "rate", rate / 1e6);
        taken.add(turn, "lost", written.lost as f64);
        taken.add(turn, "share", 100.0 * length as f64 / (written.packets * size as u64) as f64);
        taken.add(turn, "sent", written.packets as f64);
        Ok(taken)
    }

    fn bars(&self, outcome: &Outcome) -> Vec<Judged> {
        let bar = |size: &u16| {
            let name = format!("compressed at the rate that tcpdump holds plain: lost, {size} B");
            let lost = outcome.values_of(WEIR, "lost", Some(f64::from(*size)));
            Judged::worst(&name, 0.0, "packets", lost)
        };
        self.sizes.iter().map(bar).collect()
    }
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

impl Compress {
    /// The highest rate, in steps, that it holds.
    fn rate_of_tcpdump(&self, size: usize) -> Result<f64, Failure> {
        let mut rate = None;
        loop {
            let written = self.write(&peers::tcpdump("{file}"), size, rate)?;
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
    fn write(&self, program: &Program, size: usize, rate: Option<f64>) -> Result<Written, Failure> {
        let dir = &self.dir;
        let file = tidy::file_in(dir);
        let file = file.map_err(failed(format_args!("create a file in {}", dir.display())))?;
        let reader = program.start(&self.lab.pair().rx, Some(file.path()))?;
        let (traffic, generator) = self.lab.generator(size)?;
        let mut generator = match rate {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some million")]
            Some(rate) => generator.rate(Rate::PerSecond(rate as u64)).map_err(failed("prepare to send"))?,
            None => generator,
        };
        // To see how many it will be, and for the caches.
        let warm_up = generator.send_for(self.duration / 10).map_err(failed("send"))?;
        let most = LARGEST / size as u64;
        let per_second = warm_up.sent() as f64 / warm_up.elapsed.as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some million")]
        let frames = (per_second * self.duration.as_secs_f64()) as u64;
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
