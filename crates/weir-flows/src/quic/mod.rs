//! What QUIC (RFC 9000) says in the clear: the hello of its client. It is encrypted with keys that anybody can compute who sees the
//! first packet (RFC 9001, section 5.2).
//!
//! ```text
//! datagram -> header -> keys, which decrypt it -> pieces, put together -> hello
//! ```

mod header;
mod keys;
mod pieces;

use std::collections::HashMap;
use std::mem;

use foldhash::fast::RandomState;
use weir_parse::Tls;
use weir_parse::bytes::{Bytes, Cut};

use self::header::{Header, varint};
use self::keys::Keys;
use self::pieces::{Pieces, Put};

/// The shortest datagram in which a client sends a hello (RFC 9000, section 14.1).
const SHORTEST: usize = 1200;
/// The most packets of a datagram that are looked at.
const PACKETS: usize = 4;
/// The most flows of which something is kept, in each of two generations; the older one makes room. Each takes at most 18 KiB.
const MOST: usize = 1024;

/// What a datagram has said.
#[derive(Debug)]
pub(crate) enum Said {
    /// It is one of QUIC, with a part of a hello, or none.
    Quic,
    /// It completes the hello.
    Hello(Box<Tls>),
}

/// Hellos of which a part is missing, by the number of the flow.
#[derive(Debug, Default)]
pub(crate) struct AllQuic {
    young: HashMap<u32, State, RandomState>,
    old: HashMap<u32, State, RandomState>,
    /// A packet while it is decrypted.
    scratch: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Begun(Box<Begun>),
    /// The hello was there, or cannot be.
    Over,
}

/// A connection whose client has begun.
#[derive(Debug)]
struct Begun {
    /// The end of the flow's key that is the client.
    client: usize,
    keys: Keys,
    pieces: Pieces,
}

const _: () = assert!(size_of::<Begun>() <= 1024, "with the hello, it is no longer than this file says");

/// Returns whether a payload of UDP can be the first of QUIC's clients, of a version that is known.
pub(crate) fn is_initial(payload: &[u8]) -> bool {
    payload.len() >= SHORTEST && Header::is_initial(payload)
}

impl AllQuic {
    /// Reads a payload for which [`is_initial`] holds, which this end of the flow's key has sent. `None`: it is not of QUIC, or nothing
    /// more is to be told.
    pub(crate) fn read(&mut self, flow: u32, from: usize, payload: &[u8]) -> Option<Said> {
        let mut begun = match self.young.remove(&flow).or_else(|| self.old.remove(&flow)) {
            Some(State::Begun(begun)) if begun.client == from => Some(begun),
            Some(other) => {
                self.keep(flow, other);
                return None;
            }
            None => None,
        };
        let mut put = Ok(Put::Part);
        let mut rest = payload;
        for _ in 0..PACKETS {
            let Ok(header) = Header::read(rest) else { break };
            if header.is_initial {
                let Some(decrypted) = open(&header, rest, &mut begun, from, &mut self.scratch) else { break };
                put = frames(decrypted.0, &mut decrypted.1.pieces);
                if !matches!(put, Ok(Put::Part)) {
                    break;
                }
            }
            rest = rest.get(header.end..).unwrap_or_default();
        }
        let begun = begun?;
        let hello = match put {
            Ok(Put::Part) => {
                self.keep(flow, State::Begun(begun));
                return Some(Said::Quic);
            }
            Ok(Put::Whole) => Tls::read_message(begun.pieces.bytes()),
            Err(_) => None,
        };
        self.keep(flow, State::Over);
        Some(hello.map_or(Said::Quic, |hello| Said::Hello(Box::new(hello))))
    }

    /// Gives back what is kept of a flow.
    pub(crate) fn forget(&mut self, flow: u32) {
        for states in [&mut self.young, &mut self.old] {
            if !states.is_empty() {
                states.remove(&flow);
            }
        }
    }

    fn keep(&mut self, flow: u32, state: State) {
        if self.young.len() == MOST {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(flow, state);
    }
}

/// Decrypts a packet, and returns what is in it, and the connection, which it may begin. `None`: the client has not sent it.
fn open<'a>(
    header: &Header<'_>,
    packet: &[u8],
    begun: &'a mut Option<Box<Begun>>,
    from: usize,
    scratch: &'a mut Vec<u8>,
) -> Option<(&'a [u8], &'a mut Begun)> {
    let is_open = begun.as_ref().is_some_and(|begun| begun.keys.open(header, packet, scratch));
    if !is_open {
        // The first, or the first after the server has sent back another ID to use (Retry).
        let keys = Keys::of_client(header.version, header.destination);
        if !keys.open(header, packet, scratch) {
            return None;
        }
        *begun = Some(Box::new(Begun { client: from, keys, pieces: Pieces::default() }));
    }
    Some((scratch, begun.as_mut()?))
}

const PADDING: u64 = 0;
const PING: u64 = 1;
const ACK: u64 = 2;
const ACK_ECN: u64 = 3;
const CRYPTO: u64 = 6;

/// Takes the pieces of the hello from the frames of a packet. The other frames that it can have (RFC 9000, section 12.4) are skipped.
///
/// # Errors
///
/// The hello will never be whole.
fn frames(payload: &[u8], pieces: &mut Pieces) -> Result<Put, Cut> {
    let mut bytes = Bytes::new(payload, payload.len());
    let mut put = Put::Part;
    while bytes.len > 0 {
        match varint(&mut bytes)? {
            PADDING | PING => {}
            kind @ (ACK | ACK_ECN) => {
                // The latest, and the delay.
                for _ in 0..2 {
                    varint(&mut bytes)?;
                }
                let ranges = varint(&mut bytes)?;
                // The first range; a gap and a length for each other; three counters.
                let more = if kind == ACK_ECN { 4 } else { 1 };
                for _ in 0..ranges.saturating_mul(2).saturating_add(more) {
                    varint(&mut bytes)?;
                }
            }
            CRYPTO => {
                let (offset, length) = (varint(&mut bytes)?, varint(&mut bytes)?);
                let length = usize::try_from(length).map_err(|_| Cut)?;
                put = pieces.put(offset, bytes.get(0, length)?)?;
                if put == Put::Whole {
                    break;
                }
                bytes = bytes.from(length);
            }
            // The connection is closed, or this is no such packet.
            _ => return Err(Cut),
        }
    }
    Ok(put)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_limit_and_is_given_back() {
        let mut all = AllQuic::default();
        for flow in 0..3000 {
            all.keep(flow, State::Over);
        }
        assert!(all.young.len() <= MOST && all.old.len() == MOST);
        assert!(all.young.contains_key(&2999) && !all.old.contains_key(&0));
        (0..3000).for_each(|flow| all.forget(flow));
        assert!(all.young.is_empty() && all.old.is_empty());
    }

    #[test]
    fn frames_are_skipped_or_end_the_search() {
        let put = |frames: &[u8]| {
            let mut pieces = Pieces::default();
            super::frames(frames, &mut pieces).map(|put| (put, pieces.bytes().data.to_vec()))
        };
        let ack = [2, 0x40, 9, 1, 1, 2, 3, 4];
        let ecn = [3, 1, 1, 0, 5, 1, 2, 0x80, 0, 0, 9];
        let hello = [6, 0, 6, 1, 0, 0, 2, 8, 9];
        let all = [&[0, 0, 1][..], &ack, &ecn, &hello].concat();
        assert_eq!(put(&all), Ok((Put::Whole, vec![1, 0, 0, 2, 8, 9])));
        // Wherever it ends, there is less of it, or nothing.
        for end in 0..all.len() {
            assert!(!matches!(put(&all[..end]), Ok((Put::Whole, _))), "{end}");
        }
        for wrong in [&[0x1c, 0, 0, 0][..], &[2, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]] {
            assert_eq!(put(wrong), Err(Cut));
        }
    }
}
