//! `--check`: checks the test traffic in the input.

use std::collections::HashMap;

use serde::Serialize;
use weir::reader::InterfaceStatistics;
use weir::{FileInterface, Packet};
use weir_render::json;

use super::sink::{End, Sink};
use crate::check::{Check, Findings};
use crate::failure::{self, Failure};
use crate::{out, style};

/// Checks packets, and prints the result.
#[derive(Debug)]
pub(super) struct Checked {
    check: Check,
    json: bool,
    link_types: Vec<u16>,
    losses: HashMap<u32, Losses>,
}

/// What an interface lost, as told by the packets and by the last statistics, which include losses on the card and after
/// the last packet.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    marked: u64,
    told: Option<u64>,
}

#[derive(Serialize)]
struct Object {
    r#type: &'static str,
    #[serde(flatten)]
    findings: Findings,
}

impl Checked {
    pub(super) fn new(check: Check, json: bool) -> Self {
        Self { check, json, link_types: Vec::new(), losses: HashMap::new() }
    }

    /// Fails unless everything arrived once and intact.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        self.findings().verdict()
    }

    fn findings(&self) -> Findings {
        let known = self.losses.values().any(|losses| losses.marked > 0 || losses.told.is_some());
        let lost = self.losses.values().map(|losses| losses.marked.max(losses.told.unwrap_or(0))).sum();
        self.check.findings(known.then_some(lost))
    }
}

impl Sink for Checked {
    fn interface(&mut self, interface: &FileInterface, _fine: bool) -> Result<(), End> {
        self.link_types.push(interface.link_type);
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        if packet.lost_before > 0 {
            self.losses.entry(packet.interface).or_default().marked += packet.lost_before;
        }
        self.check.packet(self.link_types[packet.interface as usize], packet);
        Ok(())
    }

    fn statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), End> {
        if let Some(dropped) = statistics.dropped {
            self.losses.entry(statistics.interface).or_default().told = Some(dropped);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), End> {
        let findings = self.findings();
        Ok(match self.json {
            true => failure::printed(json::line(out::stdout(), &Object { r#type: "check", findings })),
            false => out::print(findings.text(style::stdout()).as_bytes()),
        }?)
    }
}
