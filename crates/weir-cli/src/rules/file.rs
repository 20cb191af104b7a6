//! A file with rules.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use weir_rules::Error;

use super::names::{RuleNames, SetFile};
use crate::failure::Failure;
use crate::style;

/// A file with rules, and its text.
#[derive(Debug)]
pub(super) struct RuleFile {
    /// Its name, as it is shown.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) names: RuleNames,
}

impl RuleFile {
    /// Reads a file; `-` is standard input.
    pub(super) fn read(path: &Path, sets: &[SetFile]) -> Result<Self, Failure> {
        let mut text = String::new();
        let (name, result) = match path.as_os_str() == "-" {
            true => ("standard input".to_owned(), io::stdin().read_to_string(&mut text).map(|_| text)),
            false => (path.display().to_string(), fs::read_to_string(path)),
        };
        let name = style::visible(&name);
        let text =
            result.map_err(|error| Failure::new(format_args!("cannot read rules from {name}: {error}")))?;
        Ok(Self { name, text, names: RuleNames::new(path, sets) })
    }

    /// Returns a failure with all mistakes.
    pub(super) fn failure(&self, mistakes: &[Error]) -> Failure {
        let all: Vec<_> = mistakes.iter().map(|error| self.render(error)).collect();
        Failure::new(all.join("\n"))
    }

    /// Marks the place of a mistake.
    fn render(&self, error: &Error) -> String {
        weir_rules::render(error, &self.name, &self.text)
    }
}
