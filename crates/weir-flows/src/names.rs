//! What the application of a flow said, in its first packets.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use weir_parse::{Message, Offer, Reader, Segment, segments};

use crate::flow::Names;
use crate::ja4::ja4;
use crate::quic::{self, AllQuic};
use crate::seen::Observation;

/// How many packets of a flow are read.
pub(crate) const PACKETS: u64 = 8;

/// Names by the number of the flow.
#[derive(Debug, Default)]
pub(crate) struct AllNames {
    /// By flow and end: the same connection can be in several flows, as those of two interfaces that see it.
    reader: Reader<(u32, usize)>,
    quic: AllQuic,
    names: HashMap<u32, Box<Names>, RandomState>,
}

/// What a segment says.
struct Said {
    protocol: &'static str,
    /// The first letter of a fingerprint.
    carrier: char,
    name: Option<String>,
    offer: Option<Box<Offer>>,
}

impl AllNames {
    /// Reads a packet of a flow, which this end of its key has sent. Returns whether it says something.
    pub(crate) fn read(
        &mut self,
        flow: u32,
        from: usize,
        observation: &Observation<'_>,
        inner: bool,
    ) -> bool {
        let mut all = segments(observation.link_type, observation.frame, observation.length);
        let segment = if inner { all.last() } else { all.next() };
        let Some(said) = segment.and_then(|segment| self.read_segment(flow, from, &segment)) else {
            return false;
        };
        let names = self
            .names
            .entry(flow)
            .or_insert_with(|| Box::new(Names { protocol: said.protocol, name: None, ja4: None }));
        if names.name.is_none() {
            names.name = said.name;
        }
        if let (Some(offer), None) = (said.offer, &names.ja4) {
            names.ja4 = Some(ja4(said.carrier, &offer));
        }
        true
    }

    fn read_segment(&mut self, flow: u32, from: usize, segment: &Segment<'_>) -> Option<Said> {
        if !segment.is_tcp()
            && quic::is_initial(segment.payload.data)
            && let Some(said) = self.quic.read(flow, from, segment.payload.data)
        {
            let (name, offer) = match said {
                quic::Said::Quic => (None, None),
                quic::Said::Hello(tls) => (tls.server_name, tls.offer),
            };
            return Some(Said { protocol: "quic", carrier: 'q', name: name.map(|name| name.value), offer });
        }
        let found = self.reader.read_of(segment, || (flow, from))?;
        let (name, offer) = match found.message {
            Message::Dns(dns) => (dns.query, None),
            Message::Tls(tls) => (tls.server_name, tls.offer),
            Message::Http(http) => (http.host, None),
            _ => (None, None),
        };
        let name = name.map(|name| name.value);
        Some(Said { protocol: found.protocol, carrier: 't', name, offer })
    }

    /// Reads no more of a flow: gives back what is kept of messages whose end has not come.
    pub(crate) fn end(&mut self, flow: u32) {
        [0, 1].iter().for_each(|end| self.reader.forget(&(flow, *end)));
        self.quic.forget(flow);
    }

    /// Takes those of a flow that has ended.
    pub(crate) fn take(&mut self, flow: u32) -> Option<Box<Names>> {
        self.names.remove(&flow)
    }

    /// Returns those of a flow.
    pub(crate) fn get(&self, flow: u32) -> Option<&Names> {
        self.names.get(&flow).map(Box::as_ref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flow, Settings, Table};

    /// The beginning of a hello, in a frame of IPv4 from this port.
    fn beginning(port: u16, payload: &[u8]) -> Vec<u8> {
        let length = u16::try_from(40 + payload.len()).expect("short").to_be_bytes();
        let mut frame = vec![0; 12];
        frame
            .extend([8, 0, 0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend(port.to_be_bytes());
        frame.extend([1, 187, 0, 0, 0, 5, 0, 0, 0, 0, 0x50, 16, 1, 0, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn what_is_kept_of_a_hello_is_given_back_after_eight_packets_and_when_the_flow_ends() {
        let settings = Settings { flows: 16, ..Settings::default() };
        let mut table = Table::new(&settings).expect("enough memory");
        let add = |table: &mut Table, frame: &[u8], ended: &mut Vec<Flow>| {
            let length = u32::try_from(frame.len()).expect("short");
            let packet = Observation { time: 1, interface: 0, link_type: 1, frame, length };
            table.add(&packet, &mut |flow| ended.push(flow));
        };
        let hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        let mut ended = Vec::new();
        add(&mut table, &beginning(1, &hello), &mut ended);
        for _ in 1..PACKETS {
            assert!(!table.names().reader.is_empty());
            add(&mut table, &beginning(1, &[]), &mut ended);
        }
        assert!(table.names().reader.is_empty());
        add(&mut table, &beginning(2, &hello), &mut ended);
        assert!(!table.names().reader.is_empty());
        table.end_all(&mut |flow| ended.push(flow));
        assert!(table.names().reader.is_empty() && table.names().names.is_empty());
        assert_eq!(ended.len(), 2);
    }
}
