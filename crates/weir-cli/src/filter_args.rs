//! The filter on the command line: as one argument (`-f`), as the last words, or in a file (`-F`).
//!
//! The words are arguments of each command, because their position differs: `weir capture -i eth0 tcp port 80`, but
//! `weir read FILE... -- tcp port 80`, where any word could be another file name.

use std::fs;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use weir::Filter;
use weir::filter::{Dialect, Names, SystemNames};

use crate::failure::Failure;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct FilterArgs {
    /// Filter EXPRESSION as a single argument.
    #[arg(short = 'f', long, value_name = "EXPRESSION", conflicts_with = "filter_file")]
    #[arg(allow_hyphen_values = true)]
    filter: Option<String>,

    /// Read the filter from FILE; - is standard input.
    ///
    /// The file may contain comments and span several lines.
    #[arg(short = 'F', long, value_name = "FILE")]
    filter_file: Option<PathBuf>,

    /// Select the filter language.
    #[arg(hide_short_help = true, long, value_name = "DIALECT", value_enum, default_value_t)]
    dialect: DialectArg,

    /// IPv4 netmask for `ip broadcast`: 255.255.255.0 or /24.
    ///
    /// Default for live captures: the netmask of the interface's first IPv4 address. Files have no
    /// default.
    #[arg(hide_short_help = true, long, value_name = "MASK", value_parser = netmask)]
    netmask: Option<Ipv4Addr>,
}

/// Parses a mask or a prefix length.
pub(crate) fn netmask(text: &str) -> Result<Ipv4Addr, String> {
    let bits = text.strip_prefix('/').unwrap_or(text).parse::<u32>().ok().filter(|&bits| bits <= 32);
    let mask = match bits {
        Some(bits) => Some(Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits).unwrap_or(0))),
        None => text.parse().ok(),
    };
    let is_mask = |mask: &Ipv4Addr| (!mask.to_bits()).wrapping_add(1) & !mask.to_bits() == 0;
    mask.filter(is_mask).ok_or_else(|| "allowed: a mask such as 255.255.255.0 or /24".to_owned())
}

/// A filter as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expression {
    pub(crate) text: String,
    pub(crate) dialect: Dialect,
}

impl FilterArgs {
    /// Returns whether there is a filter in an option.
    pub(crate) fn is_given(&self) -> bool {
        self.filter.is_some() || self.filter_file.is_some()
    }

    /// Returns the requested expression; `None`: every packet. `words`: those that the command itself has received.
    pub(crate) fn expression(&self, words: &[String]) -> Result<Option<Expression>, Failure> {
        let given = [self.filter.is_some(), self.filter_file.is_some(), !words.is_empty()];
        if given.into_iter().filter(|&given| given).count() > 1 {
            return Err(Failure::usage("more than one filter given: use -f, -F or an expression"));
        }
        let text = match (&self.filter, &self.filter_file) {
            (Some(text), _) => text.clone(),
            (None, Some(path)) => read(path)?,
            (None, None) if words.is_empty() => return Ok(None),
            (None, None) => words.join(" "),
        };
        Ok(Some(Expression { text, dialect: self.dialect.into() }))
    }

    /// Returns the netmask that was given.
    pub(crate) fn netmask(&self) -> Option<Ipv4Addr> {
        self.netmask
    }

    /// Returns the file that the filter is in (`-F`).
    pub(crate) fn file(&self) -> Option<&Path> {
        self.filter_file.as_deref()
    }

    /// Returns the requested filter for the engine.
    pub(crate) fn filter(&self, words: &[String]) -> Result<Option<Filter>, Failure> {
        self.filter_by(words, SystemNames::new())
    }

    /// Does the same, with names looked up by `names`.
    pub(crate) fn filter_by(
        &self,
        words: &[String],
        names: impl Names + Send + Sync + 'static,
    ) -> Result<Option<Filter>, Failure> {
        let expression = self.expression(words)?;
        let filter = |Expression { text, dialect }| {
            Filter::new(text).dialect(dialect).names(names).netmask(self.netmask)
        };
        Ok(expression.map(filter))
    }
}

/// Returns the text of a file; `-` is standard input.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let result = match path.as_os_str() == "-" {
        true => io::stdin().read_to_string(&mut text).map(|_| text),
        false => fs::read_to_string(path),
    };
    result.map_err(|error| {
        let failure = Failure::usage(format!("cannot read the filter in {}: {error}", path.display()));
        match path.to_str() {
            Some("pcap" | "pcapng") if !path.exists() => {
                failure.hint("to select the file format, use --format")
            }
            _ => failure,
        }
    })
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum DialectArg {
    /// Match the same packets live and in files, whatever headers lie in between.
    #[default]
    Weir,
    /// Follow libpcap to the letter.
    Pcap,
}

impl From<DialectArg> for Dialect {
    fn from(dialect: DialectArg) -> Self {
        match dialect {
            DialectArg::Weir => Self::Weir,
            DialectArg::Pcap => Self::Pcap,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        filter: FilterArgs,
        words: Vec<String>,
    }

    fn expression(args: &[&str]) -> Result<Option<Expression>, String> {
        let words = ["weir"].iter().chain(args);
        let command = Command::try_parse_from(words).map_err(|error| error.to_string())?;
        command.filter.expression(&command.words).map_err(|failure| failure.message().to_owned())
    }

    fn weir(text: &str) -> Result<Option<Expression>, String> {
        Ok(Some(Expression { text: text.to_owned(), dialect: Dialect::Weir }))
    }

    #[test]
    fn three_forms() {
        assert_eq!(expression(&[]), Ok(None));
        assert_eq!(expression(&["tcp", "port", "80"]), weir("tcp port 80"));
        assert_eq!(expression(&["-f", "tcp port 80"]), weir("tcp port 80"));
        assert_eq!(expression(&["-f", ""]), weir(""));
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(&file, "tcp # not udp\nport 80\n").expect("writes");
        assert_eq!(
            expression(&["-F", file.path().to_str().expect("a name")]),
            weir("tcp # not udp\nport 80\n")
        );
        let pcap = Expression { text: "ip".to_owned(), dialect: Dialect::Pcap };
        assert_eq!(expression(&["ip", "--dialect", "pcap"]), Ok(Some(pcap)));
    }

    #[test]
    fn what_is_refused() {
        assert!(expression(&["-f", "ip", "ip6"]).expect_err("twice").contains("more than one filter"));
        assert!(expression(&["-F", "/", "ip6"]).expect_err("twice").contains("more than one filter"));
        assert!(expression(&["-F", "/nowhere/at/all"]).expect_err("no file").contains("/nowhere/at/all"));
        assert!(expression(&["-f", "ip", "-F", "/"]).is_err());
    }
}
