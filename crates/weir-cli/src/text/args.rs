//! The format of lines on the command line: tcpdump's letters.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args};
use jiff::tz::TimeZone;
use weir_dissect::{Dissector, Dump, Options, Payload};
use weir_render::clock::{Clock, Style};
use weir_render::{Below, Column, Lines, Naming, Objects, Text};
use weir_service::resolver::Resolver;

use super::names::System;
use crate::style;

/// What is printed of a packet, live or from a file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Line format")]
pub(crate) struct LineArgs {
    /// Set the timestamps: -t none, -tt since 1970, -tttt with date.
    ///
    /// -ttt: since the previous packet; -ttttt: since the first packet.
    #[arg(short = 't', action = ArgAction::Count)]
    times: u8,

    /// Print the link-layer header.
    ///
    /// Hardware addresses, Ethernet type, VLAN tags.
    #[arg(short = 'e')]
    link: bool,

    /// Print more: TTL, checksums, payloads; -vv, -vvv: still more.
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print shorter lines; with -w alone, say less.
    ///
    /// Without -w this is tcpdump's -q: less of each protocol, and the summary as ever. Where -w leaves no lines to shorten, it is
    /// dumpcap's: weir capture prints only errors, losses and the final packet counts, in tcpdump's four lines, and weir
    /// read only errors and notes.
    #[arg(short, long = "quiet")]
    pub(crate) quick: bool,

    /// Print absolute TCP sequence numbers.
    #[arg(short = 'S', long = "absolute", alias = "absolute-tcp-sequence-numbers")]
    absolute: bool,

    /// Verify no checksums of IPv4, TCP and UDP.
    ///
    /// Packets that this host sends have none yet if the card computes them.
    #[arg(hide_short_help = true, short = 'K', long = "no-checksums", alias = "dont-verify-checksums")]
    unverified: bool,

    /// Print numbers of autonomous systems in BGP with a dot: 5.7 is 327687.
    #[arg(hide_short_help = true, short = 'b', long = "asdot")]
    asdot: bool,

    /// Print payloads as TYPE, whatever their ports.
    #[arg(hide_short_help = true, short = 'T', long = "payload", value_name = "TYPE", value_parser = payload_parser(), ignore_case = true)]
    payload: Option<Payload>,

    /// Number the lines.
    #[arg(short = '#', long)]
    number: bool,

    /// Print packets in hex; -xx: whole frames.
    #[arg(short = 'x', action = ArgAction::Count)]
    hex: u8,

    /// Print packets in hex and ASCII; -XX: whole frames.
    #[arg(short = 'X', action = ArgAction::Count)]
    hex_ascii: u8,

    /// Print packets in ASCII; -AA: whole frames.
    #[arg(short = 'A', action = ArgAction::Count)]
    ascii: u8,

    /// Print names of hosts and services instead of numbers.
    ///
    /// Host names come from /etc/hosts and from the DNS servers in /etc/resolv.conf. A line waits
    /// for them for a tenth of a second at most. A live capture does not print its own queries, but
    /// counts them. JSON objects contain numbers.
    #[arg(long, conflicts_with = "_numeric")]
    names: bool,

    /// Accepted for compatibility: addresses and ports are numeric unless there is --names.
    #[arg(short = 'n', action = ArgAction::Count, hide = true)]
    _numeric: u8,

    /// Accepted for compatibility: headers of mesh networks in frames of IEEE 802.11 are not read.
    #[arg(short = 'H', action = ArgAction::Count, hide = true)]
    _mesh: u8,

    /// Accepted for compatibility: lines are written whenever no more packets are waiting.
    #[arg(short = 'l', action = ArgAction::Count, hide = true)]
    _line_buffered: u8,
}

/// Accepts the names of payloads, in any case.
fn payload_parser() -> impl TypedValueParser<Value = Payload> {
    let of_name = |name: &str| Payload::ALL.into_iter().find(|(ours, _)| ours.eq_ignore_ascii_case(name));
    PossibleValuesParser::new(Payload::ALL.map(|(name, _)| name))
        .try_map(move |name| of_name(&name).map(|(_, payload)| payload).ok_or("no such payload"))
}

impl LineArgs {
    /// Checks rules that clap cannot express.
    pub(crate) fn check(&self) -> Result<(), String> {
        match [self.hex, self.hex_ascii, self.ascii].into_iter().filter(|&times| times > 0).count() {
            0 | 1 => Ok(()),
            _ => Err("-x, -X and -A cannot be combined".to_owned()),
        }
    }

    /// Returns whether text needs names.
    pub(crate) fn names(&self, json: bool) -> bool {
        self.names && !json
    }

    /// Returns the text that was asked for, with timestamps in local time, and with names if there are `hosts`. `own`: counts
    /// the packets of the process that finds them, which are not printed then.
    pub(crate) fn text(
        &self,
        json: bool,
        nanoseconds: bool,
        hosts: Option<Resolver>,
        own: Option<&Arc<AtomicU64>>,
        column: Column,
    ) -> Text {
        if json {
            return Text::Objects(Box::new(Objects::new(self.dissect())));
        }
        let clock = Clock::new(self.times(), nanoseconds, TimeZone::system());
        let lines = Lines::new(clock, Dissector::new(self.dissect()), self.below(), self.number, column);
        if let Some(why) = hosts.as_ref().and_then(Resolver::unreachable) {
            style::say(format_args!(
                "{}: no DNS server can be asked ({}): only hosts in /etc/hosts have names",
                style::stderr().yellow("note"),
                style::visible(why)
            ));
        }
        Text::Lines(Box::new(match hosts {
            Some(hosts) => {
                lines.with_names(Naming::new(Box::new(System::new(hosts)), self.dissect(), own.cloned()))
            }
            None => lines,
        }))
    }

    fn times(&self) -> Style {
        match self.times {
            0 => Style::Clock,
            1 => Style::None,
            2 => Style::Epoch,
            3 => Style::SincePrevious,
            4 => Style::Date,
            _ => Style::SinceFirst,
        }
    }

    fn dissect(&self) -> Options {
        Options {
            link: self.link,
            verbose: self.verbose,
            quick: self.quick,
            absolute: self.absolute,
            unverified: self.unverified,
            asdot: self.asdot,
            payload: self.payload,
            no_dump: self.hex > 0 || self.hex_ascii > 0,
        }
    }

    fn below(&self) -> Below {
        [(self.hex, Dump::Hex), (self.hex_ascii, Dump::HexAscii), (self.ascii, Dump::Ascii)]
            .into_iter()
            .find(|(times, _)| *times > 0)
            .map(|(times, dump)| (dump, times > 1))
    }
}
