//! Packets that rules decide about on their way to a sink (`--rules`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weir::filter::{FileFilter, Matcher};
use weir::reader::InterfaceStatistics;
use weir::who::Whose;
use weir::{Direction, FileInterface, Packet};
use weir_filter::interpret::{Metadata, Packet as PacketView};
use weir_render::{Ruling, harmless};
use weir_rules::{Decision, Evaluator, Limits, Matches, Programs};

use super::input::NETWORK_ORDER;
use super::sink::{End, Sink};
use super::{note, style};
use crate::failure::Failure;
use crate::link_types;
use crate::rules::{RuleFile, SetFile, summary};

/// The link type for which most rules are written.
const ETHERNET: u16 = 1;

/// Rules, and what they have seen.
#[derive(Debug)]
pub(super) struct Rules {
    file: RuleFile,
    filters: Vec<FileFilter>,
    evaluator: Evaluator,
    /// Whether link-layer headers in the byte order of the capturing host are in the other order; `None`: some are.
    pub(super) swapped: Option<bool>,
    /// Whether packets are wanted that are not captured, too.
    pub(super) wants_all: bool,
    /// Bytes to keep of each packet, once it is decided about.
    pub(super) snap_len: Option<u32>,
    /// Whether what was counted is printed at the end.
    pub(super) is_told: bool,
}

impl Rules {
    /// Reads a file with rules and all that they name.
    pub(super) fn read(
        path: &Path,
        sets: &[SetFile],
        netmask: Option<std::net::Ipv4Addr>,
    ) -> Result<Self, Failure> {
        // As a wrong filter does, wrong rules make the command line wrong.
        let usage = |failure: Failure| failure.status(2);
        let file = RuleFile::read(path, sets).map_err(usage)?;
        let (rules, filters) = file.rules(netmask).map_err(usage)?;
        let evaluator = Evaluator::new(rules, Limits::default());
        Ok(Self {
            file,
            filters,
            evaluator,
            swapped: Some(false),
            wants_all: true,
            snap_len: None,
            is_told: true,
        })
    }

    /// Returns the files that rules and their sets were read from.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        self.file.files()
    }

    /// Returns why some rules are interpreted; `None`: none is.
    pub(super) fn why_interpreted(&self) -> Option<String> {
        self.filters.iter().find_map(FileFilter::why_interpreted)
    }

    /// Returns the programs of all rules for packets of a link type.
    fn programs(&self, link_type: u16) -> Result<Programs, Failure> {
        let swapped = match self.swapped {
            Some(swapped) => swapped,
            None if NETWORK_ORDER.contains(&link_type) => false,
            None => {
                let failure = Failure::new(
                    "cannot apply rules to files of both byte orders together: their link-layer headers differ",
                );
                return Err(failure.hint("read each file alone"));
            }
        };
        let mut never = Vec::new();
        let mut matches: Vec<Matches> = Vec::new();
        for (rule, filter) in self.evaluator.rules().rules.iter().zip(&self.filters) {
            // What only Ethernet has is false elsewhere, so that the same rules are for all files.
            filter.expect([ETHERNET, link_type]);
            let matcher: Arc<Matcher> = filter
                .program(link_type, swapped)
                .map_err(|error| Failure::usage(self.file.render(&rule.in_file(error.error().clone()))))?;
            if matcher.never_matches() && link_type != ETHERNET {
                never.push(format!("`{}`", rule.name));
            }
            matches.push(Box::new(move |packet: &PacketView<'_>| matcher.matches(packet)));
        }
        if !never.is_empty() {
            let name = link_types::name(link_type);
            note(format_args!("no packet of link type {name} can match these rules: {}", never.join(", ")));
        }
        Ok(Programs::new(link_type, matches))
    }

    fn ruling(&self, decision: &Decision) -> Ruling {
        let rules = &self.evaluator.rules().rules;
        let learned = decision.learned.and_then(|rule| rules[rule].actions.learn.as_ref());
        let learned = learned.map(|learn| harmless(&format!("learn {}", learn.shortcut)));
        Ruling {
            rule: decision.rule.map(|rule| rules[rule].name.clone()),
            by_learned: decision.by_learned,
            capture: decision.capture,
            fate: harmless(&decision.fate.to_string()),
            also: learned
                .into_iter()
                .chain((!decision.logged.is_empty()).then(|| "log".to_owned()))
                .collect(),
        }
    }
}

/// Decides about packets, and passes on those that are wanted.
pub(super) struct Ruled<'a> {
    sink: &'a mut dyn Sink,
    rules: &'a mut Rules,
    interfaces: Vec<Interface>,
    /// To be called once there is code for the first interfaces.
    ready: Option<Box<dyn FnOnce() -> Result<(), Failure> + 'a>>,
}

struct Interface {
    programs: Programs,
    /// Losses before packets that were not passed on.
    lost: u64,
}

impl<'a> Ruled<'a> {
    pub(super) fn new(
        rules: &'a mut Rules,
        ready: impl FnOnce() -> Result<(), Failure> + 'a,
        sink: &'a mut dyn Sink,
    ) -> Self {
        Self { sink, rules, interfaces: Vec::new(), ready: Some(Box::new(ready)) }
    }
}

impl Sink for Ruled<'_> {
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End> {
        let programs = self.rules.programs(interface.link_type)?;
        self.interfaces.push(Interface { programs, lost: 0 });
        match self.rules.snap_len {
            Some(snap_len) => self.sink.interface(&weir::with!(interface.clone(), snap_len), fine),
            None => self.sink.interface(interface, fine),
        }
    }

    fn comments(&mut self, list: &[u8]) {
        self.sink.comments(list);
    }

    fn owned(&mut self, whose: &Whose) {
        self.sink.owned(whose);
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        if let Some(ready) = self.ready.take() {
            ready()?;
        }
        // The sink refuses packets of interfaces that were not described.
        let Some(interface) = self.interfaces.get_mut(packet.interface as usize) else {
            return self.sink.packet(packet);
        };
        let direction = packet.direction.map(|direction| direction == Direction::Out);
        let view = PacketView {
            data: packet.data,
            length: packet.original_len,
            meta: Metadata::of_direction(direction),
        };
        let decision = self.rules.evaluator.decide(&interface.programs, &view, packet.timestamp);
        if !decision.capture && !self.rules.wants_all {
            interface.lost += packet.lost_before;
            return Ok(());
        }
        let lost_before = packet.lost_before + std::mem::take(&mut interface.lost);
        let kept = self.rules.snap_len.map_or(packet.data.len(), |len| packet.data.len().min(len as usize));
        self.sink.judged(&self.rules.ruling(&decision));
        self.sink.packet(&weir::with!(*packet, data = &packet.data[..kept], lost_before))
    }

    fn left(&mut self, interface: u32, lost: u64) {
        self.sink.left(interface, lost);
    }

    fn statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), End> {
        self.sink.statistics(statistics)
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), End> {
        self.sink.block(kind, body)
    }

    fn pause(&mut self) -> Result<(), End> {
        self.sink.pause()
    }

    fn overwritten(&mut self, bytes: u64) -> Result<(), End> {
        self.sink.overwritten(bytes)
    }

    fn refused(&mut self) {
        self.sink.refused();
    }

    fn begin_again(&mut self) -> Result<(), End> {
        self.rules.evaluator.restart();
        self.interfaces.clear();
        self.sink.begin_again()
    }

    fn give_up(&mut self) {
        self.sink.give_up();
    }

    fn finish(&mut self) -> Result<(), End> {
        self.sink.finish()?;
        if self.rules.is_told {
            summary::table(&self.rules.evaluator).iter().for_each(|line| style::say(format_args!("{line}")));
        }
        for unkept in summary::unkept(&self.rules.evaluator, &Limits::default()) {
            note(format_args!("{unkept}"));
        }
        Ok(())
    }
}
