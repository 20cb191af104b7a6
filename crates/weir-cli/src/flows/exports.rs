//! All collectors that flows are sent to, each with a thread of its own.

use std::fmt::Write as _;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use serde::Serialize;
use weir::CaptureStats;
use weir::flows::Counts;
use weir::flows::export::{Encoder, Exported, Interface, Settings};

use super::collector::Collector;
use super::exporter::{Exporter, Told, Watched};
use super::outlet::{Outlet, OutletCounts, Writing};
use crate::failure::Failure;
use crate::{style, units};

/// Sockets, opened while that is permitted.
#[derive(Debug)]
pub(super) struct Sockets(Vec<(Collector, UdpSocket)>);

impl Sockets {
    /// Opens them. `settings`: how flows are exported.
    pub(super) fn open(to: &[Collector], settings: &Settings) -> Result<Self, Failure> {
        let opened = to.iter().map(|collector| Ok((collector.clone(), collector.open()?)));
        let opened = Self(opened.collect::<Result<_, Failure>>()?);
        // What a format cannot do is told before anything is captured.
        for (collector, _) in &opened.0 {
            encoder(collector, settings)?;
        }
        Ok(opened)
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
    /// Of messages, and what they have in them.
    exported: Exported,
    /// Times that the collector's host said that nobody listens.
    refusals: u64,
}

/// Flows on their way to a collector.
#[derive(Debug)]
struct Export {
    to: String,
    writing: Writing,
    watched: Watched,
    /// The user knows of the trouble.
    is_told: bool,
}

#[derive(Debug)]
pub(super) struct Exports {
    all: Vec<Export>,
    told: Arc<Told>,
}

impl Exports {
    /// Starts the threads. `interfaces`: none if they are not known.
    pub(super) fn start(
        sockets: Sockets,
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
        let start = |(collector, socket): (Collector, UdpSocket)| {
            let exporter = Exporter::new(encoder(&collector, &settings)?, socket, Arc::clone(&told));
            let watched = exporter.watched();
            Ok(Export {
                to: collector.to_string(),
                writing: Outlet::start(exporter)?,
                watched,
                is_told: false,
            })
        };
        let all = sockets.0.into_iter().map(start).collect::<Result<_, Failure>>()?;
        Ok(Self { all, told })
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

    /// Waits until everything is sent, and says what went wrong since.
    pub(super) fn finish(self) -> Vec<ExportCounts> {
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
        let trouble = self.watched.trouble()?;
        let is_new = !std::mem::replace(&mut self.is_told, true);
        is_new.then(|| match trouble.kind() {
            io::ErrorKind::ConnectionRefused => {
                format!("nobody listens at {}; flows are sent all the same", self.to)
            }
            _ => format!("cannot send flows to {}: {trouble}; what is not sent is counted", self.to),
        })
    }

    fn counts(&self, flows: OutletCounts) -> ExportCounts {
        let sent = self.watched.counts();
        ExportCounts { to: self.to.clone(), flows, exported: sent.exported, refusals: sent.refusals }
    }
}

impl ExportCounts {
    /// Returns what was lost on the way.
    pub(super) fn loss(&self) -> Option<String> {
        let Self { to, flows, exported, .. } = self;
        (flows.lost + exported.unsent.records > 0).then(|| {
            format!(
                "{} flows and {} records were not sent to {to}",
                units::grouped(flows.lost),
                units::grouped(exported.unsent.records)
            )
        })
    }

    /// Returns a line for people.
    pub(super) fn text(&self) -> String {
        let Self { to, flows, exported, refusals } = self;
        let mut text = format!(
            "{to}: {} flows in {} messages, {}",
            units::grouped(flows.sent),
            units::grouped(exported.sent.messages),
            units::bytes(exported.sent.octets)
        );
        if *refusals > 0 {
            let _infallible = write!(text, "; {} times nobody listened", units::grouped(*refusals));
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
