//! Packets that are rewritten on their way to a sink.

use weir::reader::InterfaceStatistics;
use weir::who::Whose;
use weir::{FileInterface, Packet};
use weir_render::Ruling;
use weir_savefile::pcapng::WHO;

use super::note;
use super::sink::{End, Sink};
use crate::rewriting::{Editor, Kept};

/// `epb_hash`, which no longer fits.
const HASH: u16 = 3;
/// `epb_flags`.
const FLAGS: u16 = 2;

/// What else says nothing of anybody: losses and queues.
const MEASURED: [u16; 3] = [FLAGS, 4, 6];

/// The longest packet that programs read.
const LONGEST: u32 = 262_144;

/// Changes packets, and passes them on.
pub(super) struct Changed<'a> {
    sink: &'a mut dyn Sink,
    editor: Editor,
    /// Bytes to keep of each packet: it is cut once it is changed, so that headers are whole before.
    snap_len: Option<u32>,
    interfaces: Vec<Interface>,
    /// How many interfaces the sink has.
    described: u32,
    /// The input has timestamps finer than microseconds.
    fine: bool,
    kept: Kept,
    /// What an anonymous copy does not have.
    without: Without,
    notes: Vec<u8>,
}

/// What was left out as it tells who has sent packets, or no longer fits them.
#[derive(Debug, Default)]
struct Without {
    descriptions: bool,
    comments: bool,
    blocks: bool,
    sockets: bool,
}

impl Without {
    fn say(&self) {
        let table = [
            (self.descriptions, "descriptions of interfaces and sections"),
            (self.comments, "comments and other options of packets"),
            (self.blocks, "names, secrets and custom blocks"),
            (self.sockets, "what is known of sockets, from which owners are found (--who)"),
        ];
        let all: Vec<&str> = table.iter().filter(|(there, _)| *there).map(|(_, what)| *what).collect();
        if !all.is_empty() {
            note(format_args!("the copy leaves out: {}", all.join(", ")));
        }
    }
}

/// An interface of the input, and its numbers in the output.
#[derive(Debug)]
struct Interface {
    described: FileInterface,
    number: u32,
    /// With the link type of packets that cannot have an Ethernet header, if there are any.
    unframed: Option<u32>,
}

impl<'a> Changed<'a> {
    /// `described`: the input says something of itself that an anonymous copy does not have.
    pub(super) fn new(
        editor: Editor,
        snap_len: Option<u32>,
        described: bool,
        sink: &'a mut dyn Sink,
    ) -> Self {
        let descriptions = described && editor.is_anonymous();
        Self {
            sink,
            editor,
            snap_len,
            interfaces: Vec::new(),
            described: 0,
            fine: false,
            kept: Kept::default(),
            without: Without { descriptions, ..Without::default() },
            notes: Vec::new(),
        }
    }

    fn describe(&mut self, interface: &FileInterface) -> Result<u32, End> {
        self.sink.interface(interface, self.fine)?;
        self.described += 1;
        Ok(self.described - 1)
    }

    /// Returns the number of the interface for packets of a link type that it does not have in the output.
    #[cold]
    fn unframed(&mut self, place: usize) -> Result<u32, End> {
        let described = self.interfaces[place].described.clone();
        let number = self.describe(&described)?;
        self.interfaces[place].unframed = Some(number);
        Ok(number)
    }
}

impl Sink for Changed<'_> {
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End> {
        self.fine = fine;
        let snap_len = match self.snap_len.unwrap_or(interface.snap_len) {
            0 => 0,
            len if self.snap_len.is_some() => len,
            len => len.max(len.saturating_add(self.editor.growth()).min(LONGEST)),
        };
        let mut described = weir::with!(interface.clone(), snap_len);
        if self.editor.is_anonymous() {
            let FileInterface { link_type, snap_len, speed_bits, fcs_len, .. } = described;
            let bare = weir::with!(FileInterface::new(link_type), snap_len, speed_bits, fcs_len);
            self.without.descriptions |= bare != described;
            described = bare;
        }
        let link_type = self.editor.link_type(described.link_type);
        let number = self.describe(&weir::with!(described.clone(), link_type))?;
        self.interfaces.push(Interface { described, number, unframed: None });
        Ok(())
    }

    fn comments(&mut self, list: &[u8]) {
        match self.editor.is_anonymous() {
            true => self.without.comments |= !list.is_empty(),
            false => self.sink.comments(list),
        }
    }

    fn judged(&mut self, ruling: &Ruling) {
        self.sink.judged(ruling);
    }

    fn owned(&mut self, whose: &Whose) {
        self.sink.owned(whose);
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let place = packet.interface as usize;
        // The sink refuses packets of interfaces that were not described.
        let Some(interface) = self.interfaces.get(place) else { return self.sink.packet(packet) };
        let before = interface.described.link_type;
        let (usual, after) = (interface.number, self.editor.link_type(before));
        let mut odd = interface.unframed;
        if after != before && odd.is_none() && !self.editor.frames(before, packet.data) {
            odd = Some(self.unframed(place)?);
        }
        let Self { sink, editor, snap_len, kept, notes, without, .. } = self;
        let mut later = false;
        let anonymous = editor.is_anonymous();
        editor.edit(before, packet.data, |link_type, data, left| {
            let later = std::mem::replace(&mut later, true);
            kept.add(left, later);
            notes.clear();
            // What is said of a packet is said of its first segment.
            let said = packet.notes.only(
                |code| match anonymous {
                    _ if later => code == FLAGS,
                    false => code != HASH,
                    true => {
                        without.comments |= !MEASURED.contains(&code);
                        MEASURED.contains(&code)
                    }
                },
                notes,
            );
            let lengths = (data.len(), packet.data.len());
            let original_len = match u32::try_from(lengths.0.abs_diff(lengths.1)) {
                Ok(more) if lengths.0 > lengths.1 => packet.original_len.saturating_add(more),
                Ok(less) => packet.original_len.saturating_sub(less),
                Err(_) => packet.original_len,
            };
            let kept = snap_len.map_or(data.len(), |len| data.len().min(len as usize));
            sink.packet(&weir::with!(
                *packet,
                data = &data[..kept],
                original_len,
                interface = odd.filter(|_| link_type != after).unwrap_or(usual),
                lost_before = if later { 0 } else { packet.lost_before },
                comment = packet.comment.filter(|_| !later && !anonymous),
                notes = said
            ))
        })
    }

    fn left(&mut self, interface: u32, lost: u64) {
        if let Some(interface) = self.interfaces.get(interface as usize) {
            self.sink.left(interface.number, lost);
        }
    }

    fn statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), End> {
        let Some(interface) = self.interfaces.get(statistics.interface as usize) else { return Ok(()) };
        let interface = interface.number;
        let comment = statistics.comment.clone().filter(|_| !self.editor.is_anonymous());
        self.without.comments |= comment != statistics.comment;
        self.sink.statistics(&InterfaceStatistics { interface, comment, ..statistics.clone() })
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), End> {
        if self.editor.is_anonymous() {
            self.without.blocks = true;
            return Ok(());
        }
        // Sockets have the addresses that packets had.
        if kind == WHO {
            self.without.sockets = true;
            return Ok(());
        }
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
        self.editor.restart();
        self.interfaces.clear();
        (self.described, self.kept) = (0, Kept::default());
        self.sink.begin_again()
    }

    fn give_up(&mut self) {
        self.sink.give_up();
    }

    fn finish(&mut self) -> Result<(), End> {
        self.sink.finish()?;
        std::mem::take(&mut self.kept).say();
        std::mem::take(&mut self.without).say();
        Ok(())
    }
}
