//! All collectors and directories that flows are sent to, each with a thread of its own.

use std::fmt::Write as _;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use weir::flows::export::{Encoder, Exported, Interface, Settings};
use weir_service::archive::Archive;

use super::args::FlowsArgs;
use super::collector::Collector;
use super::exporter::{Exporter, Told, Watched};
use super::folder::Folder;
use super::outlet::{Outlet, OutletCounts, Writing};
use super::saver::{self, FileCounts, Names, Saver};
use super::target::Target;
use crate::failure::Failure;
use crate::{style, units};

/// Sockets and directories, opened while that is permitted.
#[derive(Debug)]
pub(super) struct Opened(Vec<Open>);

#[derive(Debug)]
enum Open {
    Socket(Collector, UdpSocket),
    Folder(Folder, Archive),
}

impl Opened {
    /// `archive`: prepares a directory for files.
    pub(super) fn open(
        args: &FlowsArgs,
        archive: impl Fn(&Path) -> Result<Archive, weir_service::Error>,
    ) -> Result<Self, Failure> {
        let open = |target: &Target| -> Result<Open, Failure> {
            Ok(match target {
                Target::Collector(collector) => {
                    // What a format cannot do is told before anything is captured.
                    encoder(collector, &args.exported(&[]))?;
                    Open::Socket(collector.clone(), collector.open()?)
                }
                Target::Folder(folder) => Open::Folder(folder.clone(), archive(&folder.directory)?),
            })
        };
        Ok(Self(args.to.iter().map(open).collect::<Result<_, _>>()?))
    }
}

fn encoder(collector: &Collector, settings: &Settings) -> Result<Encoder, Failure> {
    Encoder::new(collector.format, settings).map_err(|error| Failure::usage(error.to_string()))
}

/// What became of the flows for a collector.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ExportCounts {
    pub(super) to: String,
    #[serde(flatten)]
    pub(super) flows: OutletCounts,
    #[serde(flatten)]
    by: By,
}

/// How they went there.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum By {
    Messages {
        /// Of messages, and what they have in them.
        exported: Exported,
        /// Times that the collector's host said that nobody listens.
        refusals: u64,
    },
    Files {
        files: FileCounts,
    },
}

/// Flows on their way to a collector or to files.
#[derive(Debug)]
struct Export {
    to: String,
    writing: Writing,
    seen: Seen,
}

/// What is known of it.
#[derive(Debug)]
enum Seen {
    Messages {
        watched: Watched,
        /// The user knows of the trouble.
        is_told: bool,
    },
    Files(saver::Watched),
}

#[derive(Debug)]
pub(super) struct Exports {
    all: Vec<Export>,
    told: Arc<Told>,
    names: Names,
}

impl Exports {
    /// Starts the threads. `interfaces`: their names, by number.
    pub(super) fn start(opened: Opened, args: &FlowsArgs, interfaces: &[Interface]) -> Result<Self, Failure> {
        let (told, names) = (Arc::<Told>::default(), Names::default());
        interfaces.iter().for_each(|interface| names.add(interface.name.clone()));
        let settings = args.exported(interfaces);
        let start = |open: Open| {
            Ok(match open {
                Open::Socket(collector, socket) => {
                    let exporter = Exporter::new(encoder(&collector, &settings)?, socket, Arc::clone(&told));
                    let seen = Seen::Messages { watched: exporter.watched(), is_told: false };
                    Export { to: collector.to_string(), writing: Outlet::start(exporter)?, seen }
                }
                Open::Folder(folder, archive) => {
                    let to = folder.to_string();
                    let saver = Saver::new(folder, archive, names.clone());
                    let seen = Seen::Files(saver.watched());
                    Export { to, writing: Outlet::start(saver)?, seen }
                }
            })
        };
        let all = opened.0.into_iter().map(start).collect::<Result<_, Failure>>()?;
        Ok(Self { all, told, names })
    }

    /// Adds the next interface.
    pub(super) fn interface(&self, name: String) {
        self.names.add(name);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.all.iter().map(|export| export.writing.outlet())
    }

    /// Says what collectors are told of all flows, and of packets that are in none.
    pub(super) fn set_account(&self, flows: u64, ignored_packets: u64) {
        self.told.set(flows, ignored_packets);
    }

    pub(super) fn counts(&self) -> Vec<ExportCounts> {
        self.all.iter().map(|export| export.counts(export.writing.outlet().counts())).collect()
    }

    /// Says what the user does not know yet: that a collector cannot be reached, or files cannot be written. `first`: to be called before.
    pub(super) fn tell(&mut self, mut first: impl FnMut()) {
        for news in self.all.iter_mut().flat_map(Export::news) {
            first();
            say(&news);
        }
    }

    /// Waits until everything is sent, and says what went wrong since.
    pub(super) fn finish(self) -> Vec<ExportCounts> {
        let finish = |mut export: Export| {
            // They go on whatever happens to messages and files.
            let (flows, _never_fails) = export.writing.finish();
            export.news().into_iter().for_each(|news| say(&news));
            export.counts(flows)
        };
        self.all.into_iter().map(finish).collect()
    }
}

/// Tells the user.
fn say(news: &str) {
    style::say(format_args!("{}: {news}", style::stderr().yellow("notice")));
}

impl Export {
    /// Returns what the user does not know yet.
    fn news(&mut self) -> Vec<String> {
        let (watched, is_told) = match &mut self.seen {
            Seen::Messages { watched, is_told } => (watched, is_told),
            Seen::Files(watched) => return watched.news(),
        };
        let trouble = watched.trouble().filter(|_| !*is_told);
        *is_told |= trouble.is_some();
        let told = trouble.map(|trouble| match trouble.kind() {
            io::ErrorKind::ConnectionRefused => {
                format!("nobody listens at {}; flows are sent all the same", self.to)
            }
            _ => format!("cannot send flows to {}: {trouble}; what is not sent is counted", self.to),
        });
        told.into_iter().collect()
    }

    fn counts(&self, flows: OutletCounts) -> ExportCounts {
        let by = match &self.seen {
            Seen::Messages { watched, .. } => {
                let sent = watched.counts();
                By::Messages { exported: sent.exported, refusals: sent.refusals }
            }
            Seen::Files(watched) => By::Files { files: watched.counts() },
        };
        ExportCounts { to: self.to.clone(), flows, by }
    }
}

impl ExportCounts {
    /// Returns what was lost on the way.
    pub(super) fn loss(&self) -> Option<String> {
        let Self { to, flows, by } = self;
        let lost = units::grouped(flows.lost);
        match by {
            By::Messages { exported, .. } => (flows.lost + exported.unsent.records > 0).then(|| {
                let records = units::grouped(exported.unsent.records);
                format!("{lost} flows and {records} records were not sent to {to}")
            }),
            By::Files { .. } => (flows.lost > 0).then(|| format!("{lost} flows were not written to {to}")),
        }
    }

    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let Self { to, flows, by } = self;
        let (number, what, octets) = match by {
            By::Messages { exported, .. } => (exported.sent.messages, "messages", exported.sent.octets),
            By::Files { files } if files.finished == 1 => (1, "file", files.octets),
            By::Files { files } => (files.finished, "files", files.octets),
        };
        let (sent, number, octets) =
            (units::grouped(flows.sent), units::grouped(number), units::bytes(octets));
        let mut text = format!("{to}: {sent} flows in {number} {what}, {octets}");
        match by {
            By::Messages { exported, refusals } => {
                if *refusals > 0 {
                    let _infallible = write!(text, "; {} times nobody listened", units::grouped(*refusals));
                }
                if exported.refused.records > 0 {
                    let what = "directions of flows that NetFlow v5 cannot carry";
                    let _infallible = write!(text, "; {} {what}", units::grouped(exported.refused.records));
                }
            }
            By::Files { .. } if flows.queued > 0 => {
                let queued = units::grouped(flows.queued);
                let _infallible = write!(text, "; {queued} in a file that is not finished");
            }
            By::Files { .. } => {}
        }
        text.push('\n');
        if let Some(loss) = self.loss() {
            let _infallible = writeln!(text, "{}: {loss}", style::stderr().red("lost"));
        }
        text
    }
}
