//! The packets of the files that are to be sent.

use std::path::PathBuf;

use weir::filter::FileFilter;
use weir::reader::{Item, ReadError};
use weir_traffic::Left;

use super::args::ReplayArgs;
use crate::failure::Failure;
use crate::read::{Choice, Input, Limits, Progress, Sort, Verdict};
use crate::rewriting::Editor;
use crate::sending::Snapped;

/// Files, and what is selected of them.
#[derive(Debug)]
pub(super) struct Source {
    files: Vec<PathBuf>,
    filter: Option<FileFilter>,
    limits: Limits,
    snapped: Snapped,
    editor: Editor,
    /// Opened ahead: the filter is compiled for it.
    input: Option<Input>,
    /// Damage in the files, once they were read.
    pub(super) damage: Vec<ReadError>,
}

/// What comes next in the files.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next<'a> {
    Packet(Found<'a>),
    /// Reading will wait for more.
    Pause,
}

/// A packet of the files.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<'a> {
    /// Nanoseconds since the Unix epoch.
    pub(super) time: Option<u64>,
    pub(super) link_type: u16,
    /// Bytes in the file, where it may have another link type.
    pub(super) bytes: usize,
    /// The capture kept only the first bytes.
    pub(super) snapped: bool,
    /// It is the second or a later segment of a packet that was cut.
    pub(super) later: bool,
    /// What of it should have changed and did not.
    pub(super) left: Left,
    /// What is to be sent; `None`: the packet is left out.
    pub(super) data: Option<&'a [u8]>,
}

impl Source {
    /// Opens the files.
    pub(super) fn open(
        args: &ReplayArgs,
        filter: Option<FileFilter>,
        editor: Editor,
    ) -> Result<Self, Failure> {
        let (files, limits) = (args.files.clone(), args.limits());
        let input = None;
        let mut source =
            Self { files, filter, limits, snapped: args.snapped, editor, input, damage: Vec::new() };
        source.input = Some(source.again()?);
        Ok(source)
    }

    fn again(&self) -> Result<Input, Failure> {
        Input::open(&self.files, Sort::Looked, self.filter.as_ref())
    }

    /// Returns a progress bar for the first reading of the files.
    pub(super) fn progress(&self) -> Progress {
        let bar = |input: &Input| Progress::new(input.meters(), input.size(), false);
        self.input.as_ref().map(bar).unwrap_or_default()
    }

    /// Reads the files from the beginning, until `take` returns false.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(Next<'_>) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        let mut input = match self.input.take() {
            Some(input) => input,
            None => self.again()?,
        };
        let mut choice = Choice::new(self.limits, input.meters());
        let (mut link_types, mut padded) = (Vec::new(), Vec::new());
        self.damage.clear();
        self.editor.restart();
        loop {
            let packet = match input.next() {
                Ok(Some(Item::Packet(packet))) => packet,
                Ok(Some(Item::Interface(_))) => {
                    link_types = input.interfaces().iter().map(|interface| interface.link_type).collect();
                    continue;
                }
                Ok(Some(Item::Pause)) if take(Next::Pause)? => continue,
                Ok(Some(Item::Statistics(_) | Item::Block { .. })) => continue,
                Ok(Some(Item::Pause) | None) => return Ok(()),
                Err(error) => {
                    self.damage.push(error);
                    continue;
                }
            };
            let (packet, last) = match choice.judge(packet) {
                Verdict::Take(packet) => (packet, false),
                Verdict::Last(packet) => (packet, true),
                Verdict::Leave => continue,
            };
            let snapped = packet.data.len() < packet.original_len as usize;
            let data = self.snapped.apply(packet.data, packet.original_len, &mut padded);
            let time = Some(packet.timestamp).filter(|&time| time != 0);
            let link_type = link_types.get(packet.interface as usize).copied().unwrap_or(1);
            let bytes = packet.data.len();
            let left = Left::default();
            let found = Found { time, link_type, bytes, snapped, later: false, left, data: None };
            let Some(data) = data else {
                if !take(Next::Packet(found))? || last {
                    return Ok(());
                }
                continue;
            };
            let mut later = false;
            let edited = self.editor.edit(link_type, data, |link_type, data, left| {
                let later = std::mem::replace(&mut later, true);
                let found = Found { link_type, later, left, data: Some(data), ..found };
                match take(Next::Packet(found)) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(None),
                    Err(failure) => Err(Some(failure)),
                }
            });
            match edited {
                Ok(()) if last => return Ok(()),
                Ok(()) => {}
                Err(None) => return Ok(()),
                Err(Some(failure)) => return Err(failure),
            }
        }
    }
}
