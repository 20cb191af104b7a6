//! Messages, read by hand.

use std::collections::HashMap;

/// Enterprise 0 means IANA; this one, a scope of v9.
pub(crate) const SCOPE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) template: u16,
    /// Enterprise, number and value.
    pub(crate) values: Vec<((u32, u16), Vec<u8>)>,
}

impl Record {
    pub(crate) fn bytes(&self, enterprise: u32, number: u16) -> Option<&[u8]> {
        let value = self.values.iter().find(|(key, _)| *key == (enterprise, number));
        value.map(|(_, value)| value.as_slice())
    }

    pub(crate) fn number(&self, enterprise: u32, number: u16) -> u64 {
        self.bytes(enterprise, number).map_or(0, big)
    }
}

pub(crate) fn big(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[derive(Debug)]
pub(crate) struct Message {
    /// The words of the header behind version and length or count.
    pub(crate) words: Vec<u64>,
    /// How many templates are in it.
    pub(crate) templates: usize,
    pub(crate) records: Vec<Record>,
}

/// One field of a template: enterprise, number, length.
type Field = (u32, u16, u16);

/// Knows the templates so far.
#[derive(Default)]
pub(crate) struct Reader {
    templates: HashMap<u16, Vec<Field>>,
}

/// Takes bytes off the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    fn word(&mut self) -> u16 {
        u16::try_from(big(self.take(2))).expect("two bytes")
    }

    fn long(&mut self) -> u64 {
        big(self.take(4))
    }

    /// What is left is padding.
    fn is_over(&self) -> bool {
        self.0.len() < 4 && self.0.iter().all(|byte| *byte == 0)
    }
}

impl Reader {
    /// Reads IPFIX or NetFlow v9. Panics if a length is wrong.
    pub(crate) fn read(&mut self, message: &[u8]) -> Message {
        let mut bytes = Bytes(message);
        let version = bytes.word();
        let says = usize::from(bytes.word());
        let words = (0..if version == 10 { 3 } else { 4 }).map(|_| bytes.long()).collect();
        let mut read = Message { words, templates: 0, records: Vec::new() };
        while !bytes.0.is_empty() {
            let id = bytes.word();
            let length = usize::from(bytes.word());
            let mut set = Bytes(bytes.take(length - 4));
            match (version, id) {
                (10, 2) | (9, 0) => {
                    while !set.is_over() {
                        let (id, count) = (set.word(), set.word());
                        self.learn(id, (0..count).map(|_| field(&mut set, version)).collect());
                        read.templates += 1;
                    }
                }
                (10, 3) => {
                    while !set.0.is_empty() {
                        let (id, count, scopes) = (set.word(), set.word(), set.word());
                        assert_eq!(scopes, 1);
                        self.learn(id, (0..count).map(|_| field(&mut set, version)).collect());
                        read.templates += 1;
                    }
                }
                (9, 1) => {
                    let (id, scope, option) = (set.word(), set.word(), set.word());
                    assert_eq!(scope, 4);
                    let mut fields: Vec<Field> =
                        (0..1 + option / 4).map(|_| field(&mut set, version)).collect();
                    fields[0].0 = SCOPE;
                    assert!(set.is_over());
                    self.learn(id, fields);
                    read.templates += 1;
                }
                _ => self.records(id, set, &mut read.records),
            }
        }
        assert_eq!(
            says,
            if version == 10 { message.len() } else { read.templates + read.records.len() },
            "the header says it"
        );
        read
    }

    fn learn(&mut self, id: u16, fields: Vec<Field>) {
        assert!(id >= 256 && !fields.is_empty());
        self.templates.insert(id, fields);
    }

    fn records(&self, id: u16, mut set: Bytes<'_>, records: &mut Vec<Record>) {
        let fields = &self.templates[&id];
        let least: usize =
            fields.iter().map(|field| if field.2 == u16::MAX { 1 } else { field.2.into() }).sum();
        assert!(set.0.len() >= least, "no set is empty");
        while set.0.len() >= least {
            let value = |field: &Field| {
                let length = match field.2 {
                    u16::MAX => usize::from(set.take(1)[0]),
                    length => length.into(),
                };
                assert!(length < 255);
                ((field.0, field.1), set.take(length).to_vec())
            };
            records.push(Record { template: id, values: fields.iter().map(value).collect() });
        }
        assert!(set.is_over());
    }
}

fn field(set: &mut Bytes<'_>, version: u16) -> Field {
    let (number, length) = (set.word(), set.word());
    if version == 10 && number & 1 << 15 != 0 {
        let enterprise = u32::try_from(set.long()).expect("four bytes");
        return (enterprise, number & !(1 << 15), length);
    }
    (0, number, length)
}
