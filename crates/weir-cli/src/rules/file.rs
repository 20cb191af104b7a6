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

/// So many mistakes are shown.
const MOST: usize = 20;

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
        let mut bytes = Vec::new();
        let (name, result) = match path.as_os_str() == "-" {
            true => ("standard input".to_owned(), io::stdin().read_to_end(&mut bytes).map(|_| bytes)),
            false => (path.display().to_string(), fs::read(path)),
        };
        let name = style::visible(&name);
        let failed = |why: String| Failure::new(format_args!("cannot read rules from {name}: {why}"));
        let bytes = result.map_err(|error| failed(error.to_string()))?;
        let text = text(bytes).map_err(|why| failed(why).hint("save the file as UTF-8"))?;
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
        let compile = |set: &RuleSet| {
            let (mut filters, mut mistakes) = (Vec::new(), Vec::new());
            for rule in &set.rules {
                let filter = Filter::new(&rule.expression).names(self.names.clone()).netmask(netmask);
                match FileFilter::new(filter) {
                    Ok(filter) => filters.push(filter),
                    Err(error) => mistakes.push(rule.in_file(error.error().clone())),
                }
            }
            if mistakes.is_empty() { Ok(filters) } else { Err(mistakes) }
        };
        let rules = RuleSet::parse_and(&self.text, compile).map_err(|mistakes| self.failure(&mistakes))?;
        self.warn_of_sets();
        Ok(rules)
    }

    /// Warns of sets that `--set` names, but no rule, once the rules are compiled.
    pub(super) fn warn_of_sets(&self) {
        for (set, meant) in self.names.unused() {
            let warning = style::stderr().yellow("warning");
            let meant = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
            style::say(format_args!(
                "{warning}: --set {set}: no rule in {} asks for `@{set}`{meant}",
                self.name
            ));
        }
    }

    /// Returns a failure with all mistakes, or with the first of very many. Each looks like a message of its own.
    pub(super) fn failure(&self, mistakes: &[Error]) -> Failure {
        let all: Vec<_> = mistakes.iter().take(MOST).map(|error| self.render(error)).collect();
        let mut message = all.join(&format!("\n{}: ", style::stderr().red("weir")));
        if mistakes.len() > MOST {
            message += &format!("\n... and {} more", mistakes.len() - MOST);
        }
        Failure::new(message)
    }

    /// Marks the place of a mistake.
    pub(crate) fn render(&self, error: &Error) -> String {
        weir_rules::render(error, &self.name, &self.text)
    }
}

/// Returns the bytes of a file as text, or why they are none.
fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> RuleFile {
        RuleFile {
            name: "a.rules".to_owned(),
            text: text.to_owned(),
            path: PathBuf::new(),
            names: RuleNames::new(Path::new("a.rules"), &[]),
        }
    }

    fn message(text: &str) -> String {
        file(text).failure(&RuleSet::parse(text).expect_err(text)).message().to_owned()
    }

    #[test]
    fn every_mistake_is_a_message_and_very_many_are_counted() {
        let said = message(&"ip -> nothing\n".repeat(20));
        let begins = said.lines().filter(|line| line.contains("a.rules:")).collect::<Vec<_>>();
        assert!(begins.len() == 20 && begins[0].starts_with("a.rules:1:7: "), "{said}");
        assert!(begins[1..].iter().all(|line| line.contains("weir")), "{said}");
        assert!(!said.contains("more"), "{said}");
        let said = message(&"ip -> nothing\n".repeat(23));
        assert!(said.contains("a.rules:20:7: ") && !said.contains("a.rules:21:"), "{said}");
        assert!(said.ends_with("\n... and 3 more"), "{said}");
    }

    #[test]
    fn bytes_that_are_no_text_have_a_line() {
        assert_eq!(text("# é\nip -> capture\n".into()), Ok("# é\nip -> capture\n".to_owned()));
        assert_eq!(text(b"# \xe9\n".to_vec()), Err("line 1 is not UTF-8".to_owned()));
        assert_eq!(text(b"ip -> log\n# \xc3\xa9\n\n# \xe9".to_vec()), Err("line 4 is not UTF-8".to_owned()));
    }
}
