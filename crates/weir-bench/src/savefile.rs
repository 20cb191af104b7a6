//! A reader of capture files that shares nothing with weir's writer: the judge of what is in them.

use std::io::{self, BufRead, BufReader, Read};

/// The packets of a pcapng or pcap file in this machine's byte order.
pub(super) struct Packets<R> {
    input: BufReader<R>,
    pcapng: bool,
    block: Vec<u8>,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const ENHANCED_PACKET: u32 = 6;
/// With timestamps in microseconds and nanoseconds.
const PCAP: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
/// No block or packet of ours is longer.
const LONGEST: usize = 1 << 20;

impl<R: Read> Packets<R> {
    /// Reads the first bytes, which tell the format.
    pub(super) fn new(input: R) -> io::Result<Self> {
        let mut packets =
            Self { input: BufReader::with_capacity(1 << 20, input), pcapng: false, block: Vec::new() };
        let magic = packets.word()?;
        packets.pcapng = magic == SECTION_HEADER;
        if packets.pcapng {
            let length = packets.word()?;
            packets.fill(length, 8)?;
        } else if PCAP.contains(&magic) {
            packets.fill(24, 4)?;
        } else {
            return Err(broken("neither pcapng nor pcap"));
        }
        Ok(packets)
    }

    /// The next packet, none at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        let data = loop {
            if self.input.fill_buf()?.is_empty() {
                return Ok(None);
            }
            if !self.pcapng {
                let (_seconds, _fraction, length) = (self.word()?, self.word()?, self.word()?);
                self.fill(length.saturating_add(4), 0)?; // with the original length before it
                break 4..self.block.len();
            }
            let (kind, length) = (self.word()?, self.word()?);
            self.fill(length, 8)?;
            if kind == ENHANCED_PACKET {
                // Behind interface, timestamp in two words, captured and original length.
                let captured = self.block.get(12..16).and_then(|bytes| bytes.first_chunk());
                let captured = captured.map_or(0, |bytes| u32::from_ne_bytes(*bytes));
                break 20..20_usize.saturating_add(captured.try_into().unwrap_or(usize::MAX));
            }
        };
        self.block.get(data).map(Some).ok_or_else(|| broken("a packet is longer than its block"))
    }

    fn word(&mut self) -> io::Result<u32> {
        let mut word = [0; 4];
        self.input.read_exact(&mut word)?;
        Ok(u32::from_ne_bytes(word))
    }

    /// Reads the rest of a block of which `read` bytes are read.
    fn fill(&mut self, length: u32, read: usize) -> io::Result<()> {
        let rest = usize::try_from(length).ok().and_then(|length| length.checked_sub(read));
        let rest =
            rest.filter(|&rest| rest <= LONGEST).ok_or_else(|| broken("a block has an invalid length"))?;
        self.block.resize(rest, 0);
        self.input.read_exact(&mut self.block)
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn read(file: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let mut packets = Packets::new(file)?;
        let mut all = Vec::new();
        while let Some(packet) = packets.next()? {
            all.push(packet.to_vec());
        }
        Ok(all)
    }

    fn pcapng() -> Vec<u8> {
        let mut file = words(&[SECTION_HEADER, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28]);
        file.extend(words(&[1, 20, 1, 0, 20]));
        for data in [*b"abcde\0\0\0", *b"fghij\0\0\0"] {
            file.extend(words(&[ENHANCED_PACKET, 40, 0, 0, 0, 5, 9]));
            file.extend(data);
            file.extend(words(&[40]));
        }
        file.extend(words(&[5, 24, 0, 0, 0, 24]));
        file
    }

    #[test]
    fn both_formats_are_read() {
        assert_eq!(read(&pcapng()).expect("valid"), [b"abcde", b"fghij"]);

        let mut pcap = words(&[PCAP[0], 0, 0, 0, 262_144, 1]);
        assert!(read(&pcap).expect("valid").is_empty());
        for data in [*b"abc", *b"def"] {
            pcap.extend(words(&[0, 0, 3, 3]));
            pcap.extend(data);
        }
        assert_eq!(read(&pcap).expect("valid"), [b"abc", b"def"]);
    }

    #[test]
    fn what_is_broken_is_an_error() {
        let whole = pcapng();
        assert!(read(b"no capture file at all").is_err());
        assert!(read(&whole[..whole.len() - 30]).is_err(), "cut off in a block");
        for (place, value) in [(52, 3_u32), (52, u32::MAX), (68, 4000)] {
            let mut file = whole.clone();
            file[place..place + 4].copy_from_slice(&value.to_ne_bytes());
            assert!(read(&file).is_err(), "{value} at {place}");
        }
    }
}
