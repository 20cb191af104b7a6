//! The longest burst at full rate of which 64 MiB hold every packet. The reader's process is stopped meanwhile, as in `bursts`:
//! so it is the memory that is measured, and not how fast a program empties it.

use std::fs::File;
use std::path::PathBuf;

use rustix::process::Signal;
use tempfile::NamedTempFile;
use weir_lab::{Generator, Traffic};

use super::contestant::{self, Contestant, To};
use crate::experiment::{About, Axis, Experiment, Measure, Settings, Taken, Turn};
use crate::failure::{Failure, failed};
use crate::peers;
use crate::sample::{GENERATOR_CPU, Lab, Limits};

const SIZES: [u64; 3] = [60, 256, 1514];
/// What everybody has.
const ROOM: u64 = 64 << 20;
/// Trials of a search, and in a short run.
const TRIALS: u32 = 10;
const FEW_TRIALS: u32 = 2;
/// A burst is known to within this part of it.
const EXACT: u64 = 64;
/// Nobody holds a burst as much longer than what its bytes have room for.
const LONGEST: u64 = 8;
/// Not part of a short run: its ring is libpcap's, as is tcpdump's.
const SLOW: &str = "dumpcap";
const MIB: f64 = (1 << 20) as f64;

fn contestants() -> Vec<Contestant> {
    let weir = |name, title, how: &[&'static str]| Contestant::weir(name, title, To::Nowhere, how);
    let peer = Contestant::peer;
    vec![
        weir("weir-xdp", "weir xdp", &["--source", "xdp"]),
        weir("weir-tc", "weir tc", &["--source", "tc"]),
        weir("weir-af-xdp", "weir af_xdp", &["--source", "af_xdp", "--mode", "exclusive"]),
        weir("weir-af-packet", "weir af_packet", &["--source", "af_packet"]),
        peer("tcpdump", "tcpdump -B 65536", To::Nowhere, peers::tcpdump_with("65536", "/dev/null")),
        peer(SLOW, "dumpcap -B 64", To::Memory, peers::dumpcap_with("64")),
        peer("netsniff-ng", "netsniff-ng --ring-size 64MiB", To::Nowhere, peers::netsniff_ng_with("64MiB")),
    ]
}

struct Burst {
    lab: Lab,
    contestants: Vec<Contestant>,
    sizes: &'static [u64],
    trials: u32,
    dir: PathBuf,
}

/// Makes the network.
pub(crate) fn make(settings: &Settings) -> Result<Box<dyn Experiment>, Failure> {
    // Fails early where there is no such folder.
    let _room = Limits::new(settings.time(0), &settings.dir)?;
    let mut contestants = contestants();
    if settings.quick {
        contestants.retain(|contestant| contestant.name != SLOW);
    }
    Ok(Box::new(Burst {
        lab: Lab::on(settings.cards.as_ref())?,
        contestants,
        // Few long frames fill the memory soon.
        sizes: if settings.quick { &SIZES[2..] } else { &SIZES },
        trials: if settings.quick { FEW_TRIALS } else { TRIALS },
        dir: settings.dir.clone(),
    }))
}

impl Experiment for Burst {
    fn about(&self) -> About {
        let versus = [
            ["weir-xdp", "tcpdump"],
            ["weir-tc", "tcpdump"],
            ["weir-af-packet", "tcpdump"],
            ["weir-af-packet", SLOW],
            ["weir-af-packet", "netsniff-ng"],
        ];
        About {
            name: "ndr-burst".to_owned(),
            title: "The longest burst that 64 MiB hold".to_owned(),
            method: "Packets come at full rate while the reader's process is stopped (SIGSTOP); then it goes on and takes what was \
                     kept. The length of the burst is found by bisection, beginning with one that is too long and one as long as \
                     what was kept of that. weir has 64 MiB for the queue on which they come, others for all queues. With \
                     af_packet and af_xdp the kernel fills a ring of 32 MiB, from which weir takes packets into its 64 MiB: \
                     the ring is all that counts while it is stopped."
                .to_owned(),
            axis: Some(Axis::frame()),
            measures: vec![
                Measure::higher("burst", "longest burst without loss", "packets"),
                Measure::higher("bytes", "its frames", "MiB"),
                Measure::fact("lost-of", "shortest burst that lost a packet", "packets"),
                Measure::fact("trials", "trials", ""),
                Measure::fact("sent", "packets of all trials", "packets"),
                Measure::fact("received", "those that reached the reader", "packets"),
                Measure::fact("dropped", "those that the program counts as lost", "packets"),
            ],
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
        let size = turn.at.expect("turns are of a size");
        let (mut taken, mut totals, mut trials) = (Taken::default(), [0; 3], 0);
        let most = LONGEST * ROOM / size;
        let found = longest(ROOM / size, most, self.trials, |burst| {
            let [sent, received, dropped] = self.trial(contestant, size, burst)?;
            if sent != received + dropped {
                taken.problems.push(format!("{sent} packets sent, {received} received and {dropped} lost"));
            }
            trials += 1;
            for (total, packets) in totals.iter_mut().zip([sent, received, dropped]) {
                *total += packets;
            }
            // What the interface had no room for is not part of the burst.
            Ok::<_, Failure>([sent, received.min(sent)])
        })?;
        taken.add(turn, "burst", found.held as f64);
        taken.add(turn, "bytes", (found.held * size) as f64 / MIB);
        if let Some(burst) = found.lost {
            taken.add(turn, "lost-of", burst as f64);
        }
        taken.add(turn, "trials", f64::from(trials));
        for (measure, packets) in ["sent", "received", "dropped"].into_iter().zip(totals) {
            taken.add(turn, measure, packets as f64);
        }
        Ok(taken)
    }
}

impl Burst {
    /// Gives the packets that were sent, that reached the reader, and that it counts as lost.
    fn trial(&self, contestant: &Contestant, size: u64, burst: u64) -> Result<[u64; 3], Failure> {
        let pair = self.lab.pair();
        let traffic = Traffic::new(usize::try_from(size).unwrap_or_default());
        let traffic = traffic.map_err(failed("describe frames"))?;
        let generator = Generator::new(pair, &traffic).map_err(failed("prepare to send"))?;
        let file = contestant.file(&self.dir, &self.dir)?;
        let reader = contestant.program.start(&pair.rx, file.as_ref().map(NamedTempFile::path))?;
        // Without a name nothing is left of it, whatever happens.
        let _open: Option<File> = file.map(NamedTempFile::into_file);
        reader.signal(Signal::STOP)?;
        let sent = generator.cpu(GENERATOR_CPU).send(burst).map_err(failed("send"))?;
        reader.signal(Signal::CONT)?;
        reader.settle()?;
        let counts = reader.finish()?;
        Ok([sent.accepted, counts.delivered, counts.dropped.unwrap_or_default()])
    }
}

/// What is known of a burst's length.
#[derive(Debug, Default, PartialEq)]
struct Longest {
    /// The longest of which nothing was lost.
    held: u64,
    /// The shortest of which something was; none if all were held.
    lost: Option<u64>,
}

/// Finds the longest burst of which nothing is lost, in so many trials of at most `most` packets; `first` should be too long.
/// `kept` gives how many packets came, and how many of them were kept.
fn longest<E>(
    first: u64,
    most: u64,
    trials: u32,
    mut kept: impl FnMut(u64) -> Result<[u64; 2], E>,
) -> Result<Longest, E> {
    let mut known = Longest::default();
    let (mut next, mut guessed) = (first, false);
    for _ in 0..trials {
        let [came, kept] = kept(next)?;
        if kept == came {
            known.held = known.held.max(came);
        } else {
            known.lost = Some(known.lost.map_or(came, |lost| lost.min(came)));
        }
        let Some(lost) = known.lost else {
            if next == most {
                break;
            }
            next = (next * 2).min(most);
            continue;
        };
        let exact = known.held / EXACT + 1;
        if lost <= known.held + exact {
            break;
        }
        let middle = known.held.midpoint(lost);
        next = if kept < came && !guessed {
            // As much as was kept of one that is too long.
            guessed = true;
            kept.max(1)
        } else if kept == came && guessed {
            middle.min(known.held + exact)
        } else {
            middle
        };
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of an engine that keeps as much as `kept` gives, and in how many trials.
    fn find(trials: u32, kept: impl Fn(u64) -> u64) -> (Longest, u32) {
        let mut tried = 0;
        let found = longest(100_000, 800_000, trials, |burst| {
            tried += 1;
            Ok::<_, ()>([burst, kept(burst)])
        });
        (found.expect("no error"), tried)
    }

    #[test]
    fn what_keeps_the_first_packets_is_known_after_three_bursts() {
        let (found, trials) = find(10, |burst| burst.min(44_311));
        assert_eq!((found.held, trials), (44_311, 3));
        assert!(found.lost.is_some_and(|lost| lost > 44_311 && lost <= 44_311 + 44_311 / EXACT + 1));
        let (found, _) = find(2, |burst| burst.min(44_311));
        assert_eq!(found, Longest { held: 44_311, lost: Some(100_000) });
    }

    #[test]
    fn what_keeps_less_of_a_burst_of_just_that_is_found_by_bisection() {
        // Most of one that is too long, but all of none above 30,000.
        let (found, trials) = find(20, |burst| if burst <= 30_000 { burst } else { burst - 1 });
        assert!(found.held <= 30_000 && found.held + found.held / EXACT + 1 >= 30_000, "{found:?}");
        assert!(found.lost.is_some_and(|lost| lost > 30_000) && trials < 20, "{found:?}");
    }

    #[test]
    fn more_than_expected_and_nothing_at_all_are_answers() {
        let (found, trials) = find(20, |burst| burst.min(300_000));
        assert_eq!((found.held, trials), (300_000, 5));
        assert_eq!(find(20, |burst| burst), (Longest { held: 800_000, lost: None }, 4));
        assert_eq!(find(20, |_| 0).0, Longest { held: 0, lost: Some(1) });
    }
}
