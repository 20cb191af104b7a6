//! Parser for sets: `in {…}` and `in @NAME`.

use std::net::Ipv6Addr;
use std::ops::Range;

use super::address::{dotted, left_justified, named_network};
use super::{IdKind, Parser, Qualifiers};
use crate::ast::{Network, Primitive, Protocol};
use crate::lex::{self, Kind, words_of};
use crate::names::{Names, Service};
use crate::set::{Contents, Holds, Member, Set, SetId, SetName, prefix_mask};
use crate::spelling::shortened;
use crate::{Dialect, Error};

/// A set being parsed.
#[derive(Debug)]
struct Members<'a> {
    holds: Holds,
    names: &'a dyn Names,
    ipv4: Vec<Member<1>>,
    ipv6: Vec<Member<4>>,
    macs: Vec<[u32; 2]>,
    /// Ranges of ports or VLANs, with their first and last number.
    ranges: Vec<(u32, u32)>,
}

impl Parser<'_, '_> {
    /// Parses the set after `in`, at the current token, for an id with `qualifiers`.
    pub(super) fn members(&mut self, qualifiers: Qualifiers) -> Result<Primitive, Error> {
        let token = self.token;
        let Qualifiers { protocol, direction, kind } = qualifiers;
        match kind {
            IdKind::Default | IdKind::Host if protocol == Some(Protocol::Link) => {
                let set = self.set(Holds::Macs)?[0];
                Ok(Primitive::MacIn { direction, set })
            }
            IdKind::Default | IdKind::Host | IdKind::Net => {
                Self::addressed(protocol, token)?;
                Self::wired(direction, token)?;
                let sets = self.set(if kind == IdKind::Net { Holds::Networks } else { Holds::Hosts })?;
                Ok(Primitive::HostIn { protocol, direction, ipv4: sets[0], ipv6: sets[1] })
            }
            IdKind::Port | IdKind::PortRange => {
                Self::transport(protocol, direction, token)?;
                let holds = match protocol {
                    Some(Protocol::Tcp) => Holds::TcpPorts,
                    Some(Protocol::Udp) => Holds::UdpPorts,
                    Some(Protocol::Sctp) => Holds::SctpPorts,
                    _ => Holds::Ports,
                };
                let set = self.set(holds)?[0];
                Ok(Primitive::PortIn { protocol, direction, set })
            }
            IdKind::Proto | IdKind::ProtoChain | IdKind::Gateway => Err(Error::new(
                "sets can only follow `host`, `net`, `port`, `ether host` and `vlan`",
                token.span(),
            )),
        }
    }

    /// Parses the set after `vlan in`.
    pub(super) fn vlan_members(&mut self) -> Result<Primitive, Error> {
        Ok(Primitive::VlanIn { set: self.set(Holds::Vlans)?[0] })
    }

    /// Parses a set. A set of addresses gives two: IPv4, then IPv6.
    fn set(&mut self, holds: Holds) -> Result<Vec<SetId>, Error> {
        let token = self.token;
        match token.kind {
            Kind::Members(text) => {
                self.take()?;
                let begin = token.start + 1;
                let contents = read(text, holds, self.options.names).map_err(|mut error| {
                    error.span = begin + error.span.start..begin + error.span.end;
                    error
                })?;
                Ok(self.add_sets(contents, None))
            }
            Kind::SetName(name) => {
                self.take()?;
                if let Some(known) = self.sets.get(&(holds, name)) {
                    return Ok(known.clone());
                }
                let text = self.options.names.set(name).map_err(|reason| Error::new(reason, token.span()))?;
                let contents = read(&text, holds, self.options.names).map_err(|mut error| {
                    let line = 1 + text[..error.span.start].matches('\n').count();
                    error.message = format!("line {line} of `@{name}`: {}", error.message);
                    error.span = token.span();
                    error
                })?;
                let sets = self.add_sets(contents, Some(SetName { text: name.to_owned(), holds }));
                self.sets.insert((holds, name), sets.clone());
                Ok(sets)
            }
            _ => Err(self.expected("`{` and members, or `@` and a set name")),
        }
    }

    fn add_sets(&mut self, contents: Vec<Contents>, name: Option<SetName>) -> Vec<SetId> {
        let add = |mut contents: Contents| {
            contents.normalise();
            let id = u32::try_from(self.ast.sets.len()).expect("sets are counted in 32 bits");
            self.ast.sets.push(Set { name: name.clone(), contents });
            SetId(id)
        };
        contents.into_iter().map(add).collect()
    }
}

/// Parses a list of members, as in a set's file. A list of addresses gives two sets: IPv4, then IPv6.
///
/// # Errors
///
/// Fails if a word is not a member of such a set. Spans are relative to `text`.
pub fn members(text: &str, holds: Holds, names: &dyn Names) -> Result<Vec<Contents>, Error> {
    let mut members = read(text, holds, names)?;
    members.iter_mut().for_each(Contents::normalise);
    Ok(members)
}

/// Parses members, separated by line ends, blanks or commas. Spans of errors are relative to `text`.
fn read(text: &str, holds: Holds, names: &dyn Names) -> Result<Vec<Contents>, Error> {
    let (ipv4, ipv6, macs, ranges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut members = Members { holds, names, ipv4, ipv6, macs, ranges };
    // What some editors put in front of UTF-8.
    let mut at = text.strip_prefix('\u{feff}').map_or(0, |rest| text.len() - rest.len());
    loop {
        at = lex::skip(text, at, Dialect::Weir)?;
        let rest = &text[at..];
        let ends = |letter: char| letter.is_ascii_whitespace() || ",#".contains(letter);
        match rest.find(ends).unwrap_or(rest.len()) {
            0 if rest.is_empty() => return Ok(members.contents()),
            0 => at += 1,
            length => {
                members.add(&rest[..length], at..at + length)?;
                at += length;
            }
        }
    }
}

impl Members<'_> {
    /// Adds the members that `word`, at `span`, stands for.
    fn add(&mut self, word: &str, span: Range<usize>) -> Result<(), Error> {
        let (name, escaped) = match word.strip_prefix('\\') {
            Some(name) => (name, true),
            None => (word, false),
        };
        let added = match self.holds {
            Holds::Hosts | Holds::Networks if escaped => self.add_name(name),
            Holds::Hosts | Holds::Networks => self.add_network(name),
            Holds::Macs => {
                let mac = lex::mac(name).or_else(|| self.names.ethernet(name));
                let mac = mac.ok_or_else(|| {
                    format!(
                        "`{}` is neither a MAC address nor a name with a known MAC address",
                        shortened(name)
                    )
                });
                mac.map(|[a, b, c, d, e, f]| {
                    self.macs.push([u32::from_be_bytes([0, 0, a, b]), u32::from_be_bytes([c, d, e, f])]);
                })
            }
            Holds::Ports | Holds::TcpPorts | Holds::UdpPorts | Holds::SctpPorts | Holds::Vlans => {
                self.add_numbers(name)
            }
        };
        added.map_err(|message| Error::new(message, span))
    }

    /// Adds `10.0.0.0/8`, `fe80::/10`, `10.1`, or the addresses of a name.
    fn add_network(&mut self, word: &str) -> Result<(), String> {
        let (address, prefix) = match word.split_once('/') {
            Some((address, prefix)) => {
                let bits = lex::number(prefix)
                    .unwrap_or_else(|| Err(format!("`{prefix}` is not a prefix length")))?;
                (address, Some(bits))
            }
            None => (word, None),
        };
        if let Some((number, bits)) = self.ipv4(address)? {
            let bits = prefix.unwrap_or(bits);
            if bits > 32 {
                return Err("an IPv4 address has 32 bits".to_owned());
            }
            if number & !prefix_mask(bits) != 0 {
                return Err(format!("`{address}` has bits set beyond the prefix"));
            }
            let bits = u8::try_from(bits).expect("at most 32");
            self.ipv4.push(Member { key: [number], bits });
        } else if let Ok(address) = address.parse::<Ipv6Addr>() {
            let bits = prefix.unwrap_or(128);
            if bits > 128 {
                return Err("an IPv6 address has 128 bits".to_owned());
            }
            if bits < 128 && address.to_bits() << bits != 0 {
                return Err(format!("`{address}` has bits set beyond the prefix"));
            }
            let bits = u8::try_from(bits).expect("at most 128");
            self.ipv6.push(Member { key: words_of(address), bits });
        } else if prefix.is_some() || word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(format!("`{}` is not an address", shortened(address)));
        } else {
            return self.add_name(word);
        }
        Ok(())
    }

    /// Parses an IPv4 address or its beginning; returns it, shifted to the most significant end, and its number of
    /// bits.
    fn ipv4(&self, word: &str) -> Result<Option<(u32, u32)>, String> {
        if !word.starts_with(|first: char| first.is_ascii_digit()) || word.contains(':') {
            return Ok(None);
        }
        match lex::number(word) {
            Some(number) if self.holds == Holds::Networks => {
                let (number, mask) = left_justified(number?);
                Ok(Some((number, mask.leading_ones())))
            }
            Some(number) => Ok(Some((number?, 32))),
            None => Ok(dotted(word).map(|(number, bits)| (number << (32 - bits), bits))),
        }
    }

    fn add_name(&mut self, name: &str) -> Result<(), String> {
        if self.holds == Holds::Networks {
            let network = self.names.network(name).and_then(|number| named_network(number, false));
            let (number, mask) = network.ok_or_else(|| format!("unknown network `{}`", shortened(name)))?;
            let bits = u8::try_from(mask.leading_ones()).expect("at most 32");
            self.ipv4.push(Member { key: [number], bits });
            return Ok(());
        }
        let addresses = self.names.host(name);
        if addresses.is_empty() {
            return Err(format!("unknown host `{}`", shortened(name)));
        }
        for address in addresses {
            match Network::from(address) {
                Network::V4(address, _) => self.ipv4.push(Member { key: [address], bits: 32 }),
                Network::V6(address, _) => self.ipv6.push(Member { key: address, bits: 128 }),
            }
        }
        Ok(())
    }

    /// Adds `80`, `8000-8100`, or a service.
    fn add_numbers(&mut self, word: &str) -> Result<(), String> {
        let (most, what) = if self.holds == Holds::Vlans { (4095, "VLANs") } else { (65535, "ports") };
        let number = |word: &str| lex::number(word).transpose();
        let single = number(word)?;
        let range =
            word.split_once('-').map(|(first, last)| Ok::<_, String>(number(first)?.zip(number(last)?)));
        let (first, last) = match (single, range.transpose()?.flatten()) {
            (Some(number), _) => (number, number),
            (None, Some((first, last))) => (first.min(last), first.max(last)),
            (None, None) => {
                let port = self
                    .service(word)
                    .ok_or_else(|| format!("expected {what}, not `{}`", shortened(word)))?;
                (port.into(), port.into())
            }
        };
        if last > most {
            return Err(format!("{what} are numbered up to {most}"));
        }
        self.ranges.push((first, last));
        Ok(())
    }

    /// Returns the port of a service for the set's protocol.
    fn service(&self, name: &str) -> Option<u16> {
        let Service { tcp, udp, sctp } = self.names.service(name);
        match self.holds {
            Holds::TcpPorts => tcp,
            Holds::UdpPorts => udp,
            Holds::SctpPorts => sctp,
            Holds::Ports => tcp.or(udp).or(sctp),
            Holds::Hosts | Holds::Networks | Holds::Macs | Holds::Vlans => None,
        }
    }

    fn contents(mut self) -> Vec<Contents> {
        match self.holds {
            Holds::Hosts | Holds::Networks => vec![Contents::Ipv4(self.ipv4), Contents::Ipv6(self.ipv6)],
            Holds::Macs => vec![Contents::Macs(self.macs)],
            Holds::Ports | Holds::TcpPorts | Holds::UdpPorts | Holds::SctpPorts | Holds::Vlans => {
                self.ranges.sort_unstable();
                let mut numbers = Vec::new();
                let mut next = 0;
                for (first, last) in self.ranges {
                    numbers.extend(first.max(next)..=last);
                    next = next.max(last + 1);
                }
                vec![Contents::Numbers(numbers)]
            }
        }
    }
}
