//! `weir read --stream`: what the two ends of one stream have sent, in order.
//!
//! ```text
//! packets -> Choice (which stream) -> HalfStream (TCP: in order, once) -> Printer
//! ```

mod args;
mod printer;
mod reassembly;
mod wanted;

use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;

use weir::{FileInterface, Packet};
use weir_packet::{Transport, protocol};

pub(crate) use self::args::StreamArgs;
use self::printer::Printer;
use self::reassembly::{HalfStream, MOST_WAITING, Piece};
use self::wanted::{Choice, Membership, Protocol, StreamHeader, Wanted};
use super::sink::{End, Sink};
use crate::failure::Failure;
use crate::{out, style, units};

/// Prints one stream.
pub(super) struct Stream<'a> {
    args: &'a StreamArgs,
    wanted: &'a Wanted,
    quiet: bool,
    /// The file for raw bytes; `None`: standard output.
    file: Option<&'a Path>,
    link_types: Vec<u16>,
    choice: Choice,
    printer: Printer<Box<dyn Write>>,
    /// The end that was seen first, and the other; `None`: nothing was seen.
    ends: Option<[SocketAddr; 2]>,
    halves: [HalfStream; 2],
    sums: [Sums; 2],
    /// Fragments between any two ends, which are left out.
    fragments: u64,
}

/// What a way was.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    bytes: u64,
    missing: u64,
    /// Bytes that came after they had been given up.
    late: u64,
    overfull: bool,
}

/// A segment or datagram.
struct Segment<'a> {
    told: StreamHeader,
    acknowledgement: u32,
    payload: &'a [u8],
    /// Length of the payload on the wire.
    sent: usize,
}

impl<'a> Stream<'a> {
    /// Prints to `file`, which is open already, or to standard output.
    pub(super) fn new(
        args: &'a StreamArgs,
        wanted: &'a Wanted,
        quiet: bool,
        file: Option<(&'a Path, File)>,
    ) -> Self {
        let (file, out): (_, Box<dyn Write>) = match file {
            Some((path, file)) => (Some(path), Box::new(file)),
            None => (None, Box::new(out::stdout())),
        };
        Self {
            args,
            file,
            wanted,
            quiet,
            link_types: Vec::new(),
            choice: Choice::new(wanted.clone()),
            printer: Printer::new(args.format(), out),
            ends: None,
            halves: Default::default(),
            sums: Default::default(),
            fragments: 0,
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) -> Result<(), End> {
        match self.choice.membership(&segment.told) {
            Membership::None => return Ok(()),
            Membership::Begins => {
                self.end_connection()?;
                self.ends = Some(segment.told.ends);
                self.put(|printer| printer.begin(&segment.told.ends))?;
            }
            Membership::Continues => {}
        }
        let way = usize::from(self.ends.is_some_and(|ends| ends != segment.told.ends));
        let Segment { told, acknowledgement, payload, sent } = *segment;
        let mut pieces = Vec::new();
        if self.wanted.protocol == Protocol::Udp {
            pieces.push((way, Piece::Bytes(payload.to_vec())));
            let missing = (sent - payload.len()) as u64;
            pieces.extend((missing > 0).then_some((way, Piece::Missing(missing))));
            self.print(pieces)?;
            // Each datagram has a line of its own.
            return self.put(Printer::end_line);
        }
        if told.ack {
            self.halves[1 - way].confirmed(acknowledgement, &mut |piece| pieces.push((1 - way, piece)));
        }
        if told.syn {
            self.halves[way].begin(told.sequence, &mut |piece| pieces.push((way, piece)));
        }
        // SYN takes a number of its own.
        let sequence = told.sequence.wrapping_add(u32::from(told.syn));
        self.halves[way].segment(sequence, payload, sent, &mut |piece| pieces.push((way, piece)));
        self.print(pieces)
    }

    fn print(&mut self, pieces: Vec<(usize, Piece)>) -> Result<(), End> {
        for (way, piece) in pieces {
            match &piece {
                Piece::Bytes(bytes) => self.sums[way].bytes += bytes.len() as u64,
                Piece::Missing(count) => self.sums[way].missing += count,
            }
            if self.args.has(way) {
                self.put(|printer| printer.piece(way, &piece))?;
            }
        }
        Ok(())
    }

    fn put(&mut self, print: impl FnOnce(&mut Printer<Box<dyn Write>>) -> io::Result<()>) -> Result<(), End> {
        print(&mut self.printer).map_err(|error| match self.file {
            Some(path) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::new(format_args!("cannot write to {}: {error}", path.display())).into()
            }
            _ => error.into(),
        })
    }

    /// Prints what is left of a connection.
    fn end_connection(&mut self) -> Result<(), End> {
        for (number, mut way) in std::mem::take(&mut self.halves).into_iter().enumerate() {
            let mut pieces = Vec::new();
            way.finish(&mut |piece| pieces.push((number, piece)));
            self.print(pieces)?;
            self.sums[number].late += way.late();
            self.sums[number].overfull |= way.overfull;
        }
        Ok(())
    }

    /// Says how much it was, and what is not in order.
    fn say(&self, ends: [SocketAddr; 2]) {
        if !self.quiet {
            let [there, back] = self.sums.map(|way| units::grouped(way.bytes));
            let [one, other] = ends;
            style::say(format_args!("{}: {there} bytes from {one}, {back} bytes from {other}", self.wanted));
        }
        let note = |text: String| style::say(format_args!("{}: {text}", style::stderr().yellow("note")));
        let sum = |of: fn(&Sums) -> u64| self.sums.iter().map(of).sum::<u64>();
        let (missing, late) = (sum(|way| way.missing), sum(|way| way.late));
        if missing > 0 {
            note(format!("{} bytes are missing", units::grouped(missing)));
        }
        if late > 0 {
            note(format!(
                "{} bytes came after they had been given up, and are left out",
                units::grouped(late)
            ));
        }
        if self.sums.iter().any(|way| way.overfull) {
            let most = units::bytes(MOST_WAITING as u64);
            note(format!("more than {most} waited for missing bytes, which were given up then"));
        }
    }
}

impl Sink for Stream<'_> {
    fn interface(&mut self, interface: &FileInterface, _fine: bool) -> Result<(), End> {
        self.link_types.push(interface.link_type);
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let link_type = self.link_types.get(packet.interface as usize).copied();
        let transport = link_type.and_then(|link_type| Transport::outermost(link_type, packet.data));
        let Some(transport) = transport else { return Ok(()) };
        let (number, parse): (_, fn(&Transport<'_>) -> Option<_>) = match self.wanted.protocol {
            Protocol::Tcp => (protocol::TCP, tcp),
            Protocol::Udp => (protocol::UDP, udp),
        };
        if transport.protocol != number {
            return Ok(());
        }
        if transport.is_fragment {
            let between = |ends: [SocketAddr; 2]| {
                let [one, other] = ends.map(|end| end.ip());
                [[one, other], [other, one]].contains(&[transport.source, transport.destination])
            };
            self.fragments += u64::from(self.ends.is_none_or(between));
            return Ok(());
        }
        match parse(&transport) {
            Some((told, acknowledgement, header, sent)) => {
                let payload = transport.bytes.get(header..).unwrap_or_default();
                let payload = &payload[..payload.len().min(sent)];
                self.segment(&Segment { told, acknowledgement, payload, sent })
            }
            None => Ok(()),
        }
    }

    fn pause(&mut self) -> Result<(), End> {
        self.put(Printer::flush)
    }

    fn finish(&mut self) -> Result<(), End> {
        self.end_connection()?;
        self.put(Printer::finish)?;
        if let Some(ends) = self.ends {
            self.say(ends);
        }
        if self.fragments > 0 {
            let fragments = match self.fragments {
                1 => "1 IP fragment is".to_owned(),
                many => format!("{} IP fragments are", units::grouped(many)),
            };
            style::say(format_args!(
                "{}: {fragments} left out, since weir does not join them",
                style::stderr().yellow("note")
            ));
        }
        if self.ends.is_some() {
            return Ok(());
        }
        let kind = if self.wanted.protocol == Protocol::Tcp { "TCP" } else { "UDP" };
        let failure = Failure::new(format_args!("cannot print {}: there is no such stream", self.wanted));
        Err(End::Failed(match (&self.wanted.which, self.choice.met) {
            (wanted::Which::Number(_), met @ 1..) => {
                let plural = if met == 1 { "stream was" } else { "streams were" };
                failure.hint(format!("{} {kind} {plural} seen, counted from 0", units::grouped(met as u64)))
            }
            _ => failure
                .hint(format!("to see the conversations: weir top -r FILE --ports {}", kind.to_lowercase())),
        }))
    }
}

/// Reads a TCP header: what it says, the acknowledgement number, its length, and the length of the payload.
fn tcp(transport: &Transport<'_>) -> Option<(StreamHeader, u32, usize, usize)> {
    let header = transport.bytes.get(..20)?;
    let number = |at: usize| header[at..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let length = usize::from(header[12] >> 4) * 4;
    let sent = transport.length.checked_sub(length).filter(|_| length >= 20)?;
    let flags = header[13];
    let told = StreamHeader {
        ends: ends(transport)?,
        sequence: number(4)?,
        syn: flags & 2 != 0,
        ack: flags & 16 != 0,
    };
    Some((told, number(8)?, length, sent))
}

/// Reads a UDP header.
fn udp(transport: &Transport<'_>) -> Option<(StreamHeader, u32, usize, usize)> {
    let header = transport.bytes.get(..8)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    // 0: a jumbogram, or a super-frame built by offloads.
    let length = if length >= 8 { length.min(transport.length) } else { transport.length };
    let told = StreamHeader { ends: ends(transport)?, sequence: 0, syn: false, ack: false };
    Some((told, 0, 8, length.checked_sub(8)?))
}

/// Reads the ports, and returns sender and receiver.
fn ends(transport: &Transport<'_>) -> Option<[SocketAddr; 2]> {
    let port = |at: usize| Some(u16::from_be_bytes(*transport.bytes.get(at..)?.first_chunk()?));
    Some([(transport.source, port(0)?).into(), (transport.destination, port(2)?).into()])
}
