//! Accepting chunks and packets, and assembling them into requests to write.

use weir_savefile::record::Malformed;
use weir_savefile::{pcap, pcapng};

use super::write_request::{Content, Data, WriteRequest};
use super::{Compression, Format, WriteError, Writer, encode};
use crate::reader::InterfaceStatistics;
use crate::{Chunk, Packet, reader};

/// Single packets are written once there are this many bytes.
const BATCH: usize = 1 << 20;
/// Chunks of at least this many bytes are written directly: a write takes as long as copying them.
const WORTH_A_WRITE: usize = 32 << 10;

impl Writer {
    /// Writes a chunk.
    ///
    /// Its memory goes back to the pool when it is written or compressed: now, during one of the next calls, or at
    /// [`flush`](Self::flush).
    ///
    /// # Errors
    ///
    /// This write or an earlier one failed.
    pub fn write(&mut self, chunk: Chunk) -> Result<(), WriteError> {
        let content = Content::of_queue(chunk.interface(), chunk.queue(), chunk.len() as u64);
        self.write_records(Data::Chunk(chunk), content)
    }

    /// Writes a chunk that may hold only a few packets ([`crate::Builder::by_time`]).
    ///
    /// Small chunks are copied, so that they go back to the pool at once. They are written together, about 1 MiB at a
    /// time or at [`flush`](Self::flush), even if the options ask for each batch to be written at once.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn gather(&mut self, chunk: Chunk) -> Result<(), WriteError> {
        if chunk.bytes().len() >= WORTH_A_WRITE {
            return self.write(chunk);
        }
        if self.options.rotation.is_ring() {
            let mut packets = chunk.packets();
            packets.by_ref().try_for_each(|packet| self.packet(&packet))?;
            return packets.error().map_or(Ok(()), |&malformed| self.fail_records(malformed));
        }
        self.usable()?;
        let is_there = self.ensure_file()?;
        self.accepted.add(chunk.interface(), chunk.len() as u64, self.told(|| chunk.lost()));
        if !is_there {
            self.outages.lose(chunk.interface(), chunk.queue(), chunk.len() as u64);
            return Ok(());
        }
        let Data::Bytes(bytes) = &mut self.batch.data else { unreachable!("a batch is in a buffer") };
        let before = bytes.len();
        match self.options.format.pcap() {
            None => bytes.extend_from_slice(chunk.bytes()),
            Some(resolution) => {
                if let Err(malformed) = encode::to_pcap(resolution, chunk.bytes(), bytes) {
                    bytes.truncate(before);
                    return self.fail_records(malformed);
                }
            }
        }
        let size = bytes.len();
        self.batch.content.push(chunk.interface(), chunk.queue(), chunk.len() as u64);
        if size >= BATCH { self.put_batch() } else { Ok(()) }
    }

    pub(super) fn write_records(&mut self, mut data: Data, mut content: Content) -> Result<(), WriteError> {
        self.usable()?;
        self.put_batch()?;
        let compressed = self.options.compression != Compression::None;
        while !data.as_ref().is_empty() {
            if !self.ensure_file()? {
                self.accept(&data, &content);
                self.outages.lose_all(&content);
                return Ok(());
            }
            let cut = self.room().cut(self.options.format, compressed, data.as_ref(), content.count());
            let Some((bytes, packets)) = cut else {
                self.accept(&data, &content);
                self.put_records(data, content)?;
                return self.finish_full_file();
            };
            let (first, rest) = data.split(bytes);
            let packets = content.split(packets);
            self.accept(&first, &packets);
            self.put_records(first, packets)?;
            data = rest;
        }
        Ok(())
    }

    /// Counts records, which are of one interface.
    fn accept(&mut self, data: &Data, content: &Content) {
        if let Some(run) = content.runs().first() {
            self.accepted.add(run.interface, content.count(), self.told(|| data.lost()));
        }
    }

    /// Returns how many `lost` packets the file tells of.
    #[inline]
    fn told(&self, lost: impl FnOnce() -> u64) -> u64 {
        if self.options.format == Format::Pcapng { lost() } else { 0 }
    }

    fn put_records(&mut self, data: Data, content: Content) -> Result<(), WriteError> {
        let Some(resolution) = self.options.format.pcap() else {
            return self.put(WriteRequest { data, content });
        };
        let mut buffer = self.buffer();
        let converted = encode::to_pcap(resolution, data.as_ref(), &mut buffer);
        drop(data);
        match converted {
            Ok(()) => self.put(WriteRequest { data: Data::Bytes(buffer), content }),
            Err(malformed) => self.fail_records(malformed),
        }
    }

    /// Fails because of invalid records, after writing what came before them.
    fn fail_records(&mut self, malformed: Malformed) -> Result<(), WriteError> {
        self.flush()?;
        self.fail(WriteError::Malformed(malformed))
    }

    /// Writes a packet with its [notes](Packet::notes), and with direction, queue, losses and comment, if the packet
    /// has them and the format supports them. Packets are gathered up to about 1 MiB before they are written.
    ///
    /// If a packet is longer than the snap length stored in the file, that is raised. In a compressed file or a pipe it
    /// cannot be; there the packet is cut and [counted](Self::packets_cut). Packets are always cut to the length that other
    /// programs can read ([`packets_too_long`](Self::packets_too_long)).
    ///
    /// # Errors
    ///
    /// [`WriteError::Packet`]: the file cannot hold this packet; the writer can still be used. Otherwise see
    /// [`write`](Self::write).
    #[inline]
    pub fn packet(&mut self, packet: &Packet<'_>) -> Result<(), WriteError> {
        self.usable()?;
        let Some(interface) = self.interfaces.get(packet.interface as usize) else {
            return Err(WriteError::Packet {
                reason: format!(
                    "it belongs to interface {}, which the file does not describe",
                    packet.interface
                ),
            });
        };
        let (link_type, mut snap_len) = (interface.link_type, interface.snap_len);
        // A `Packet` is so large that copying it would cost more than everything below.
        let mut data = packet.data;
        if !self.ensure_file()? {
            self.accepted.add(packet.interface, 1, packet.lost_before);
            self.outages.lose(packet.interface, packet.queue, 1);
            return Ok(());
        }
        let most = if self.options.format == Format::Pcapng { snap_len } else { self.pcap_snap_len };
        let longest = pcap::longest_packet(link_type);
        if data.len() > longest as usize || (most > 0 && data.len() > most as usize) {
            data = self.fit(packet, most, longest)?;
            snap_len = self.interfaces[packet.interface as usize].snap_len;
        }
        let Data::Bytes(bytes) = &mut self.batch.data else { unreachable!("a batch is in a buffer") };
        if encode::packet(self.options.format, packet, data, snap_len, bytes).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", data.len()) });
        }
        let size = bytes.len();
        self.accepted.add(packet.interface, 1, packet.lost_before);
        self.cut_simple |= packet.notes.is_timeless() && data.len() < packet.original_len as usize;
        self.too_late +=
            u64::from(packet.timestamp > pcap::LAST_TIME && self.options.format != Format::Pcapng);
        self.batch.content.push(packet.interface, packet.queue, 1);
        let full =
            self.options.rotation.is_ring() && self.room().holds_no_more_than(size, &self.batch.content);
        if full || size >= BATCH || self.options.flush_each {
            self.put_batch()?;
        }
        if full { self.finish_full_file() } else { Ok(()) }
    }

    /// Returns how much of a long packet to write. libpcap refuses to read a pcapng file beyond a record longer than
    /// the snap length; in pcap it drops the end of such a record. `most`: the snap length, 0: none.
    #[cold]
    fn fit<'a>(&mut self, packet: &Packet<'a>, most: u32, longest: u32) -> Result<&'a [u8], WriteError> {
        let data = &packet.data[..packet.data.len().min(longest as usize)];
        self.too_long += u64::from(data.len() < packet.data.len());
        if most == 0 || data.len() <= most as usize || self.raise(packet.interface, longest)? {
            return Ok(data);
        }
        self.cut += 1;
        Ok(&data[..most as usize])
    }

    /// Raises the snap length of an interface in the file; returns whether that was possible.
    fn raise(&mut self, interface: u32, snap_len: u32) -> Result<bool, WriteError> {
        let pcapng = self.options.format == Format::Pcapng;
        if self.options.compression != Compression::None || (pcapng && self.cut_simple) {
            return Ok(false);
        }
        self.wake()?;
        let place = self.snap_places.get(if pcapng { interface as usize } else { 0 }).copied();
        let (Some(place), Some(file)) = (place, &mut self.file) else { return Ok(false) };
        match file.put_over(place, &snap_len.to_ne_bytes()) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(source) => return self.fail_write(source).map(|()| false),
        }
        self.interfaces[interface as usize].snap_len = snap_len;
        self.pcap_snap_len = snap_len;
        Ok(true)
    }

    /// Returns the number of packets that [`packet`](Self::packet) has cut at the snap length of their interface.
    pub fn packets_cut(&self) -> u64 {
        self.cut
    }

    /// Returns the number of packets that [`packet`](Self::packet) has cut because other programs refuse files with
    /// longer ones: to 262144 bytes, except for a few link types.
    pub fn packets_too_long(&self) -> u64 {
        self.too_long
    }

    /// Returns the number of packets that [`packet`](Self::packet) has written with the latest time that pcap can hold,
    /// in 2106, because theirs is later.
    pub fn packets_too_late(&self) -> u64 {
        self.too_late
    }

    /// Returns whether the file can record that this packet has no timestamp; otherwise it is dated 1970.
    pub fn can_omit_timestamp(&self, packet: &Packet<'_>) -> bool {
        let interface = self.interfaces.get(packet.interface as usize);
        self.options.format == Format::Pcapng
            && interface
                .is_some_and(|interface| encode::can_omit_timestamp(packet, packet.data, interface.snap_len))
    }

    /// Copies records from another file without decoding them.
    ///
    /// The records must be in the format of this file ([`Reader::is_copied_to`](reader::Reader::is_copied_to)), and
    /// their interface must have the same number here. This does not work for files that end at a given size or number
    /// of packets.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn run(&mut self, run: &reader::Run<'_>) -> Result<(), WriteError> {
        self.usable()?;
        if run.interface as usize >= self.interfaces.len() || self.options.rotation.is_ring() {
            let reason = "records cannot be copied to this file as they stand".to_owned();
            return Err(WriteError::Packet { reason });
        }
        if !self.ensure_file()? {
            self.outages.lose(run.interface, run.queue, run.packets);
            return Ok(());
        }
        let Data::Bytes(bytes) = &mut self.batch.data else { unreachable!("a batch is in a buffer") };
        bytes.extend_from_slice(run.bytes);
        let size = bytes.len();
        self.batch.content.push(run.interface, run.queue, run.packets);
        if size >= BATCH || self.options.flush_each { self.put_batch() } else { Ok(()) }
    }

    /// Writes any other pcapng block, given its type and its body in native byte order. A pcap file has no room for it.
    ///
    /// # Errors
    ///
    /// [`WriteError::Packet`]: the block is too long; the writer can still be used. Otherwise see
    /// [`write`](Self::write).
    pub fn block(&mut self, kind: u32, body: &[u8]) -> Result<(), WriteError> {
        self.usable()?;
        if self.options.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        self.ensure_file()?;
        let mut buffer = self.buffer();
        if pcapng::append_block(&mut buffer, kind, body).is_none() {
            return Err(WriteError::Packet { reason: format!("{} bytes are too many", body.len()) });
        }
        self.put(Data::Bytes(buffer).into())
    }

    /// Writes the counters of an interface as read from another file, with the interface's number in this file. A pcap
    /// file has no room for them.
    ///
    /// # Errors
    ///
    /// See [`write`](Self::write).
    pub fn interface_statistics(&mut self, statistics: &InterfaceStatistics) -> Result<(), WriteError> {
        self.usable()?;
        if self.options.format != Format::Pcapng {
            return Ok(());
        }
        self.put_batch()?;
        self.ensure_file()?;
        let mut buffer = self.buffer();
        encode::interface_statistics(statistics, &mut buffer);
        self.put(Data::Bytes(buffer).into())
    }
}
