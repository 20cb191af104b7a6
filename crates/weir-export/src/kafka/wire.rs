//! What weir and `weir-export kafka` tell each other, over a Unix socket: frames of a length, a kind, and a body.
//!
//! ```text
//! weir: Request::Batch, ..., Request::Finish  -->  weir-export
//!       Report::Began, Settled, Unspooled, ...  <--
//! ```
//!
//! weir keeps each batch until it is settled, and never has more than [`WINDOW`] bytes that are not. So neither side waits for the
//! other to read.

use std::io::{self, ErrorKind, Read};

/// The most bytes of batches that are not settled.
pub const WINDOW: usize = 32 << 20;
/// The longest frame.
const LONGEST: usize = 64 << 20;
/// The length of a frame, and its kind.
const HEADER: usize = 5;

/// What weir asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Send these flows. IDs ascend within a run.
    Batch {
        /// Its ID.
        id: u64,
        /// [`Messages`].
        messages: Vec<u8>,
    },
    /// Nothing more comes: settle all batches, answer with [`Report::Done`], and end.
    Finish {
        /// Give up if nothing is acknowledged for so many milliseconds.
        patience: u32,
        /// Send all of the spool, too.
        drain: bool,
    },
}

/// A batch that was found in the spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its ID.
    pub id: u64,
    /// Flows of it.
    pub flows: u32,
    /// They are sent already.
    pub is_sent: bool,
}

/// Messages that all replicas have acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Messages.
    pub messages: u64,
    /// Bytes of keys and values.
    pub octets: u64,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The first report.
    Began {
        /// What the spool has of this run: of an earlier process of it.
        own: Vec<Own>,
        /// Flows of earlier runs in the spool.
        earlier: u64,
    },
    /// Nothing can be sent; the process ends.
    Failed(String),
    /// A batch is settled: its flows are sent, but for these.
    Settled {
        /// Its ID.
        id: u64,
        /// In the spool.
        spooled: u32,
        /// Lost.
        lost: u32,
        /// Messages of it.
        acknowledged: Acknowledged,
    },
    /// Flows have left the spool.
    Unspooled {
        /// They are of this run.
        is_own: bool,
        /// All of them.
        flows: u32,
        /// Those that are lost, not sent.
        lost: u32,
        /// Messages of them.
        acknowledged: Acknowledged,
    },
    /// What the user should know.
    News(String),
    /// The answer to [`Request::Finish`].
    Done,
}

/// Appends a frame; `body` appends its body.
fn frame(kind: u8, bytes: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let begin = bytes.len();
    bytes.extend([0; 4]);
    bytes.push(kind);
    body(bytes);
    let length = u32::try_from(bytes.len() - begin - HEADER).unwrap_or(u32::MAX);
    bytes[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
}

/// Splits off the first frame: its kind, its body, and its length. `None`: it is not there to the end.
fn split(bytes: &[u8]) -> io::Result<Option<(u8, &[u8], usize)>> {
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Ok(None) };
    let [length @ .., kind] = *header;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(wrong());
    }
    Ok(rest.get(..length).map(|body| (kind, body, HEADER + length)))
}

fn wrong() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "weir and weir-export do not understand each other; install both of one version",
    )
}

/// Takes numbers off the beginning.
struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(wrong)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn bytes(&mut self, length: usize) -> io::Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(wrong)?;
        self.0 = rest;
        Ok(taken)
    }

    fn long(&mut self) -> io::Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn number(&mut self) -> io::Result<u32> {
        u32::try_from(self.long()?).map_err(|_| wrong())
    }

    fn is(&mut self) -> io::Result<bool> {
        Ok(self.long()? != 0)
    }

    fn acknowledged(&mut self) -> io::Result<Acknowledged> {
        Ok(Acknowledged { messages: self.long()?, octets: self.long()? })
    }

    fn end<T>(self, value: T) -> io::Result<T> {
        if self.0.is_empty() { Ok(value) } else { Err(wrong()) }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Request {
    /// Appends it.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Batch { id, messages } => frame(1, bytes, |body| {
                put(body, &[*id]);
                body.extend_from_slice(messages);
            }),
            Self::Finish { patience, drain } => {
                frame(2, bytes, |body| put(body, &[u64::from(*patience), u64::from(*drain)]));
            }
        }
    }

    /// Reads the next one. `None`: weir has ended.
    ///
    /// # Errors
    ///
    /// Those of the reader; [`ErrorKind::InvalidData`] if it is none.
    pub fn read(mut from: impl Read) -> io::Result<Option<Self>> {
        let mut header = [0; HEADER];
        match from.read_exact(&mut header) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let [length @ .., kind] = header;
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(wrong());
        }
        let mut body = vec![0; length];
        match from.read_exact(&mut body) {
            // It was killed in the middle.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let mut numbers = Numbers(&body);
        match kind {
            1 => {
                let id = numbers.long()?;
                Ok(Some(Self::Batch { id, messages: numbers.0.to_vec() }))
            }
            2 => {
                let finish = Self::Finish { patience: numbers.number()?, drain: numbers.is()? };
                numbers.end(Some(finish))
            }
            _ => Err(wrong()),
        }
    }
}

impl Report {
    /// Appends it.
    pub fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Began { own, earlier } => frame(1, bytes, |body| {
                put(body, &[*earlier]);
                own.iter().for_each(|own| put(body, &[own.id, own.flows.into(), own.is_sent.into()]));
            }),
            Self::Failed(why) => frame(2, bytes, |body| body.extend_from_slice(why.as_bytes())),
            Self::Settled { id, spooled, lost, acknowledged: Acknowledged { messages, octets } } => {
                let numbers = [*id, (*spooled).into(), (*lost).into(), *messages, *octets];
                frame(3, bytes, |body| put(body, &numbers));
            }
            Self::Unspooled { is_own, flows, lost, acknowledged: Acknowledged { messages, octets } } => {
                let numbers = [(*is_own).into(), (*flows).into(), (*lost).into(), *messages, *octets];
                frame(4, bytes, |body| put(body, &numbers));
            }
            Self::News(news) => frame(5, bytes, |body| body.extend_from_slice(news.as_bytes())),
            Self::Done => frame(6, bytes, |_| ()),
        }
    }

    /// Takes the next one off the beginning. `None`: it is not there to the end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidData`] if it is none.
    pub fn take(bytes: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let Some((kind, body, length)) = split(bytes)? else { return Ok(None) };
        let mut numbers = Numbers(body);
        let report = match kind {
            1 => {
                let (earlier, mut own) = (numbers.long()?, Vec::new());
                while !numbers.0.is_empty() {
                    own.push(Own { id: numbers.long()?, flows: numbers.number()?, is_sent: numbers.is()? });
                }
                Self::Began { own, earlier }
            }
            2 => Self::Failed(text(body)),
            3 => {
                let (id, spooled, lost) = (numbers.long()?, numbers.number()?, numbers.number()?);
                let acknowledged = numbers.acknowledged()?;
                numbers.end(Self::Settled { id, spooled, lost, acknowledged })?
            }
            4 => {
                let (is_own, flows, lost) = (numbers.is()?, numbers.number()?, numbers.number()?);
                let acknowledged = numbers.acknowledged()?;
                numbers.end(Self::Unspooled { is_own, flows, lost, acknowledged })?
            }
            5 => Self::News(text(body)),
            6 => numbers.end(Self::Done)?,
            _ => return Err(wrong()),
        };
        bytes.drain(..length);
        Ok(Some(report))
    }
}

/// The messages of a batch: for each flow its key, and one or more values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    bytes: Vec<u8>,
    flows: u32,
}

impl Messages {
    /// Adds a flow. Of a key the first 65,535 bytes count, of values the first 255.
    pub fn add(&mut self, key: &[u8], values: &[&[u8]]) {
        let (key, values) = (&key[..key.len().min(0xffff)], &values[..values.len().min(0xff)]);
        self.bytes.extend(u16::try_from(key.len()).unwrap_or_default().to_le_bytes());
        self.bytes.extend_from_slice(key);
        self.bytes.push(u8::try_from(values.len()).unwrap_or_default());
        for value in values {
            self.bytes.extend(u32::try_from(value.len()).unwrap_or_default().to_le_bytes());
            self.bytes.extend_from_slice(value);
        }
        self.flows += 1;
    }

    /// Returns the number of flows.
    pub fn flows(&self) -> u32 {
        self.flows
    }

    /// Returns the number of bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The number of its flow in the batch.
    pub flow: u32,
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// Returns the messages in these bytes, and the number of flows.
///
/// # Errors
///
/// [`ErrorKind::InvalidData`] if they are not those of [`Messages`].
pub fn messages(bytes: &[u8]) -> io::Result<(Vec<Message<'_>>, u32)> {
    let (mut numbers, mut messages, mut flow) = (Numbers(bytes), Vec::new(), 0);
    while !numbers.0.is_empty() {
        let length = u16::from_le_bytes(numbers.take()?);
        let key = numbers.bytes(length.into())?;
        let [values] = numbers.take()?;
        for _ in 0..values {
            let length = u32::from_le_bytes(numbers.take()?);
            messages.push(Message { flow, key, value: numbers.bytes(length as usize)? });
        }
        flow += 1;
    }
    Ok((messages, flow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_reports_arrive_as_they_were_sent_in_any_pieces() {
        let mut batch = Messages::default();
        batch.add(b"key", &[b"one", b""]);
        batch.add(b"", &[]);
        batch.add(b"other", &[b"two"]);
        assert_eq!(batch.flows(), 3);
        let requests = [
            Request::Batch { id: 7, messages: batch.into_bytes() },
            Request::Finish { patience: 3000, drain: true },
        ];
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| request.put(&mut bytes));
        let mut from = &bytes[..];
        for request in &requests {
            assert_eq!(Request::read(&mut from).expect("whole").as_ref(), Some(request));
        }
        for cut in 0..5 {
            assert_eq!(Request::read(&bytes[..cut]).expect("an end"), None);
        }
        let Request::Batch { messages: found, .. } = &requests[0] else { unreachable!() };
        let (found, flows) = messages(found).expect("whole");
        let found: Vec<_> = found.iter().map(|one| (one.flow, one.key, one.value)).collect();
        let expected = [(0, &b"key"[..], &b"one"[..]), (0, b"key", b""), (2, b"other", b"two")];
        assert_eq!((found.as_slice(), flows), (&expected[..], 3));

        let acknowledged = Acknowledged { messages: 5, octets: 6 };
        let reports = [
            Report::Began { own: vec![Own { id: 1, flows: 2, is_sent: true }], earlier: 9 },
            Report::Failed("no".to_owned()),
            Report::Settled { id: 1, spooled: 2, lost: 3, acknowledged },
            Report::Unspooled { is_own: true, flows: 2, lost: 1, acknowledged },
            Report::News(String::new()),
            Report::Done,
        ];
        let mut bytes = Vec::new();
        reports.iter().for_each(|report| report.put(&mut bytes));
        let (mut arrived, mut taken) = (Vec::new(), Vec::new());
        for byte in bytes {
            arrived.push(byte);
            taken.extend(Report::take(&mut arrived).expect("a report"));
        }
        assert_eq!(taken, reports);
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let refused = |bytes: &[u8]| {
            let error = Report::take(&mut bytes.to_vec()).map(|_| ()).map_err(|error| error.kind());
            assert_eq!(error, Err(ErrorKind::InvalidData), "{bytes:?}");
        };
        refused(&[0xff, 0xff, 0xff, 0xff, 1]);
        refused(&[1, 0, 0, 0, 6, 0]);
        refused(&[0, 0, 0, 0, 99]);
        refused(&[0, 0, 0, 0, 3]);
        assert!(Request::read(&[0xff; 5][..]).is_err());
        assert!(Request::read(&[0, 0, 0, 0, 1][..]).is_err());
        for bytes in [&[1][..], &[1, 0], &[0, 0, 1, 9, 0, 0, 0, 1], &[0, 0, 2, 0, 0, 0, 0]] {
            assert!(messages(bytes).is_err(), "{bytes:?}");
        }
    }
}
