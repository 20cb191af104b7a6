//! Flows beside a capture: its packets are written or printed, and their flows go to collectors, files or Kafka.

use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, Command, FromArgMatches, Id};
use weir::flows::{Flow, Table, observation};
use weir::{CaptureStats, Chunk, Interface};
use weir_service::session::Prepared;

use super::exports::{self, Exports};
use super::options::{RecordArgs, TableArgs};
use super::outlet::{self, Outlet};
use super::summary::FlowCounts;
use super::target::Target;
use super::{BEHIND, LOOK, losses, tables};
use crate::args::OriginArgs;
use crate::failure::Failure;

/// The options of a capture.
#[derive(Debug, Args)]
pub(crate) struct BesideArgs {
    /// Count the flows of the packets captured, too, and send them to a collector or to Kafka, or write them to files, when they end; may be repeated.
    ///
    /// DESTINATION is that of weir flows --to. A flow has the packets that the capture delivers, behind its filter and its rules. See weir
    /// flows --help, and docs/flows.md.
    #[arg(
        hide_short_help = true,
        id = "to",
        long = "flows-to",
        value_name = "DESTINATION",
        help_heading = "Flows"
    )]
    to: Vec<Target>,

    #[command(flatten)]
    table: Beside<TableArgs>,

    #[command(flatten)]
    records: Beside<RecordArgs>,
}

/// Options that mean nothing without `--flows-to`, and which only the long help has.
#[derive(Clone, Debug)]
struct Beside<A>(A);

impl<A: Args> Args for Beside<A> {
    fn augment_args(command: Command) -> Command {
        let options = A::augment_args(Command::new("flows"));
        let own: Vec<Id> = options.get_arguments().map(|arg| arg.get_id().clone()).collect();
        A::augment_args(command).mut_args(|arg| match own.contains(arg.get_id()) {
            true => arg.requires("to").hide_short_help(true).help_heading("Flows"),
            false => arg,
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<A: FromArgMatches> FromArgMatches for Beside<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// What is opened before a capture, while that is permitted.
#[derive(Debug)]
pub(crate) struct Opened(exports::Opened);

impl BesideArgs {
    /// Checks rules that clap cannot express.
    pub(crate) fn check(&self, origin: &OriginArgs) -> Result<(), String> {
        match self.to.is_empty() || origin.has_times() {
            true => Ok(()),
            false => Err("--flows-to and --timestamps none: flows have times; use one of them".to_owned()),
        }
    }

    /// Opens the way to the collectors, and directories; `None`: there are none. Must be called before there are other threads.
    pub(crate) fn open(&self, origin: &OriginArgs, prepared: &Prepared) -> Result<Option<Opened>, Failure> {
        let settings = self.records.0.settings(origin);
        let archive = |directory: &_| prepared.archive(directory);
        let launcher = |program| prepared.launcher(program);
        let opened = || exports::Opened::open(&self.to, &settings, &[], archive, launcher).map(Opened);
        (!self.to.is_empty()).then(opened).transpose()
    }

    /// Returns the account of a capture that has not begun.
    pub(crate) fn nothing(&self) -> Option<FlowCounts> {
        let nothing = || FlowCounts::new(&weir::flows::Counts::default(), None, Vec::new());
        (!self.to.is_empty()).then(nothing)
    }

    /// Starts to count flows. `window`: how long packets are held back to be sorted.
    pub(crate) fn start(
        &self,
        opened: Opened,
        origin: &OriginArgs,
        interfaces: &[Interface],
        window: Duration,
    ) -> Result<Keeper, Failure> {
        let exports = Exports::start(opened.0, self.records.0.settings(origin), interfaces)?;
        Ok(Keeper {
            table: tables::table(&self.table.0.settings(1))?,
            link_types: interfaces.iter().map(|interface| interface.link_type).collect(),
            outlets: exports.outlets().cloned().collect(),
            exports,
            ended: Vec::new(),
            losses: losses::Watched::default(),
            is_idle: false,
            behind: BEHIND + window,
            look: Instant::now() + LOOK,
        })
    }
}

/// Keeps the flows of a capture.
#[derive(Debug)]
pub(crate) struct Keeper {
    table: Table,
    link_types: Vec<u16>,
    exports: Exports,
    outlets: Vec<Outlet>,
    /// Not handed over yet.
    ended: Vec<Flow>,
    losses: losses::Watched,
    /// No packet has come since the last look.
    is_idle: bool,
    /// How far behind the clock packets may be that come next.
    behind: Duration,
    /// Time of the next look for flows that are over, though no packet says so.
    look: Instant,
}

impl Keeper {
    /// Adds packets.
    pub(crate) fn add(&mut self, chunk: &Chunk) {
        let link_types = &self.link_types;
        let seen = chunk.packets().map(|packet| observation(&packet, link_types[packet.interface as usize]));
        self.table.add_all(seen, &mut |flow| self.ended.push(flow));
        self.is_idle &= chunk.is_empty();
        self.hand_over(Outlet::give);
    }

    fn hand_over(&mut self, give: fn(&Outlet, Vec<Flow>)) {
        if !self.ended.is_empty() {
            outlet::give_all(&self.outlets, std::mem::take(&mut self.ended), give);
        }
    }

    /// Ends flows that are over, if packets do not. `first`: to be called before the user is told something.
    pub(crate) fn tick(
        &mut self,
        now: Instant,
        stats: impl FnOnce() -> Result<CaptureStats, weir::Error>,
        first: impl FnMut(),
    ) -> Result<(), Failure> {
        if now < self.look {
            return Ok(());
        }
        self.look = now + LOOK;
        let (clock, stats) = (losses::now(), stats()?);
        self.losses.tell(clock, &stats, |loss| loss.tell(&mut self.table));
        // Where packets come, their times end flows; those that still wait may be older than the clock says.
        if std::mem::replace(&mut self.is_idle, true) {
            self.table.end_until(losses::before(self.behind), &mut |flow| self.ended.push(flow));
            self.hand_over(Outlet::give);
        }
        self.exports.set_account_of(&stats, &self.table.counts());
        self.exports.tell(first);
        Ok(())
    }

    /// Returns when to tick.
    pub(crate) fn due(&self) -> Instant {
        self.look
    }

    /// Returns the account so far.
    pub(crate) fn counts(&self) -> FlowCounts {
        FlowCounts::new(&self.table.counts(), None, self.exports.counts())
    }

    /// Ends all flows, and waits until they are sent.
    pub(crate) fn finish(mut self, stats: &CaptureStats) -> FlowCounts {
        self.losses.tell(losses::now(), stats, |loss| loss.tell(&mut self.table));
        self.table.end_all(&mut |flow| self.ended.push(flow));
        self.hand_over(Outlet::give_patiently);
        self.exports.set_account_of(stats, &self.table.counts());
        FlowCounts::new(&self.table.counts(), None, self.exports.finish())
    }
}
