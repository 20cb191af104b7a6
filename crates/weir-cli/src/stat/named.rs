//! A filter on the command line or in a file, with its name: `dns: port 53`.

use std::str::FromStr;

use weir::Filter;
use weir::filter::SystemNames;

/// A filter and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    text: String,
}

impl Named {
    /// Returns the filter for the library.
    pub(crate) fn filter(&self) -> Filter {
        Filter::new(&self.text).names(SystemNames::new())
    }
}

/// Parses a filter from each line of a file. Empty lines, and those that begin with `#`, are skipped.
///
/// # Errors
///
/// The number of the line that has no name, and what is wrong.
pub(super) fn lines(text: &str) -> Result<Vec<Named>, String> {
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let wanted = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    wanted.map(|(line, number)| line.parse().map_err(|error| format!("line {number}: {error}"))).collect()
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
    fn a_file_has_a_filter_in_each_line() {
        let named = |name: &str, text: &str| Named { name: name.to_owned(), text: text.to_owned() };
        let text = "# resolvers\n\n dns: port 53\r\n\ttcp\n#tcp\nall:";
        let expected = vec![named("dns", "port 53"), named("tcp", "tcp"), named("all", "")];
        assert_eq!(lines(text), Ok(expected));
        let error = lines("udp\n\n: tcp").expect_err("no name");
        assert!(error.starts_with("line 3: the name is missing; write NAME: "), "{error}");
    }

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
