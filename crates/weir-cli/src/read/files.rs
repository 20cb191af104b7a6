//! Writes packets to one capture file, or to several (`--split-by`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weir::parts::renumbered;
use weir::reader::{self, InterfaceStatistics, Reader, Run};
use weir::writer::{Compression, Format, WriteError, Writer, WriterOptions};
use weir::{CaptureStats, Direction, FileInterface, Packet};
use weir_savefile::pcapng::WHO;

use super::ends::{Cut, Ends};
use super::input::descriptors;
use super::sink::{End, Sink};
use super::split::{self, Sorter, Split};
use super::unheld::Unheld;
use super::{Hope, note};
use crate::failure::Failure;
use crate::{style, units, unsorted};

/// Most files open at once. Beyond that, the least recently written file is closed until there is more for it.
const MOST_OPEN: u64 = 128;

/// Most bytes of packets buffered in memory for all files together; after that, each file is written.
const MOST_GATHERED: usize = 64 << 20;

/// Most bytes of blocks kept for future files, so that no input can fill the memory.
const MOST_KEPT: usize = 16 << 20;

/// The output files.
pub(crate) struct Files {
    outputs: OutputFiles,
    sorter: Option<Sorter>,
    interfaces: Vec<FileInterface>,
    /// Whether pcap files keep nanoseconds; `None`: only if the input has any.
    nanoseconds: Option<bool>,
    /// Check that packets are in order; `None`: any order is fine.
    hope: Option<Hope>,
    unheld: Unheld,
    /// Comments of sections, which wait for an interface.
    comments: Vec<u8>,
    /// Packets without a timestamp in files that cannot express this.
    timeless: u64,
    /// Whether compressed pieces are written, too, when no more packets are waiting.
    eager: bool,
    /// Whether files are sorted completely.
    sorting: bool,
    ends: Ends,
}

/// The files.
struct OutputFiles {
    path: PathBuf,
    options: WriterOptions,
    /// Unfinished files.
    open: BTreeMap<usize, OutputFile>,
    /// The only file, to be started again.
    again: Option<Writer>,
    /// Those that have a descriptor, and the most that may.
    awake: Vec<usize>,
    most_awake: usize,
    /// The most files of all.
    most: u64,
    /// Bytes buffered in memory.
    gathered: usize,
    /// Name resolution and decryption secrets blocks, which every file needs.
    blocks: Vec<(u32, Vec<u8>)>,
    /// Number of packets so far, which shows the least recently written file.
    clock: u64,
    total: Total,
}

/// Totals of the output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Total {
    pub(crate) files: u64,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Packets truncated at the snap length of their interface.
    cut: u64,
    /// Packets truncated because other programs would not read them.
    too_long: u64,
    /// Packets with a timestamp too late for the format.
    too_late: u64,
}

struct OutputFile {
    writer: Writer,
    /// The number in this file of each interface in the input.
    numbers: Vec<Option<u32>>,
    /// The clock at the last write.
    used: u64,
}

impl Files {
    /// `nanoseconds`: whether pcap files keep them; `None`: only if the input has any. `split` may be with the most files.
    pub(crate) fn new(
        path: PathBuf,
        options: WriterOptions,
        nanoseconds: Option<bool>,
        split: Option<(Split, Option<u64>)>,
        hope: Option<Hope>,
    ) -> Self {
        let (sorter, most) = split.map(|(split, most)| (Sorter::new(split), most)).unzip();
        let most = most.flatten();
        let comments = options.section.as_ref().is_some_and(|section| section.comments().next().is_some());
        let outputs = OutputFiles {
            path,
            options,
            open: BTreeMap::new(),
            again: None,
            awake: Vec::new(),
            most_awake: descriptors(MOST_OPEN),
            most: sorter.as_ref().map_or(u64::MAX, |sorter| most.unwrap_or_else(|| sorter.usual_most())),
            gathered: 0,
            blocks: Vec::new(),
            clock: 0,
            total: Total::default(),
        };
        Self {
            outputs,
            sorter,
            interfaces: Vec::new(),
            nanoseconds,
            hope,
            unheld: Unheld { comments, ..Unheld::default() },
            comments: Vec::new(),
            timeless: 0,
            eager: false,
            sorting: false,
            ends: Ends::default(),
        }
    }

    /// Leaves out what the input says of packets that are not sorted, since they are now.
    pub(crate) fn sorting(self, sorting: bool) -> Self {
        Self { sorting, ..self }
    }

    /// Changes statistics for an input of which not everything is copied.
    pub(crate) fn cut(self, cut: Cut) -> Self {
        Self { ends: Ends::new(cut), ..self }
    }

    /// Writes compressed pieces, too, whenever no more packets are waiting.
    pub(crate) fn eager(self, eager: bool) -> Self {
        Self { eager, ..self }
    }

    /// Returns what is known to be written, after [`Sink::finish`] or [`Sink::give_up`].
    pub(crate) fn total(&self) -> Total {
        self.outputs.total
    }

    /// Returns the only file. Starts it if necessary, with all interfaces so far.
    fn whole(&mut self) -> Result<&mut OutputFile, End> {
        if !self.outputs.open.contains_key(&0) {
            let path = self.outputs.path.clone();
            // A pcap file takes its interfaces from packets: an interface without packets may have another link type.
            let known = if self.outputs.pcap() {
                &self.interfaces[..self.interfaces.len().min(1)]
            } else {
                &self.interfaces
            };
            self.outputs.begin(0, path, known)?;
        }
        Ok(self.outputs.open.get_mut(&0).expect("it was just begun"))
    }

    fn put_statistics(&mut self, statistics: InterfaceStatistics) -> Result<(), End> {
        let number = statistics.interface;
        let interface = self.interfaces.get(number as usize).cloned();
        let sorting = self.sorting;
        let output = self.whole()?;
        match interface {
            Some(interface) => {
                let interface = output.number(number, &interface)?;
                let comment =
                    statistics.comment.clone().filter(|comment| !(sorting && unsorted::is_mark(comment)));
                let statistics = InterfaceStatistics { interface, comment, ..statistics };
                Ok(output.writer.interface_statistics(&statistics)?)
            }
            None => Ok(()),
        }
    }
}

impl OutputFiles {
    fn pcap(&self) -> bool {
        self.options.format != Format::Pcapng
    }

    /// Returns the name for a new file.
    #[cold]
    fn name(&self, file: usize, sorter: Option<&Sorter>) -> PathBuf {
        let Some(sorter) = sorter else { return self.path.clone() };
        split::name(&self.path, &sorter.label(file))
    }

    /// Returns the size of the current file with one more packet, for files that follow each other.
    fn size_with(&self, packet: &Packet<'_>, interface: &FileInterface) -> u64 {
        let Some(output) = self.open.values().next() else { return 0 };
        let described = match output.numbers.get(packet.interface as usize) {
            Some(Some(_)) => 0,
            _ => room_of(interface),
        };
        let data = packet.data.len();
        output.writer.size() + described + if self.pcap() { data as u64 + 16 } else { room(packet, data) }
    }

    fn begin(&mut self, file: usize, path: PathBuf, known: &[FileInterface]) -> Result<(), End> {
        if self.total.files >= self.most {
            return Err(self.too_many().into());
        }
        let mut writer = match self.again.take() {
            Some(mut writer) => match writer.begin_again(known)? {
                true => writer,
                false => return Err(kept(&path).into()),
            },
            None => Writer::create(&path, known, &self.options)?,
        };
        let note = style::stderr().yellow("note");
        writer.warnings().iter().for_each(|warning| style::say(format_args!("{note}: {warning}")));
        for (kind, body) in &self.blocks {
            writer.block(*kind, body)?;
        }
        let numbers = (0..known.len()).map(|number| u32::try_from(number).ok()).collect();
        self.open.insert(file, OutputFile { writer, numbers, used: self.clock });
        self.total.files += 1;
        Ok(())
    }

    #[cold]
    fn too_many(&self) -> Failure {
        let (most, more) = (units::grouped(self.most), self.most.saturating_mul(10));
        Failure::new(format_args!(
            "cannot write file {}: --split-by may make {most} files; the packets before this one are written",
            units::grouped(self.most + 1)
        ))
        .hint(format!("--max-files {more} allows more"))
    }

    fn close(&mut self, file: usize) -> Result<(), End> {
        let Some(output) = self.open.remove(&file) else { return Ok(()) };
        self.awake.retain(|other| *other != file);
        self.gathered = self.gathered.saturating_sub(output.writer.buffered());
        self.total.cut += output.writer.packets_cut();
        self.total.too_long += output.writer.packets_too_long();
        self.total.too_late += output.writer.packets_too_late();
        let (written, result) = output.writer.finish(&CaptureStats::default());
        self.total.packets += written.packets;
        self.total.bytes += written.bytes;
        Ok(result?)
    }

    /// Closes all files in the order of their numbers.
    fn close_all(&mut self) -> Result<(), End> {
        while let Some((file, _)) = self.open.first_key_value() {
            self.close(*file)?;
        }
        Ok(())
    }

    /// Limits the number of open files, after a write to this one.
    #[inline]
    fn settle(&mut self, file: usize) -> Result<(), End> {
        let open = self.open.get(&file).is_some_and(|output| output.writer.is_open());
        if open && !self.awake.contains(&file) { self.woken(file) } else { Ok(()) }
    }

    #[cold]
    fn woken(&mut self, file: usize) -> Result<(), End> {
        if self.awake.len() >= self.most_awake {
            let used = |file: &usize| self.open.get(file).map(|output| output.used);
            let oldest = (0..self.awake.len()).min_by_key(|place| used(&self.awake[*place]));
            let oldest = self.awake.swap_remove(oldest.unwrap_or_default());
            self.open.get_mut(&oldest).map_or(Ok(()), |output| output.writer.suspend())?;
        }
        self.awake.push(file);
        Ok(())
    }

    /// Writes the buffered packets of each file.
    #[cold]
    fn scatter(&mut self) -> Result<(), End> {
        let waiting = |(file, output): (&usize, &OutputFile)| (output.writer.buffered() > 0).then_some(*file);
        let files: Vec<usize> = self.open.iter().filter_map(waiting).collect();
        for file in files {
            self.open.get_mut(&file).map_or(Ok(()), |output| output.writer.flush())?;
            self.settle(file)?;
        }
        self.gathered = 0;
        Ok(())
    }
}

/// The file cannot be truncated any more, although it could be when it was checked.
#[cold]
fn kept(path: &Path) -> Failure {
    let path = style::visible(&path.display().to_string());
    Failure::new(format_args!(
        "cannot rewrite {path} in time order: it is no longer a regular file; try another name"
    ))
    .hint("name another file with -w")
}

/// Returns the size of a pcapng record with `data` bytes of the packet; an upper limit if it has
/// [notes](Packet::notes), otherwise exact.
fn room(packet: &Packet<'_>, data: usize) -> u64 {
    let known = matches!(packet.direction, Some(Direction::In | Direction::Out));
    let said = match packet.notes.is_empty() {
        true => packet.comment.map_or(0, |comment| comment.len().next_multiple_of(4) + 4),
        false => packet.notes.as_bytes().len(),
    };
    let options = usize::from(known) * 8
        + usize::from(packet.lost_before > 0) * 12
        + usize::from(packet.queue > 0) * 8
        + said;
    let end = usize::from(options > 0) * 4;
    (data.next_multiple_of(4) + 32 + options + end) as u64
}

/// Returns an upper limit for the size of an interface description.
fn room_of(interface: &FileInterface) -> u64 {
    let FileInterface { name, description, filter, os, hardware, comment, more, .. } = interface;
    let texts = [name, description, filter, os, hardware, comment];
    let texts: usize = texts.into_iter().flatten().map(|text| text.len() + 8).sum();
    (texts + more.len() + 72) as u64
}

impl OutputFile {
    /// Returns the number in this file of an interface in the input.
    #[inline]
    fn number(&mut self, number: u32, interface: &FileInterface) -> Result<u32, End> {
        match self.numbers.get(number as usize) {
            Some(Some(own)) => Ok(*own),
            _ => self.learn(number as usize, interface),
        }
    }

    #[cold]
    fn learn(&mut self, number: usize, interface: &FileInterface) -> Result<u32, End> {
        let own = self.writer.interface(interface).map_err(|error| match error {
            WriteError::LinkTypes { .. } => {
                let hint = "use --format pcapng, or one file per interface: --split-by interface";
                Failure::new(error).hint(hint).into()
            }
            error => End::from(error),
        })?;
        if self.numbers.len() <= number {
            self.numbers.resize(number + 1, None);
        }
        self.numbers[number] = Some(own);
        Ok(own)
    }
}

impl Sink for Files {
    fn comments(&mut self, list: &[u8]) {
        self.comments.extend_from_slice(list);
    }

    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End> {
        // The start of the file has been written, so comments of later sections go to their first interface.
        let more = [&interface.more[..], &std::mem::take(&mut self.comments)].concat();
        let interface = &weir::with!(interface.clone(), more);
        if let Format::Pcap { nanoseconds } = &mut self.outputs.options.format {
            *nanoseconds = self.nanoseconds.unwrap_or(fine);
        }
        self.unheld.names |= interface.name.is_some();
        if let Some(sorter) = &mut self.sorter {
            sorter.interface(interface);
        }
        self.interfaces.push(interface.clone());
        let number = u32::try_from(self.interfaces.len() - 1).unwrap_or(u32::MAX);
        // An open pcapng file receives every interface at once, even one without packets.
        if !self.outputs.pcap()
            && self.sorter.is_none()
            && let Some(output) = self.outputs.open.get_mut(&0)
        {
            output.number(number, interface)?;
        }
        Ok(())
    }

    #[inline]
    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        if let Some(hope) = &mut self.hope
            && !hope.holds(packet.timestamp, packet.timestamp)
            && !packet.notes.is_timeless()
        {
            return Err(End::Unordered);
        }
        if self.outputs.pcap() {
            self.unheld.note(packet);
        }
        let Some(interface) = self.interfaces.get(packet.interface as usize) else {
            return Err(Failure::new(format_args!("interface {} is not described", packet.interface)).into());
        };
        let number = packet.interface;
        let file = match &mut self.sorter {
            None => 0,
            Some(sorter) => {
                sorter.file_of(packet, interface.link_type, || self.outputs.size_with(packet, interface))
            }
        };
        self.outputs.clock += 1;
        if !self.outputs.open.contains_key(&file) {
            let following = self.sorter.as_ref().is_some_and(Sorter::one_after_another);
            if following {
                self.outputs.close_all()?;
            }
            let path = self.outputs.name(file, self.sorter.as_ref());
            match self.sorter.is_none() && !self.outputs.pcap() {
                true => self.outputs.begin(file, path, &self.interfaces)?,
                false => {
                    self.outputs.begin(file, path, std::slice::from_ref(interface))?;
                    let output = self.outputs.open.get_mut(&file).expect("it was just begun");
                    // This is the only interface so far, whatever its number in the input.
                    output.numbers = vec![None; packet.interface as usize];
                    output.numbers.push(Some(0));
                }
            }
        }
        let output = self.outputs.open.get_mut(&file).expect("it is open");
        output.used = self.outputs.clock;
        let before = output.writer.buffered();
        let interface = output.number(packet.interface, interface)?;
        let renumbered;
        let packet = if interface == packet.interface {
            packet
        } else {
            renumbered = weir::with!(*packet, interface);
            &renumbered
        };
        self.timeless += u64::from(packet.notes.is_timeless() && !output.writer.can_omit_timestamp(packet));
        output.writer.packet(packet)?;
        self.ends.taken(number, 1, packet.lost_before);
        if self.sorter.is_some() {
            self.outputs.gathered = self.outputs.gathered + output.writer.buffered() - before;
            self.outputs.settle(file)?;
            if self.outputs.gathered > MOST_GATHERED {
                self.outputs.scatter()?;
            }
        }
        Ok(())
    }

    fn left(&mut self, interface: u32, lost: u64) {
        self.ends.left(interface, lost);
    }

    /// Writes what was taken, since nobody knows when more follows. Pieces that are compressed wait, unless `-U` asks for
    /// them: short ones are larger in the end.
    fn pause(&mut self) -> Result<(), End> {
        if self.outputs.options.compression != Compression::None && !self.eager {
            return Ok(());
        }
        if self.sorter.is_some() {
            return self.outputs.scatter();
        }
        // The reader of the output waits for its head.
        if self.interfaces.is_empty() { Ok(()) } else { Ok(self.whole()?.writer.flush()?) }
    }

    fn takes_runs(&self, input: &Reader) -> bool {
        self.sorter.is_none() && input.is_copied_to(self.outputs.options.format)
    }

    fn run(&mut self, run: &Run<'_>) -> Result<(), End> {
        if self.hope.as_mut().is_some_and(|hope| !hope.holds(run.first, run.last)) {
            return Err(End::Unordered);
        }
        self.outputs.clock += run.packets;
        self.ends.taken(run.interface, run.packets, 0);
        Ok(self.whole()?.writer.run(run)?)
    }

    fn statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), End> {
        self.unheld.statistics = true;
        // Counters of a whole capture would be wrong for a part of it.
        if self.outputs.pcap() || self.sorter.is_some() {
            return Ok(());
        }
        match self.ends.told(statistics.clone()) {
            Some(statistics) => self.put_statistics(statistics),
            None => Ok(()),
        }
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), End> {
        self.unheld.blocks |= kind != WHO;
        self.unheld.sockets |= kind == WHO;
        if self.outputs.pcap() {
            return Ok(());
        }
        let Some(body) = reader::to_copy(kind, body) else { return Ok(()) };
        // Files of a split number interfaces as their packets come.
        let number = |number| Some(number).filter(|_| self.sorter.is_none());
        let renumbered = renumbered(kind, &body, number);
        let body = renumbered.as_deref().unwrap_or(&body);
        if self.sorter.is_none() {
            return Ok(self.whole()?.writer.block(kind, body)?);
        }
        let kept: usize = self.outputs.blocks.iter().map(|(_, body)| body.len()).sum();
        if kept + body.len() <= MOST_KEPT {
            self.outputs.blocks.push((kind, body.to_vec()));
        }
        self.outputs.scatter()?;
        let files: Vec<usize> = self.outputs.open.keys().copied().collect();
        for file in files {
            self.outputs.open.get_mut(&file).map_or(Ok(()), |output| output.writer.block(kind, body))?;
            self.outputs.settle(file)?;
        }
        Ok(())
    }

    fn begin_again(&mut self) -> Result<(), End> {
        let OutputFiles { path, options, open, .. } = &mut self.outputs;
        let again = open.remove(&0).map(|output| output.writer);
        let new = Self::new(path.clone(), options.clone(), self.nanoseconds, None, None);
        *self = new.eager(self.eager).sorting(self.sorting).cut(self.ends.cut());
        self.outputs.again = again;
        Ok(())
    }

    fn give_up(&mut self) {
        // Each remaining file gets as much as possible.
        while !self.outputs.open.is_empty() {
            let _told_before = self.outputs.close_all();
        }
    }

    fn finish(&mut self) -> Result<(), End> {
        // Without any packets, write an empty file.
        if self.sorter.is_none() && self.outputs.total.files == 0 {
            self.whole()?;
        }
        for statistics in self.ends.last() {
            self.put_statistics(statistics)?;
        }
        self.outputs.close_all()?;
        if self.outputs.pcap() {
            self.unheld.say();
        } else if !self.comments.is_empty() {
            note(format_args!("comments of a section without interfaces are dropped"));
        }
        if self.outputs.total.cut > 0 {
            note(format_args!(
                "{} cut to the snap length of the interface, which cannot be raised later in a pipe or \
                 compressed file; -s 262144 keeps packets whole",
                units::packets(self.outputs.total.cut)
            ));
        }
        if self.outputs.total.too_long > 0 {
            style::say(format_args!(
                "{}: {} cut to 262144 bytes: other programs reject files with longer packets",
                style::stderr().yellow("warning"),
                units::packets(self.outputs.total.too_long)
            ));
        }
        if self.outputs.total.too_late > 0 {
            style::say(format_args!(
                "{}: {} after 2106-02-07 06:28:15 UTC, the last second that pcap can store, written with \
                 that time; pcapng keeps the times",
                style::stderr().yellow("warning"),
                units::packets(self.outputs.total.too_late)
            ));
        }
        if self.timeless > 0 {
            note(format_args!(
                "{} without a timestamp written as 1970, since this format requires a timestamp",
                units::packets(self.timeless)
            ));
        }
        Ok(())
    }
}
