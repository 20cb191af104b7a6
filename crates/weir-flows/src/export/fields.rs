//! Which elements are exported.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use super::element::Element;

/// Elements to export, each once, in this order.
///
/// An element of IPv4 stands for the one of IPv6 as well: who asks for `sourceIPv4Address` gets `sourceIPv6Address` of flows
/// over IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    elements: Vec<&'static Element>,
}

const BASIC: &[&str] = &[
    "sourceIPv4Address",
    "destinationIPv4Address",
    "sourceTransportPort",
    "destinationTransportPort",
    "protocolIdentifier",
    "packetDeltaCount",
    "octetDeltaCount",
    "reversePacketDeltaCount",
    "reverseOctetDeltaCount",
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "flowEndReason",
    "biflowDirection",
    "ingressInterface",
    "vlanId",
    "tcpControlBits",
    "reverseTcpControlBits",
    "icmpTypeCodeIPv4",
    "ipClassOfService",
    "reverseIpClassOfService",
];

/// nProbe's default without what a flow cannot tell: next hop, output interface, autonomous systems and masks. What comes back
/// is in the same record.
const NPROBE: &[&str] = &[
    "sourceIPv4Address",
    "destinationIPv4Address",
    "ingressInterface",
    "packetDeltaCount",
    "octetDeltaCount",
    "reversePacketDeltaCount",
    "reverseOctetDeltaCount",
    "flowStartMilliseconds",
    "flowEndMilliseconds",
    "sourceTransportPort",
    "destinationTransportPort",
    "tcpControlBits",
    "reverseTcpControlBits",
    "protocolIdentifier",
    "ipClassOfService",
    "reverseIpClassOfService",
];

impl Fields {
    /// The names of the sets that can be asked for: `basic`, `nprobe`, `all`.
    pub const SETS: &'static [&'static str] = &["basic", "nprobe", "all"];

    /// Returns what most collectors understand.
    pub fn basic() -> Self {
        Self::named(BASIC)
    }

    /// Returns what nProbe exports by default, without what a flow cannot tell: next hop, output interface, autonomous systems
    /// and masks.
    pub fn nprobe() -> Self {
        Self::named(NPROBE)
    }

    /// Returns all elements.
    pub fn all() -> Self {
        Self { elements: Element::ALL.iter().collect() }
    }

    /// Returns the names of all elements and sets.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::SETS.iter().copied().chain(Element::ALL.iter().map(|element| element.name))
    }

    /// Returns the elements.
    pub fn elements(&self) -> &[&'static Element] {
        &self.elements
    }

    /// Returns the elements that NetFlow v9 cannot tell. Those of the other direction are not among them: it has a record of
    /// its own there.
    pub fn beyond_netflow9(&self) -> impl Iterator<Item = &'static Element> {
        let beyond = |element: &&&Element| {
            element.netflow9.is_none() && element.flows != super::element::Flows::Biflows
        };
        self.elements.iter().filter(beyond).copied()
    }

    fn named(names: &[&str]) -> Self {
        let mut fields = Self { elements: Vec::new() };
        names.iter().filter_map(|name| Element::named(name)).for_each(|element| fields.add(element));
        fields
    }

    /// Adds an element, and all that are the same thing of other flows.
    fn add(&mut self, element: &'static Element) {
        for other in Element::ALL.iter().filter(|other| other.value == element.value) {
            if !self.elements.contains(&other) {
                self.elements.push(other);
            }
        }
    }
}

impl Default for Fields {
    fn default() -> Self {
        Self::basic()
    }
}

impl FromStr for Fields {
    type Err = NoSuchField;

    /// Reads names of elements and sets, with commas between them: `basic,vlanId`.
    ///
    /// # Errors
    ///
    /// If one of them is not known, or there is none.
    fn from_str(text: &str) -> Result<Self, NoSuchField> {
        let mut fields = Self { elements: Vec::new() };
        for name in text.split(',').map(str::trim) {
            let set = match name.to_ascii_lowercase().as_str() {
                "basic" => Self::basic(),
                "nprobe" => Self::nprobe(),
                "all" => Self::all(),
                _ => {
                    Self { elements: vec![Element::named(name).ok_or_else(|| NoSuchField(name.to_owned()))?] }
                }
            };
            set.elements.into_iter().for_each(|element| fields.add(element));
        }
        Ok(fields)
    }
}

/// A field that nothing has the name of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSuchField(pub String);

impl Display for NoSuchField {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            "" => write!(f, "cannot export a field without a name"),
            name => write!(f, "cannot export {}: no such field", name.escape_debug()),
        }
    }
}

impl std::error::Error for NoSuchField {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::element::Flows;

    #[test]
    fn names_become_fields_in_their_order_each_once() {
        let fields: Fields = "vlanID, sourceIPv6Address,basic,vlanId".parse().expect("all are known");
        let names: Vec<_> = fields.elements().iter().map(|element| element.name).collect();
        assert_eq!(names[..3], ["vlanId", "sourceIPv4Address", "sourceIPv6Address"]);
        assert_eq!(names.len(), Fields::basic().elements().len());
        assert_eq!("basic".parse(), Ok(Fields::basic()));
        assert_eq!(Fields::all().elements().len(), Element::ALL.len());
        // No name of a set is wrong.
        assert!(BASIC.iter().chain(NPROBE).all(|name| Element::named(name).is_some()));
    }

    #[test]
    fn what_has_no_such_name_is_told() {
        let error = "basic,octetDelta".parse::<Fields>().expect_err("it is wrong");
        assert_eq!(error.to_string(), "cannot export octetDelta: no such field");
        assert!("basic,".parse::<Fields>().is_err() && "".parse::<Fields>().is_err());
    }

    #[test]
    fn no_two_elements_are_the_same_and_biflows_have_what_reversed_records_do_not_need() {
        for (index, element) in Element::ALL.iter().enumerate() {
            let same = |other: &Element| {
                (other.number, other.enterprise) == (element.number, element.enterprise)
                    || other.name == element.name
            };
            assert!(!Element::ALL[index + 1..].iter().any(same), "{element:?}");
            assert!(element.number < 1 << 15, "the highest bit says that an enterprise follows");
            assert!(element.flows != Flows::Biflows || element.netflow9.is_none(), "{element:?}");
        }
    }
}
