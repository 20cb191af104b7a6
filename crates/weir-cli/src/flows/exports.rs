//! All collectors, directories and topics that flows are sent to, each with a thread of its own.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::BuildHasher as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use weir::CaptureStats;
use weir::flows::Counts;
use weir::flows::export::{Encoder, Exported, Interface, Settings};
use weir_service::archive::Archive;
use weir_service::connector::Connector;
use weir_service::launcher::{Launcher, Program};

use super::collector::{Collector, Transport};
use super::exporter::{Exporter, Told, Watched};
use super::folder::Folder;
use super::kafka::Kafka;
use super::line::{Datagrams, Ending, Line, LineCounts, News};
use super::message;
use super::outlet::{Outlet, OutletCounts, Writing};
use super::publisher::{self, KafkaCounts, Publisher};
use super::saver::{self, FileCounts, Names, Saver};
use super::stream::{Route, Stream};
use super::target::Target;
use crate::failure::Failure;
use crate::{companion, style, units};

/// How long the flows of files wait for a collector that is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines to collectors, directories, and topics, opened while that is permitted.
#[derive(Debug)]
pub(super) struct Opened {
    all: Vec<Open>,
    ending: Ending,
    reads_files: bool,
}

#[derive(Debug)]
enum Open {
    Line(Collector, Box<dyn Line>),
    Folder(Folder, Archive),
    Kafka(Kafka, Box<publisher::Opened>),
}

impl Opened {
    /// Opens them. `settings`: how flows are exported; `read`: the files that packets are read from, if they are; `archive`: prepares a
    /// directory for files; `launcher`: starts weir-export. Must be called before there are other threads.
    pub(super) fn open(
        to: &[Target],
        settings: &Settings,
        read: &[PathBuf],
        archive: impl Fn(&Path) -> Result<Archive, weir_service::Error>,
        launcher: impl Fn(Program) -> Result<Launcher, weir_service::Error>,
    ) -> Result<Self, Failure> {
        // What a format cannot do is told before anything is opened.
        for target in to {
            if let Target::Collector(collector) = target {
                encoder(collector, settings)?;
            }
        }
        let reads_files = !read.is_empty();
        let mut opened = Self { all: Vec::new(), ending: Ending::default(), reads_files };
        let routes = routes(to)?;
        for (target, route) in to.iter().zip(routes) {
            let open = match target {
                Target::Folder(folder) => Open::Folder(folder.clone(), archive(&folder.directory)?),
                Target::Kafka(kafka) => Open::Kafka(kafka.clone(), Box::new(publish(kafka, &launcher)?)),
                Target::Collector(collector) => {
                    let line: Box<dyn Line> = match route {
                        None if collector.transport == Transport::File => Box::new(collector.create(read)?),
                        None => Box::new(Datagrams::new(collector.open()?)),
                        Some(route) => Box::new(first(collector, route, reads_files, &opened.ending)?),
                    };
                    Open::Line(collector.clone(), line)
                }
            };
            opened.all.push(open);
        }
        Ok(opened)
    }
}

impl Opened {
    /// Lets signals end the work, as they end a capture.
    pub(super) fn on_signals(&self) -> Result<(), Failure> {
        let failed = |error| Failure::new(format_args!("cannot handle signals: {error}"));
        self.ending.on_signals().map_err(failed)
    }
}

/// Returns the routes to all collectors, `None` for those without connections, and for directories.
fn routes(to: &[Target]) -> Result<Vec<Option<Route>>, Failure> {
    let mut addresses = Vec::new();
    let mut ranges = Vec::new();
    for target in to {
        ranges.push(match target {
            Target::Collector(collector)
                if matches!(collector.transport, Transport::Tcp | Transport::Tls) =>
            {
                let begin = addresses.len();
                let tls = collector.tls()?;
                addresses.extend(collector.addresses()?);
                Some((begin..addresses.len(), tls))
            }
            _ => None,
        });
    }
    if addresses.is_empty() {
        return Ok(ranges.iter().map(|_| None).collect());
    }
    let connector = Arc::new(Connector::start(&addresses)?);
    let route = |(addresses, tls)| Route { connector: Arc::clone(&connector), addresses, tls };
    Ok(ranges.into_iter().map(|range| range.map(route)).collect())
}

/// Makes the first connection. A probe goes on without it, unless the collector is not what it should be; files can be read
/// again.
fn first(collector: &Collector, route: Route, reads_files: bool, ending: &Ending) -> Result<Stream, Failure> {
    let link = match route.connect(ending) {
        Ok(link) => Some(link),
        Err(error) if reads_files || error.kind() == io::ErrorKind::InvalidData => {
            return Err(collector.failed(&error));
        }
        Err(error) => {
            say(&format!("cannot send flows to {collector} yet: {error}; they wait, and weir tries again"));
            None
        }
    };
    Ok(Stream::new(route, link, reads_files.then_some(PATIENCE), ending.clone()))
}

/// Starts weir-export.
fn publish(
    kafka: &Kafka,
    launcher: impl Fn(Program) -> Result<Launcher, weir_service::Error>,
) -> Result<publisher::Opened, Failure> {
    let args = kafka.args(RandomState::new().hash_one(0));
    let program = Program { path: companion::find()?, arguments: args.words(), directory: args.spool };
    let failed = |error| Failure::new(format_args!("cannot send flows to {kafka}: {error}"));
    publisher::Opened::new(launcher(program)?).map_err(failed)
}

fn encoder(collector: &Collector, settings: &Settings) -> Result<Encoder, Failure> {
    Encoder::new(collector.format, &collector.adapted(settings))
        .map_err(|error| Failure::usage(error.to_string()))
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
        /// Connections made, if there are any.
        #[serde(skip_serializing_if = "Option::is_none")]
        connections: Option<u64>,
        /// Connections that were not made, or times that the collector's host said that nobody listens.
        refusals: u64,
    },
    Files {
        files: FileCounts,
    },
    Kafka {
        kafka: KafkaCounts,
    },
}

/// Flows on their way to a collector, to files or to Kafka.
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
        /// The user knows that datagrams do not arrive.
        is_told: bool,
    },
    Files(saver::Watched),
    Kafka(publisher::Watched),
}

#[derive(Debug)]
pub(super) struct Exports {
    all: Vec<Export>,
    told: Arc<Told>,
    names: Names,
    ending: Ending,
}

impl Exports {
    /// Starts the threads. `interfaces`: none if they are not known.
    pub(super) fn start(
        opened: Opened,
        mut settings: Settings,
        interfaces: &[weir::Interface],
    ) -> Result<Self, Failure> {
        let (told, names) = (Arc::<Told>::default(), Names::default());
        interfaces.iter().for_each(|interface| names.add(interface.name.clone()));
        let named = |interface: &weir::Interface| Interface {
            // 0 would be none.
            index: interface.id + 1,
            name: interface.name.clone(),
            description: interface.description.clone().unwrap_or_default(),
        };
        settings.interfaces = interfaces.iter().map(named).collect();
        let (reads_files, ending) = (opened.reads_files, opened.ending);
        let start = |open: Open| {
            Ok(match open {
                Open::Line(collector, line) => {
                    let exporter = Exporter::new(encoder(&collector, &settings)?, line, Arc::clone(&told));
                    let seen = Seen::Messages { watched: exporter.watched(), is_told: false };
                    Export { to: collector.to_string(), writing: Outlet::start(exporter)?, seen }
                }
                Open::Folder(folder, archive) => {
                    let to = folder.to_string();
                    let saver = Saver::new(folder, archive, names.clone());
                    let seen = Seen::Files(saver.watched());
                    Export { to, writing: Outlet::start(saver)?, seen }
                }
                Open::Kafka(kafka, opened) => {
                    let to = kafka.to_string();
                    let encoder = message::Encoder::new(kafka.form, settings.domain, settings.sampling);
                    let (names, ending) = (names.clone(), ending.clone());
                    let publisher = Publisher::new(to.clone(), *opened, encoder, names, ending, reads_files);
                    let seen = Seen::Kafka(publisher.watched());
                    Export { to, writing: Outlet::start(publisher)?, seen }
                }
            })
        };
        let all = opened.all.into_iter().map(start).collect::<Result<_, Failure>>()?;
        Ok(Self { all, told, names, ending })
    }

    /// Adds the next interface.
    pub(super) fn interface(&self, name: String) {
        self.names.add(name);
    }

    /// Whether a signal has come, if those of files were [asked for](Opened::on_signals).
    pub(super) fn is_interrupted(&self) -> bool {
        self.ending.is_interrupted()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn outlets(&self) -> impl Iterator<Item = &Outlet> {
        self.all.iter().map(|export| export.writing.outlet())
    }

    /// Says what collectors are told of all flows and packets.
    pub(super) fn set_account(&self, counts: &Counts) {
        self.told.set(counts, 0);
    }

    /// The same, of a capture.
    pub(super) fn set_account_of(&self, stats: &CaptureStats, counts: &Counts) {
        let captured = stats.total();
        self.told.set(counts, captured.lost + captured.errors);
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

    /// Waits until everything is sent, or cannot be sent, and says what went wrong since.
    pub(super) fn finish(self) -> Vec<ExportCounts> {
        self.ending.begin();
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
        let to = &self.to;
        let (watched, is_told) = match &mut self.seen {
            Seen::Messages { watched, is_told } => (watched, is_told),
            Seen::Files(watched) => return watched.news(),
            Seen::Kafka(watched) => return watched.news(),
        };
        let told = watched.news().and_then(|news| match news {
            News::Disconnected(error) => {
                Some(format!("no connection to {to}: {error}; flows wait, and weir tries again"))
            }
            News::Connected => Some(format!("connected to {to}")),
            _ if std::mem::replace(is_told, true) => None,
            News::NobodyListens => Some(format!("nobody listens at {to}; flows are sent all the same")),
            News::Unsent(error) => {
                Some(format!("cannot send flows to {to}: {error}; what is not sent is counted"))
            }
        });
        told.into_iter().collect()
    }

    fn counts(&self, flows: OutletCounts) -> ExportCounts {
        let by = match &self.seen {
            Seen::Messages { watched, .. } => {
                let sent = watched.counts();
                let LineCounts { connections, refusals } = sent.line;
                By::Messages { exported: sent.exported, connections, refusals }
            }
            Seen::Files(watched) => By::Files { files: watched.counts() },
            Seen::Kafka(watched) => By::Kafka { kafka: watched.counts() },
        };
        ExportCounts { to: self.to.clone(), flows, by }
    }
}

impl ExportCounts {
    /// Returns the counts of what carries messages, if anything does.
    pub(super) fn line(&self) -> Option<LineCounts> {
        match self.by {
            By::Messages { connections, refusals, .. } => Some(LineCounts { connections, refusals }),
            By::Files { .. } | By::Kafka { .. } => None,
        }
    }

    /// Returns what was lost on the way.
    pub(super) fn loss(&self) -> Option<String> {
        let Self { to, flows, by } = self;
        let what = match by {
            By::Messages { .. } | By::Kafka { .. } => "sent",
            By::Files { .. } => "written",
        };
        let lost = match flows.lost {
            0 => return None,
            1 => "1 flow was".to_owned(),
            lost => format!("{} flows were", units::grouped(lost)),
        };
        Some(format!("{lost} not {what} to {to}"))
    }

    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let Self { to, flows, by } = self;
        let (number, what, octets) = match by {
            By::Messages { exported, .. } => (exported.sent.messages, "messages", exported.sent.octets),
            By::Files { files } if files.finished == 1 => (1, "file", files.octets),
            By::Files { files } => (files.finished, "files", files.octets),
            By::Kafka { kafka } => (kafka.messages, "messages", kafka.octets),
        };
        let (sent, number, octets) =
            (units::grouped(flows.sent), units::grouped(number), units::bytes(octets));
        let mut text = format!("{to}: {sent} flows in {number} {what}, {octets}");
        match by {
            By::Messages { exported, connections, refusals } => {
                if let Some(connections) = connections.filter(|connections| *connections != 1) {
                    let _infallible = write!(text, "; {} connections", units::grouped(connections));
                }
                if *refusals > 0 {
                    let what = match (connections.is_some(), *refusals) {
                        (true, 1) => "failed attempt to connect",
                        (true, _) => "failed attempts to connect",
                        (false, 1) => "time nobody listened",
                        (false, _) => "times nobody listened",
                    };
                    let _infallible = write!(text, "; {} {what}", units::grouped(*refusals));
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
            By::Kafka { kafka } => text += &kafka.text(),
        }
        text.push('\n');
        if let Some(loss) = self.loss() {
            let _infallible = writeln!(text, "{}: {loss}", style::stderr().red("lost"));
        }
        text
    }
}
