//! Filters: which packets are wanted.
//!
//! A [`Filter`] is an expression and its context. It is compiled to a program once it is known what it filters: packets
//! of a link type, seen by a receiver. Each source runs it in its own way: see [`crate::Builder::filter`].

mod matcher;
mod names;
#[cfg(not(feature = "jit"))]
#[path = "no_native.rs"]
mod native;
mod portable;
pub(crate) mod remembered;

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

pub use self::matcher::{FileFilter, Matcher};
pub use self::names::SystemNames;
pub use self::portable::PortableFilter;
use self::remembered::Remembered;
#[cfg(feature = "live")]
use weir_filter::BehindFields;
use weir_filter::Beside;
pub use weir_filter::error::Error as ExpressionError;
pub use weir_filter::interpret::Packet as PacketView;
pub use weir_filter::names::{Names, NoNames, Service};
pub use weir_filter::{Dialect, Filter as Compiled};
#[cfg(feature = "jit")]
use weir_native as native;

use crate::DEFAULT_SNAP_LEN;

/// A filter expression and its context.
#[derive(Clone, Debug)]
#[must_use]
pub struct Filter {
    text: String,
    dialect: Dialect,
    names: Arc<dyn Names + Send + Sync>,
    /// The link types of all packets, if there are several.
    link_types: Vec<u16>,
    netmask: Option<u32>,
}

/// What a filter is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Receiver {
    /// The link type of the packets (`LINKTYPE_*`).
    pub link_type: u16,
    /// Whether it knows a packet's metadata ([`weir_filter::graph::Meta`]).
    pub metadata: bool,
    /// Whether link-layer headers in the byte order of the capturing host are in the other order here.
    pub swapped: bool,
    /// The IPv4 netmask, which determines the broadcast addresses. For an interface it is that of its first address, as
    /// in libpcap's `pcap_lookupnet`.
    pub netmask: Option<u32>,
    /// Whether VLAN tags were stripped and not reported.
    #[cfg_attr(feature = "serde", serde(default))]
    pub tags_lost: bool,
}

/// An expression that cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    text: String,
    error: weir_filter::Error,
    /// The expression is valid, but not for packets of this link type.
    is_expression: bool,
    interface: Option<String>,
}

impl Filter {
    /// Creates a filter in the default dialect, without names.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            dialect: Dialect::default(),
            names: Arc::new(NoNames),
            link_types: Vec::new(),
            netmask: None,
        }
    }

    /// Sets the dialect of the expression.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Sets how names in the expression are looked up.
    pub fn names(mut self, names: impl Names + Send + Sync + 'static) -> Self {
        self.names = Arc::new(names);
        self
    }

    /// Sets the IPv4 netmask for `ip broadcast`; `None`: a capture uses that of its interface, and for files it is
    /// unknown.
    pub fn netmask(mut self, netmask: Option<Ipv4Addr>) -> Self {
        self.netmask = netmask.map(u32::from);
        self
    }

    /// Sets the link types (`LINKTYPE_*`) of all packets to be filtered. A term that only applies to some of them is
    /// then false for the others, instead of an error.
    pub fn among(mut self, link_types: impl IntoIterator<Item = u16>) -> Self {
        self.link_types = link_types.into_iter().collect();
        self.link_types.sort_unstable();
        self.link_types.dedup();
        self
    }

    /// Looks up each name at most once.
    fn remembering_names(self) -> Self {
        Self { names: Arc::new(Remembered::new(self.names)), ..self }
    }

    /// Returns the original expression.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the filter as shown in files and to the user: the expression on one line, with control characters as
    /// `\u{1b}`, and with the dialect unless it is the default. Expressions too long to read are cut.
    pub fn label(&self) -> String {
        const LONGEST: usize = 4096;
        let mut words = String::new();
        'all: for word in self.text.split_whitespace() {
            words.push_str(if words.is_empty() { "" } else { " " });
            for letter in word.chars() {
                if words.len() >= LONGEST {
                    words.push_str("...");
                    break 'all;
                }
                match letter.is_control() {
                    true => words.extend(letter.escape_default()),
                    false => words.push(letter),
                }
            }
        }
        match self.dialect {
            Dialect::Weir => words,
            Dialect::Pcap => format!("{words} (dialect pcap)"),
        }
    }

    /// Compiles the filter to its machine-independent form.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or tests something that packets of this link type do not have.
    pub fn compile(&self, receiver: Receiver) -> Result<Compiled, FilterError> {
        let beside = if receiver.metadata { Beside::All } else { Beside::Nothing };
        self.compile_knowing(beside, receiver)
    }

    /// Compiles the filter for Ethernet frames of which fields decide wherever they can, and says where they do: only where it has to be
    /// asked is there a filter.
    ///
    /// # Errors
    ///
    /// See [`Filter::compile`].
    #[cfg(feature = "live")]
    pub(crate) fn compile_behind_fields(&self, receiver: Receiver) -> Result<BehindFields, FilterError> {
        self.compile_by(Beside::All, receiver, |options| {
            let behind = weir_filter::compile_behind_fields(&self.text, options)?;
            self.check_tags(receiver, behind.asks_for_tags())?;
            Ok(behind)
        })
    }

    /// Compiles it to a graph.
    fn compile_knowing(&self, metadata: Beside, receiver: Receiver) -> Result<Compiled, FilterError> {
        self.compile_by(metadata, receiver, |options| {
            let compiled = weir_filter::compile(&self.text, options)?;
            match compiled.lacks(options) {
                Some(error) => Err(error),
                None => self.check_tags(receiver, compiled.asks_for_tags()).map(|()| compiled),
            }
        })
    }

    fn check_tags(&self, receiver: Receiver, asks_for_tags: bool) -> Result<(), weir_filter::Error> {
        match receiver.tags_lost && asks_for_tags {
            true => Err(tags_lost(&self.text)),
            false => Ok(()),
        }
    }

    fn compile_by<T>(
        &self,
        metadata: Beside,
        receiver: Receiver,
        compile: impl FnOnce(&weir_filter::Options<'_>) -> Result<T, weir_filter::Error>,
    ) -> Result<T, FilterError> {
        let others: Vec<u16> =
            self.link_types.iter().copied().filter(|&other| other != receiver.link_type).collect();
        let options = weir_filter::Options {
            dialect: self.dialect,
            link_type: receiver.link_type,
            snap_len: DEFAULT_SNAP_LEN,
            metadata,
            swapped: receiver.swapped,
            others: &others,
            // tcpdump uses 0 if it is unknown, even for files and `any`: only limited broadcasts and 0.0.0.0 match
            // then.
            netmask: match self.dialect {
                Dialect::Weir => self.netmask.or(receiver.netmask),
                Dialect::Pcap => self.netmask.or(receiver.netmask).or(Some(0)),
            },
            names: &*self.names,
        };
        compile(&options).map_err(|error| {
            let is_expression = weir_filter::parse::parse(&self.text, &options).is_ok();
            FilterError { text: self.text.clone(), error, is_expression, interface: None }
        })
    }
}

impl Filter {
    /// Compiles the filter for packets of a file, which may record their direction
    /// ([`Metadata::of_direction`](weir_filter::interpret::Metadata::of_direction)). In libpcap's dialect, files have
    /// none.
    ///
    /// # Errors
    ///
    /// See [`Filter::compile`].
    pub fn compile_for_file(&self, link_type: u16, swapped: bool) -> Result<Compiled, FilterError> {
        let beside = match self.dialect {
            Dialect::Pcap => Beside::Nothing,
            Dialect::Weir => Beside::Direction,
        };
        self.compile_knowing(
            beside,
            Receiver { link_type, metadata: false, swapped, netmask: None, tags_lost: false },
        )
    }
}

impl FilterError {
    /// Returns what is wrong, and where in the expression.
    pub fn error(&self) -> &weir_filter::Error {
        &self.error
    }

    /// Adds the name of the interface, if the expression is only invalid for that.
    pub(crate) fn on(self, interface: &str) -> Self {
        Self { interface: self.is_expression.then(|| interface.to_owned()), ..self }
    }
}

fn tags_lost(text: &str) -> weir_filter::Error {
    weir_filter::Error::new("VLAN tags are stripped and not reported to XDP", 0..text.len())
        .help("use the tc source, or have the driver keep the tags")
}

/// Marks the place of the error below the expression.
impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("invalid filter")?;
        self.interface.iter().try_for_each(|name| write!(f, " for `{name}`"))?;
        write!(f, ": {}", self.error.render(&self.text))
    }
}

impl std::error::Error for FilterError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_line_without_commands_and_has_an_end() {
        let label = |text: &str| Filter::new(text).label();
        assert_eq!(label(" tcp\n port  80 "), "tcp port 80");
        assert_eq!(label("tcp #\u{1b}[31mred\u{7}"), "tcp #\\u{1b}[31mred\\u{7}");
        for text in
            ["port 80 ".repeat(1000), format!("({}", "not\u{a0}€".repeat(3000)), "\u{1b}".repeat(9000)]
        {
            let label = label(&text);
            assert!(label.len() < 4096 + 16 && label.ends_with("..."), "{} bytes", label.len());
            assert!(label.len() > 4096, "it begins as the text: {label}");
        }
    }

    #[test]
    fn files_have_no_direction_in_the_dialect_of_libpcap() {
        let compiled = |dialect| Filter::new("inbound").dialect(dialect).compile_for_file(1, false);
        assert!(compiled(Dialect::Weir).is_ok());
        assert!(compiled(Dialect::Pcap).is_err());
    }
}
