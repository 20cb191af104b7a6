//! All collectors that flows are sent to, and files, each with a thread of its own.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use weir::CaptureStats;
use weir::flows::Counts;
use weir::flows::export::{Encoder, Exported, Interface, Settings};
use weir_service::connector::Connector;

use super::collector::{Collector, Transport};
use super::exporter::{Exporter, Told, Watched};
use super::line::{Datagrams, Ending, Line, LineCounts, News};
use super::outlet::{Outlet, OutletCounts, Writing};
use super::stream::{Route, Stream};
use crate::failure::Failure;
use crate::{style, units};

/// How long the flows of files wait for a collector that is gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lines to collectors, opened while that is permitted.
#[derive(Debug)]
pub(super) struct Lines {
    all: Vec<(Collector, Box<dyn Line>)>,
    ending: Ending,
}

impl Lines {
    /// Opens them. `settings`: how flows are exported; `read`: the files that packets are read from, if they are. Must be called before there
    /// are other threads.
    pub(super) fn open(to: &[Collector], settings: &Settings, read: &[PathBuf]) -> Result<Self, Failure> {
        // What a format cannot do is told before anything is opened.
        for collector in to {
            encoder(collector, settings)?;
        }
        let mut opened = Self { all: Vec::new(), ending: Ending::default() };
        let routes = routes(to)?;
        for (collector, route) in to.iter().zip(routes) {
            let line: Box<dyn Line> = match route {
                None if collector.transport == Transport::File => Box::new(collector.create(read)?),
                None => Box::new(Datagrams::new(collector.open()?)),
                Some(route) => Box::new(first(collector, route, !read.is_empty(), &opened.ending)?),
            };
            opened.all.push((collector.clone(), line));
        }
        Ok(opened)
    }
}

/// Returns the routes to all collectors, `None` for those without connections.
fn routes(collectors: &[Collector]) -> Result<Vec<Option<Route>>, Failure> {
    let mut addresses = Vec::new();
    let mut ranges = Vec::new();
    for collector in collectors {
        ranges.push(match collector.transport {
            Transport::Udp | Transport::File => None,
            Transport::Tcp | Transport::Tls => {
                let begin = addresses.len();
                let tls = collector.tls()?;
                addresses.extend(collector.addresses()?);
                Some((begin..addresses.len(), tls))
            }
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
    /// Of messages, and what they have in them.
    exported: Exported,
    /// Connections made, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) connections: Option<u64>,
    /// Connections that were not made, or times that the collector's host said that nobody listens.
    pub(super) refusals: u64,
}

/// Flows on their way to a collector.
#[derive(Debug)]
struct Export {
    to: String,
    writing: Writing,
    watched: Watched,
    /// The user knows that datagrams do not arrive.
    is_told: bool,
}

#[derive(Debug)]
pub(super) struct Exports {
    all: Vec<Export>,
    told: Arc<Told>,
    ending: Ending,
}

impl Exports {
    /// Starts the threads. `interfaces`: none if they are not known.
    pub(super) fn start(
        lines: Lines,
        mut settings: Settings,
        interfaces: &[weir::Interface],
    ) -> Result<Self, Failure> {
        let told = Arc::<Told>::default();
        let named = |interface: &weir::Interface| Interface {
            // 0 would be none.
            index: interface.id + 1,
            name: interface.name.clone(),
            description: interface.description.clone().unwrap_or_default(),
        };
        settings.interfaces = interfaces.iter().map(named).collect();
        let start = |(collector, line): (Collector, Box<dyn Line>)| {
            let exporter = Exporter::new(encoder(&collector, &settings)?, line, Arc::clone(&told));
            let watched = exporter.watched();
            Ok(Export {
                to: collector.to_string(),
                writing: Outlet::start(exporter)?,
                watched,
                is_told: false,
            })
        };
        let all = lines.all.into_iter().map(start).collect::<Result<_, Failure>>()?;
        Ok(Self { all, told, ending: lines.ending })
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

    /// The same, of a capture.
    pub(super) fn set_account_of(&self, stats: &CaptureStats, counts: &Counts) {
        let captured = stats.total();
        let ignored = captured.lost + captured.errors + counts.not_ip + counts.cut;
        self.set_account(counts.flows + counts.all_ended(), ignored);
    }

    pub(super) fn counts(&self) -> Vec<ExportCounts> {
        self.all.iter().map(|export| export.counts(export.writing.outlet().counts())).collect()
    }

    /// Says what the user does not know yet: that a collector cannot be reached. `first`: to be called before.
    pub(super) fn tell(&mut self, mut first: impl FnMut()) {
        for news in self.all.iter_mut().filter_map(Export::news) {
            first();
            say(&news);
        }
    }

    /// Waits until everything is sent, or cannot be sent, and says what went wrong since.
    pub(super) fn finish(self) -> Vec<ExportCounts> {
        self.ending.begin();
        let finish = |mut export: Export| {
            // An exporter goes on whatever happens to its messages.
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
    fn news(&mut self) -> Option<String> {
        let to = &self.to;
        match self.watched.news()? {
            News::Disconnected(error) => {
                Some(format!("no connection to {to}: {error}; flows wait, and weir tries again"))
            }
            News::Connected => Some(format!("connected to {to}")),
            _ if std::mem::replace(&mut self.is_told, true) => None,
            News::NobodyListens => Some(format!("nobody listens at {to}; flows are sent all the same")),
            News::Unsent(error) => {
                Some(format!("cannot send flows to {to}: {error}; what is not sent is counted"))
            }
        }
    }

    fn counts(&self, flows: OutletCounts) -> ExportCounts {
        let sent = self.watched.counts();
        let LineCounts { connections, refusals } = sent.line;
        ExportCounts { to: self.to.clone(), flows, exported: sent.exported, connections, refusals }
    }
}

impl ExportCounts {
    /// Returns what was lost on the way.
    pub(super) fn loss(&self) -> Option<String> {
        let Self { to, flows, .. } = self;
        (flows.lost > 0).then(|| format!("{} flows were not sent to {to}", units::grouped(flows.lost)))
    }

    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let Self { to, flows, exported, connections, refusals } = self;
        let mut text = format!(
            "{to}: {} flows in {} messages, {}",
            units::grouped(flows.sent),
            units::grouped(exported.sent.messages),
            units::bytes(exported.sent.octets)
        );
        if let Some(connections) = connections.filter(|connections| *connections != 1) {
            let _infallible = write!(text, "; {} connections", units::grouped(connections));
        }
        if *refusals > 0 {
            let what = if connections.is_some() { "times not connected" } else { "times nobody listened" };
            let _infallible = write!(text, "; {} {what}", units::grouped(*refusals));
        }
        if exported.refused.records > 0 {
            let what = "directions of flows that NetFlow v5 cannot carry";
            let _infallible = write!(text, "; {} {what}", units::grouped(exported.refused.records));
        }
        text.push('\n');
        if let Some(loss) = self.loss() {
            let _infallible = writeln!(text, "{}: {loss}", style::stderr().red("lost"));
        }
        text
    }
}
