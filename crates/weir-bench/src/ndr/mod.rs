//! The highest rate without loss, as RFC 2544 section 26.1 asks for it: trials at chosen rates; one that loses nothing makes the
//! next faster, one that loses a packet makes it slower.
//!
//! A trial here takes half a second, and not a minute, and a pool or ring holds tens of MiB: so a program has to be done
//! soon after the last packet, or else the rate was one that its buffer held and not the program.

mod burst;
mod contestant;
mod host;
mod search;

pub(super) use burst::make as make_burst;
pub(super) use host::make as make_host;

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::NamedTempFile;
use weir_lab::Traffic;

use crate::experiment::{About, Axis, Experiment, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::peers;
use crate::sample::{Lab, Limits};

use contestant::{Contestant, To};
use search::{LEAST_BEHIND, Sending, Trial, measures, search, steps, trial};

/// What stands for the mix of sizes on the axis: its mean.
const IMIX: u64 = 358;
const SIZES: [u64; 4] = [60, 256, IMIX, 1514];
/// No file gets longer.
const LONGEST_FILE: f64 = 1.5e9;

fn contestants() -> Vec<Contestant> {
    let (weir, peer) = (Contestant::weir, Contestant::peer);
    let exclusive: &[&str] = &["--source", "xdp", "--mode", "exclusive"];
    let (xdp, tc): (&[&str], &[&str]) = (&["--source", "xdp"], &["--source", "tc"]);
    vec![
        weir("weir-xdp", "weir xdp, to /dev/null", To::Nowhere, xdp),
        weir("weir-exclusive", "weir xdp, exclusive, to /dev/null", To::Nowhere, exclusive),
        weir("weir-tc", "weir tc, to /dev/null", To::Nowhere, tc),
        weir("weir-af-packet", "weir af_packet, to /dev/null", To::Nowhere, &["--source", "af_packet"]),
        peer("tcpdump", "tcpdump, to /dev/null", To::Nowhere, peers::tcpdump_with("65536", "/dev/null")),
        peer("netsniff-ng", "netsniff-ng, to /dev/null", To::Nowhere, peers::netsniff_ng_with("64MiB")),
        weir("weir-xdp-tmpfs", "weir xdp, to tmpfs", To::Memory, xdp),
        weir("weir-exclusive-tmpfs", "weir xdp, exclusive, to tmpfs", To::Memory, exclusive),
        peer("tcpdump-tmpfs", "tcpdump, to tmpfs", To::Memory, peers::tcpdump_with("65536", "{file}")),
        peer("dumpcap-tmpfs", "dumpcap, to tmpfs", To::Memory, peers::dumpcap_with("64")),
        weir("weir-xdp-disk", "weir xdp, to disk", To::Disk, xdp),
        peer("tcpdump-disk", "tcpdump, to disk", To::Disk, peers::tcpdump_with("65536", "{file}")),
        weir(
            "weir-zstd",
            "weir xdp, to tmpfs, compressed",
            To::Memory,
            &[xdp, &["--compress", "zstd"]].concat(),
        ),
    ]
}

struct Ndr {
    lab: Lab,
    contestants: Vec<Contestant>,
    sizes: &'static [u64],
    steps: u32,
    duration: Duration,
    memory: PathBuf,
    disk: PathBuf,
}

/// Makes the network.
pub(super) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    let sizes: &[u64] = if settings.quick { &SIZES[..1] } else { &SIZES };
    // Fails early where there is no such folder.
    let _room = Limits::new(Duration::ZERO, &settings.dir)?;
    Ok(Box::new(Ndr {
        lab: Lab::on(settings.cards.as_ref())?,
        contestants: contestants(),
        sizes,
        steps: steps(settings),
        duration: search::duration(settings),
        memory: settings.dir.clone(),
        disk: "/var/tmp".into(),
    }))
}

impl Experiment for Ndr {
    fn about(&self) -> About {
        let versus = [
            ["weir-xdp", "tcpdump"],
            ["weir-tc", "tcpdump"],
            ["weir-af-packet", "tcpdump"],
            ["weir-xdp", "netsniff-ng"],
            ["weir-xdp-tmpfs", "tcpdump-tmpfs"],
            ["weir-xdp-tmpfs", "dumpcap-tmpfs"],
            ["weir-xdp-disk", "tcpdump-disk"],
        ];
        About {
            name: "ndr".to_owned(),
            title: "The highest rate without loss (RFC 2544)".to_owned(),
            method: format!(
                "Trials of {} ms at rates found by bisection; a rate counts if every packet reached the program, and it was done \
                 within {} ms (or a tenth of the trial) after the last one. Each has 64 MiB for packets. Where nothing is lost at \
                 full rate, the value is what the interface took: the program can do more. {IMIX} bytes stand for 60, 590 and \
                 1514 bytes mixed 7 to 4 to 1, filled with zeros. The disk is {}. Exclusive captures take packets from the network stack, all \
                 others leave them to it.",
                self.duration.as_millis(),
                LEAST_BEHIND.as_millis(),
                self.disk.display()
            ),
            differs: vec!["RFC 2544 has trials of 60 seconds, and 7 sizes of frames.".to_owned()],
            axis: Some(Axis::frame()),
            measures: measures(),
            series: self.contestants.iter().map(Contestant::series).collect(),
            missing: contestant::missing(&self.contestants),
            versus: versus.map(|pair| pair.map(str::to_owned)).to_vec(),
            ..About::default()
        }
    }

    fn turns(&self) -> Vec<Turn> {
        contestant::turns(&self.contestants, self.sizes)
    }

    fn take(&mut self, turn: &Turn, _round: u32) -> Result<Taken, Failure> {
        let contestant = contestant::of(&self.contestants, turn);
        let size = turn.at.unwrap_or_default();
        let traffic =
            if size == IMIX { Traffic::imix() } else { Traffic::new(usize::try_from(size).unwrap_or(60)) };
        let traffic = traffic.map_err(failed("describe frames"))?;
        let mut problems = Vec::new();
        let found = search(self.steps, |rate| self.trial(contestant, &traffic, size, rate, &mut problems))?;
        let mut taken = Taken { problems, ..Taken::default() };
        found.add_to(&mut taken, turn);
        Ok(taken)
    }
}

impl Ndr {
    /// `rate`: none for all that the interface takes.
    fn trial(
        &self,
        contestant: &Contestant,
        traffic: &Traffic,
        size: u64,
        rate: Option<f64>,
        problems: &mut Vec<String>,
    ) -> Result<Trial, Failure> {
        let file = contestant.file(&self.memory, &self.disk)?;
        let reader = contestant.program.start(&self.lab.pair().rx, file.as_ref().map(NamedTempFile::path))?;
        // Without a name nothing is left of it, whatever happens.
        let _open: Option<File> = file.map(NamedTempFile::into_file);
        let most = if contestant.to == To::Nowhere { f64::MAX } else { LONGEST_FILE / (size as f64 + 64.0) };
        trial(self.lab.pair(), reader, traffic, &Sending { rate, duration: self.duration, most }, problems)
    }
}
