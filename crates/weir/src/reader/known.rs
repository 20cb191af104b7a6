//! What a file has said about itself so far.

use std::borrow::Cow;

use weir_savefile::decode::{self, Doubt, Fault, Found, Header, TimeUnit};
use weir_savefile::pcap::Resolution;
use weir_savefile::{options, pcapng};

use super::Seen;
use super::error::{Oddity, Warning};
use crate::{FileInterface, who};

/// A section of a pcapng file, written by one run of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Section {
    /// The hardware of the capturing machine.
    pub hardware: Option<String>,
    /// The operating system of that machine.
    pub os: Option<String>,
    /// The program that wrote the section.
    pub user_application: Option<String>,
    /// The first comment.
    pub comment: Option<String>,
    /// Other options that can be copied to another file, in native byte order, without the end marker.
    pub more: Vec<u8>,
}

impl Section {
    /// Returns all comments.
    pub fn comments(&self) -> impl Iterator<Item = &str> {
        self.comment.as_deref().into_iter().chain(options::comments(&self.more))
    }

    /// Adds what differs in another section, for a file made of both.
    pub fn add(&mut self, other: &Self) {
        self.hardware = self.hardware.take().or_else(|| other.hardware.clone());
        self.os = self.os.take().or_else(|| other.os.clone());
        self.user_application = self.user_application.take().or_else(|| other.user_application.clone());
        if (&self.comment, &self.more) != (&other.comment, &other.more) {
            if let Some(comment) = &other.comment {
                options::append_comment(&mut self.more, comment);
            }
            self.more.extend_from_slice(&other.more);
        }
    }
}

/// The counters of an interface at some time, as stored in the file. Times are nanoseconds since the Unix epoch,
/// counters are packets since the start of the capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceStatistics {
    /// The number of the interface.
    pub interface: u32,
    /// Time of the counters.
    pub timestamp: u64,
    /// Start of the capture.
    pub start: Option<u64>,
    /// End of the capture.
    pub end: Option<u64>,
    /// Packets received by the interface.
    pub received: Option<u64>,
    /// Packets dropped for lack of space.
    pub dropped: Option<u64>,
    /// Packets accepted by the filter.
    pub accepted: Option<u64>,
    /// Packets dropped by the operating system.
    pub dropped_by_os: Option<u64>,
    /// Packets delivered to the program.
    pub delivered: Option<u64>,
    /// A comment.
    pub comment: Option<String>,
}

/// What a reader remembers. The decoder limits how much that can be.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) interfaces: Vec<FileInterface>,
    /// Details by interface.
    pub(super) details: Vec<Details>,
    pub(super) sections: Vec<Section>,
    pub(super) warnings: Vec<Warning>,
    /// The first skipped block, its position, and the number of skipped blocks.
    pub(super) left_out: Option<(Fault, u64, u64)>,
    /// The last block in the other byte order, converted to native order, or with other numbers of interfaces.
    pub(super) turned: Vec<u8>,
    /// Number of interfaces in earlier sections.
    base: u32,
}

/// Properties of an interface that [`FileInterface`] lacks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Details {
    pub(super) time: TimeUnit,
}

impl Known {
    /// Number of interfaces so far.
    pub(super) fn count(&self) -> u32 {
        // Bounded by `decode::MOST_INTERFACES`.
        u32::try_from(self.interfaces.len()).unwrap_or(u32::MAX)
    }

    /// Stores what was found at `position`, and returns what the caller should see.
    pub(super) fn keep(&mut self, bytes: &[u8], found: Found<'_>, position: u64) -> Option<Seen> {
        let (doubt, seen) = match found {
            Found::Packet(packet) => return Some(Seen::Packet(packet)),
            Found::Header(header, doubt) => {
                self.header(header);
                (doubt, None)
            }
            Found::Section(section, more, doubt) => {
                self.base = self.count();
                self.sections.push(own(section, more));
                (doubt, None)
            }
            Found::Interface { description, time, more, doubt } => {
                self.interfaces.push(FileInterface { more, ..FileInterface::described(*description) });
                self.details.push(Details { time });
                (doubt, Some(Seen::Interface))
            }
            Found::Statistics(statistics, doubt) => {
                (doubt, Some(Seen::Statistics(Box::new(InterfaceStatistics::of(statistics)))))
            }
            Found::Block { kind, body, order } => {
                match decode::to_native(kind, &bytes[body.clone()], order) {
                    Some(native) => match (self.renumbered(kind, &native), native) {
                        (None, Cow::Borrowed(_)) => (None, Some(Seen::Block { kind, body: Some(body) })),
                        (turned, native) => {
                            self.turned = turned.unwrap_or_else(|| native.into_owned());
                            (None, Some(Seen::Block { kind, body: None }))
                        }
                    },
                    None => (Some(Doubt::Foreign { kind, order }), None),
                }
            }
            Found::Damaged(fault) => {
                self.warn(Oddity::LeftOut(fault), position);
                let (_, _, blocks) = self.left_out.get_or_insert((fault, position, 0));
                *blocks += 1;
                (None, None)
            }
        };
        if let Some(doubt) = doubt {
            self.warn(Oddity::Doubt(doubt), position);
        }
        seen
    }

    /// Returns the body of a block with interfaces numbered over all sections; `None`: it is the same.
    fn renumbered(&self, kind: u32, body: &[u8]) -> Option<Vec<u8>> {
        let base = Some(self.base).filter(|base| *base > 0)?;
        who::renumbered(kind, body, |number| number.checked_add(base))
    }

    /// Adds the single, unnamed interface of a pcap file.
    fn header(&mut self, header: Header) {
        let time = match header.variant.resolution {
            Resolution::Micro => TimeUnit::MICROSECONDS,
            Resolution::Nano => TimeUnit::NANOSECONDS,
        };
        self.interfaces.push(FileInterface {
            link_type: header.link_type,
            snap_len: header.snap_len,
            fcs_len: header.fcs_len,
            ..Default::default()
        });
        self.details.push(Details { time });
    }

    /// Warns, or counts another occurrence of the same kind.
    #[cold]
    pub(super) fn warn(&mut self, what: Oddity, position: u64) {
        let kind = |what: &Oddity| match what {
            Oddity::Doubt(doubt) => (Some(std::mem::discriminant(doubt)), None),
            Oddity::LeftOut(fault) => (None, Some(std::mem::discriminant(fault))),
            Oddity::NeverMatches => (None, None),
        };
        if let Some(warning) = self.warnings.iter_mut().find(|warning| kind(&warning.what) == kind(&what)) {
            warning.times += 1;
        } else {
            self.warnings.push(Warning { what, position, times: 1 });
        }
    }
}

fn own(section: pcapng::SectionHeader<'_>, more: Vec<u8>) -> Section {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Section {
        hardware: owned(section.hardware),
        os: owned(section.os),
        user_application: owned(section.user_application),
        comment: owned(section.comment),
        more,
    }
}

impl FileInterface {
    fn described(description: pcapng::InterfaceDescription<'_>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Self {
            link_type: description.link_type,
            snap_len: description.snap_len,
            name: owned(description.name),
            description: owned(description.description),
            mac: description.mac,
            speed_bits: description.speed_bits,
            filter: owned(description.filter),
            os: owned(description.os),
            hardware: owned(description.hardware),
            fcs_len: description.fcs_len,
            comment: owned(description.comment),
            more: description.more.to_vec(),
        }
    }
}

impl InterfaceStatistics {
    fn of(statistics: pcapng::InterfaceStatistics<'_>) -> Self {
        Self {
            interface: statistics.interface,
            timestamp: statistics.timestamp,
            start: statistics.start,
            end: statistics.end,
            received: statistics.received,
            dropped: statistics.dropped,
            accepted: statistics.accepted,
            dropped_by_os: statistics.dropped_by_os,
            delivered: statistics.delivered,
            comment: statistics.comment.map(str::to_owned),
        }
    }
}
