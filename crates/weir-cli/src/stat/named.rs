//! A filter on the command line, with its name: `dns: port 53`.

use std::str::FromStr;

use weir::Filter;
use weir::filter::SystemNames;

/// A filter and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    text: String,
}

impl Named {
    /// Returns the filter for the library.
    pub(super) fn filter(&self) -> Filter {
        Filter::new(&self.text).names(SystemNames::new())
    }
}

impl FromStr for Named {
    type Err = String;

    /// A name ends with the first colon, if a space or nothing follows that. In an expression this happens only between
    /// brackets, which a name does not have.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_end = |(at, _): &(usize, &str)| text[at + 1..].chars().next().is_none_or(char::is_whitespace);
        let end = text.match_indices(':').find(is_end).map(|(at, _)| at);
        let (name, expression) = match end {
            Some(end) if !text[..end].contains(['[', '(', '{']) => (text[..end].trim(), &text[end + 1..]),
            _ => (text.trim(), text),
        };
        if name.is_empty() {
            return Err("the name is missing; write NAME: EXPRESSION, such as 'dns: port 53'".to_owned());
        }
        Ok(Self { name: name.to_owned(), text: expression.trim().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_with_a_colon_and_a_space() {
        for (text, name, expression) in [
            ("dns: port 53", "dns", "port 53"),
            ("my own web: tcp port 443", "my own web", "tcp port 443"),
            ("all:", "all", ""),
            ("tcp port 443", "tcp port 443", "tcp port 443"),
            ("host fe80::1", "host fe80::1", "host fe80::1"),
            ("link: host fe80::1", "link", "host fe80::1"),
            ("a::1: ip6 net fe80::/10", "a::1", "ip6 net fe80::/10"),
            ("ether host 00:11:22:33:44:55", "ether host 00:11:22:33:44:55", "ether host 00:11:22:33:44:55"),
            ("tcp[0 : 2] = 80", "tcp[0 : 2] = 80", "tcp[0 : 2] = 80"),
        ] {
            let named = Named { name: name.to_owned(), text: expression.to_owned() };
            assert_eq!(text.parse(), Ok(named), "{text}");
        }
        for text in ["", " ", ": udp"] {
            assert!(text.parse::<Named>().expect_err(text).contains("NAME: EXPRESSION"));
        }
    }
}
