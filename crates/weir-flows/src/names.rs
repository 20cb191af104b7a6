//! What the application of a flow said, in its first packets.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use weir_parse::{Message, Reader, segments};

use crate::flow::Names;
use crate::seen::Observation;

/// How many packets of a flow are read.
pub(crate) const PACKETS: u64 = 8;

/// Names by the number of the flow.
#[derive(Debug, Default)]
pub(crate) struct AllNames {
    reader: Reader,
    names: HashMap<u32, Box<Names>, RandomState>,
}

impl AllNames {
    /// Reads a packet of a flow. Returns whether it says something.
    pub(crate) fn read(&mut self, flow: u32, observation: &Observation<'_>, inner: bool) -> bool {
        let mut all = segments(observation.link_type, observation.frame, observation.length);
        let segment = if inner { all.last() } else { all.next() };
        let found = segment.and_then(|segment| self.reader.read(&segment));
        let Some(found) = found else { return false };
        let name = match found.message {
            Message::Dns(dns) => dns.query.map(|name| name.value),
            Message::Tls(tls) => tls.server_name.map(|name| name.value),
            Message::Http(http) => http.host.map(|name| name.value),
            _ => None,
        };
        let names = self
            .names
            .entry(flow)
            .or_insert_with(|| Box::new(Names { protocol: found.protocol, name: None }));
        if names.name.is_none() {
            names.name = name;
        }
        true
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
