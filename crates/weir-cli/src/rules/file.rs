//! A file with rules.

use std::fs;
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use weir::Filter;
use weir::filter::FileFilter;
use weir_rules::{Error, RuleSet};

use super::names::{RuleNames, SetFile};
use crate::failure::Failure;
use crate::style;

/// A file with rules, and its text.
#[derive(Debug)]
pub(crate) struct RuleFile {
    /// Its name, as it is shown.
    pub(super) name: String,
    pub(super) text: String,
    path: PathBuf,
    pub(super) names: RuleNames,
}

impl RuleFile {
    /// Reads a file; `-` is standard input.
    pub(crate) fn read(path: &Path, sets: &[SetFile]) -> Result<Self, Failure> {
        let mut text = String::new();
        let (name, result) = match path.as_os_str() == "-" {
            true => ("standard input".to_owned(), io::stdin().read_to_string(&mut text).map(|_| text)),
            false => (path.display().to_string(), fs::read_to_string(path)),
        };
        let name = style::visible(&name);
        let text =
            result.map_err(|error| Failure::new(format_args!("cannot read rules from {name}: {error}")))?;
        // What some editors put in front of UTF-8.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Self { name, text, path: path.to_owned(), names: RuleNames::new(path, sets) })
    }

    /// Returns the files that were read: that of the rules, and those of the sets that they name.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        [vec![self.path.clone()], self.names.files()].concat()
    }

    /// Returns the rules, each with its filter for packets of files. All names are looked up.
    pub(crate) fn rules(&self, netmask: Option<Ipv4Addr>) -> Result<(RuleSet, Vec<FileFilter>), Failure> {
        let set = RuleSet::parse(&self.text).map_err(|mistakes| self.failure(&mistakes))?;
        let (mut filters, mut mistakes) = (Vec::new(), Vec::new());
        for rule in &set.rules {
            let filter = Filter::new(&rule.expression).names(self.names.clone()).netmask(netmask);
            match FileFilter::new(filter) {
                Ok(filter) => filters.push(filter),
                Err(error) => mistakes.push(rule.in_file(error.error().clone())),
            }
        }
        if mistakes.is_empty() { Ok((set, filters)) } else { Err(self.failure(&mistakes)) }
    }

    /// Returns a failure with all mistakes.
    pub(super) fn failure(&self, mistakes: &[Error]) -> Failure {
        let all: Vec<_> = mistakes.iter().map(|error| self.render(error)).collect();
        Failure::new(all.join("\n"))
    }

    /// Marks the place of a mistake.
    pub(crate) fn render(&self, error: &Error) -> String {
        weir_rules::render(error, &self.name, &self.text)
    }
}
