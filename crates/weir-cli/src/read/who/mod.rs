//! `--who`: joins packets with what their file keeps of sockets.
//!
//! Packets may be in a file before what is known of their sockets, so a second input, the scout, reads the same files ahead. It is
//! opened like the first, so that both number interfaces alike.

mod args;
mod scout;

use std::path::{Path, PathBuf};

use weir::filter::FileFilter;
use weir::who::{Certainty, Owners, Whose, outbound};
use weir::{FileInterface, Packet};
use weir_packet::{Transport, protocol};
use weir_render::OwnersComment;

pub(crate) use self::args::WhoArgs;
use self::scout::{Place, Scout};
use super::input::Sort;
use super::note;
use super::sink::{End, Sink};
use crate::failure::Failure;
use crate::{style, units};

/// Whose packets are.
#[derive(Debug)]
pub(super) struct Who<'a> {
    args: &'a WhoArgs,
    writes: bool,
    owners: Owners,
    /// `None`: what is read cannot be read twice.
    scout: Option<Scout>,
    /// What was read so far.
    place: Place,
    name: String,
    /// It was told that nothing is known of sockets.
    warned: bool,
    interfaces: Vec<Interface>,
    with_process: Vec<u8>,
    with_comment: Vec<u8>,
}

/// An interface, by number.
#[derive(Debug, Default)]
struct Interface {
    link_type: u16,
    /// Losses before packets that were left out.
    lost: u64,
}

/// Protocols of which the kernel answers what no socket takes.
const OF_SOCKETS: [u8; 5] =
    [protocol::TCP, protocol::UDP, protocol::UDP_LITE, protocol::SCTP, protocol::DCCP];

impl<'a> Who<'a> {
    /// `None`: owners are not wanted. `sort` and `filter`: those of the input. `once`: it cannot be read ahead. `writes`: packets are
    /// written to a file.
    pub(super) fn open(
        args: &'a WhoArgs,
        files: &[PathBuf],
        (sort, filter): (Sort, Option<&FileFilter>),
        once: bool,
        writes: bool,
    ) -> Result<Option<Self>, Failure> {
        if !args.is_on() {
            return Ok(None);
        }
        let is_regular =
            |path: &PathBuf| path != Path::new("-") && path.metadata().is_ok_and(|data| data.is_file());
        let is_twice = !once && files.iter().all(is_regular);
        let scout = if is_twice { Some(Scout::open(files, sort, filter)?) } else { None };
        let name = match files {
            [file] => style::visible(&file.display().to_string()),
            files => format!("{} files", files.len()),
        };
        let (owners, interfaces) = (Owners::default(), Vec::new());
        let (with_process, with_comment) = (Vec::new(), Vec::new());
        let (place, warned) = (Place::default(), false);
        let mut who =
            Self { args, writes, owners, scout, place, name, warned, interfaces, with_process, with_comment };
        if let Some(scout) = &mut who.scout {
            while who.owners.blocks() == 0 && !scout.is_over {
                scout.read(&mut who.owners);
            }
            if who.owners.blocks() == 0 {
                return Err(Failure::new(format_args!("no owners in {}: captured without --who", who.name))
                    .hint("capture with weir capture --who -w FILE"));
            }
        }
        Ok(Some(who))
    }

    /// Adds an interface; the first is number 0.
    pub(super) fn interface(&mut self, number: u32, interface: &FileInterface) {
        let number = number as usize;
        if self.interfaces.len() <= number {
            self.interfaces.resize_with(number + 1, Interface::default);
        }
        self.interfaces[number].link_type = interface.link_type;
    }

    /// Forgets the interfaces: the next file follows.
    pub(super) fn next_file(&mut self) {
        self.interfaces.clear();
    }

    /// Takes in a block, unless the scout has.
    pub(super) fn block(&mut self, kind: u32, body: &[u8]) {
        self.place.blocks += 1;
        if self.scout.is_none() {
            self.owners.learn(kind, body);
        }
    }

    /// Returns whose packet it is; `None`: it is not wanted. The next one that is wanted tells of the losses before it.
    pub(super) fn judge(&mut self, packet: &mut Packet<'_>) -> Option<Whose> {
        self.place.packets += 1;
        match &mut self.scout {
            Some(scout) => scout.lead(self.place, &mut self.owners),
            None if self.owners.blocks() == 0 && !self.warned => {
                self.warned = true;
                note(format_args!("no owners in {} so far: perhaps it is captured without --who", self.name));
            }
            None => {}
        }
        let Some(interface) = self.interfaces.get_mut(packet.interface as usize) else {
            // No interface of the file: whoever writes it says so.
            return Some(Whose::unknown(outbound(packet)));
        };
        let mut whose = self.owners.whose(packet, interface.link_type);
        if self.scout.is_none() {
            doubt(&mut whose, packet, interface.link_type);
        }
        if !self.args.takes(&whose) {
            interface.lost += packet.lost_before;
            return None;
        }
        packet.lost_before += std::mem::take(&mut interface.lost);
        Some(whose)
    }

    /// Gives a packet to a sink, which is told whose it is.
    pub(super) fn give(
        &mut self,
        whose: &Whose,
        packet: &Packet<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), End> {
        if !self.args.is_told() {
            return sink.packet(packet);
        }
        sink.owned(whose);
        // A packet without a time can have no options.
        if !self.writes || packet.notes.is_timeless() {
            return sink.packet(packet);
        }
        let Self { with_process, with_comment, .. } = self;
        with_process.clear();
        with_comment.clear();
        let mut notes = packet.notes;
        if let Some(process) = whose.process(outbound(packet)) {
            notes = notes.with_process(process, with_process);
        }
        if self.args.comments() {
            notes = notes.with_comment(&OwnersComment(whose).to_string(), with_comment);
        }
        sink.packet(&weir::with!(*packet, notes))
    }

    /// Says what could not be read.
    pub(super) fn say(&self) {
        let unreadable = self.owners.unreadable();
        if unreadable > 0 {
            style::say(format_args!(
                "{}: {} could not be read: some owners are missing, or were those of an earlier socket",
                style::stderr().yellow("warning"),
                match unreadable {
                    1 => "a block about sockets".to_owned(),
                    many => format!("{} blocks about sockets", units::grouped(many)),
                }
            ));
        }
    }
}

/// The kernel has what no socket takes, but what is known of the socket may still come.
fn doubt(whose: &mut Whose, packet: &Packet<'_>, link_type: u16) {
    let is_of_sockets =
        || Transport::outermost(link_type, packet.data).is_some_and(|of| OF_SOCKETS.contains(&of.protocol));
    for owner in whose.sender.iter_mut().chain(&mut whose.receiver) {
        if owner.certainty == Certainty::Kernel && is_of_sockets() {
            owner.certainty = Certainty::Unknown;
        }
    }
}
