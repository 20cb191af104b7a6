//! All rules of a file, and their filters.

use std::collections::HashMap;
use std::ops::Range;

use weir_filter::{BehindFields, Error, Filter, Options};

use crate::action::Actions;
use crate::grammar;
use crate::syntax::{self, Line};

/// The name of what is no rule, in tables.
const TOTAL: &str = "total";

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name; `line-N` if it has none in the file.
    pub name: String,
    /// Number of its first line, from 1.
    pub line: usize,
    /// Its expression, without comments; empty if it is for every packet.
    pub expression: String,
    /// Where the expression is in the file.
    pub place: Range<usize>,
    /// What it does.
    pub actions: Actions,
}

/// Rules, of which the first that matches decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    /// In the order of the file.
    pub rules: Vec<Rule>,
}

impl RuleSet {
    /// Reads a file. Expressions are not looked at before they are [compiled](Self::compile).
    ///
    /// # Errors
    ///
    /// The first mistake of each rule.
    pub fn parse(text: &str) -> Result<Self, Vec<Error>> {
        Self::parse_and(text, |_| Ok(())).map(|(set, ())| set)
    }

    /// Reads a file and compiles its expressions.
    ///
    /// # Errors
    ///
    /// The first mistake in the expression of each rule, which `compile` finds, and the first elsewhere in it; in the order of the file.
    pub fn parse_and<T>(
        text: &str,
        compile: impl FnOnce(&Self) -> Result<T, Vec<Error>>,
    ) -> Result<(Self, T), Vec<Error>> {
        let (set, mut mistakes) = Self::read(text);
        match compile(&set) {
            Ok(compiled) if mistakes.is_empty() => return Ok((set, compiled)),
            Ok(_) => {}
            Err(more) => mistakes.extend(more),
        }
        mistakes.sort_by_key(|mistake| mistake.span.start);
        Err(mistakes.into_iter().map(|mistake| syntax::explain(mistake, text)).collect())
    }

    /// Returns the rules whose expressions can be looked at, and all other mistakes.
    fn read(text: &str) -> (Self, Vec<Error>) {
        let plain = syntax::without_comments(text);
        let mut rules: Vec<Rule> = Vec::new();
        let mut lines_of_names = HashMap::new();
        let mut mistakes = Vec::new();
        for line in syntax::lines(text, &plain) {
            let (rule, named, mistake) = match line.and_then(|line| rule(&plain, line)) {
                Ok(rule) => rule,
                Err(error) => {
                    mistakes.push(error);
                    continue;
                }
            };
            mistakes.extend(mistake);
            if let Some(other) = lines_of_names.insert(rule.name.clone(), rule.line) {
                let message = format!("the rule on line {other} is named `{}`, too", rule.name);
                mistakes.push(Error::new(message, named).help("each rule has a name of its own"));
            }
            rules.push(rule);
        }
        (Self { rules }, mistakes)
    }

    /// Compiles the expression of each rule.
    ///
    /// # Errors
    ///
    /// What is wrong with each, and where in the file.
    pub fn compile(&self, options: &Options<'_>) -> Result<Compiled, Vec<Error>> {
        let filters = self.compile_by(|text| {
            let filter = weir_filter::compile(text, options)?;
            filter.lacks(options).map_or(Ok(filter), Err)
        })?;
        Ok(Compiled { link_type: options.link_type, filters })
    }

    /// Compiles each for Ethernet frames, but no further than needed if their fields are looked up first.
    ///
    /// # Errors
    ///
    /// As for [`compile`](Self::compile).
    pub fn compile_behind_fields(&self, options: &Options<'_>) -> Result<Vec<BehindFields>, Vec<Error>> {
        self.compile_by(|text| weir_filter::compile_behind_fields(text, options))
    }

    fn compile_by<T>(&self, compile: impl Fn(&str) -> Result<T, Error>) -> Result<Vec<T>, Vec<Error>> {
        let (mut all, mut mistakes) = (Vec::new(), Vec::new());
        for rule in &self.rules {
            match compile(&rule.expression) {
                Ok(compiled) => all.push(compiled),
                Err(error) => mistakes.push(rule.in_file(error)),
            }
        }
        if mistakes.is_empty() { Ok(all) } else { Err(mistakes) }
    }
}

impl Rule {
    /// Moves an error from the expression to the file.
    pub fn in_file(&self, error: Error) -> Error {
        let within = |at: usize| (self.place.start + at).min(self.place.end);
        let span = within(error.span.start)..within(error.span.end);
        // `dns:port 53`: the name is in the expression.
        let glued = self.expression.split_once(':').filter(|(name, _)| syntax::is_name(name));
        match glued {
            Some((name, _)) if error.span.end <= name.len() + 1 => {
                let help = format!("if `{name}` is the rule's name, put a blank behind the colon");
                Error { span, help: Some(help), ..error }
            }
            // A misspelt word is likelier than a name.
            _ if error.help.as_ref().is_some_and(|help| help.starts_with("did you mean")) => {
                Error { span, ..error }
            }
            _ => match self.bare_name().filter(|name| error.span == (0..name.len())) {
                Some(name) => {
                    let help = error.help.map(|help| format!("{help}; ")).unwrap_or_default();
                    let help = format!("{help}if `{name}` is the rule's name, put a colon behind it");
                    Error { span, help: Some(help), ..error }
                }
                None => Error { span, ..error },
            },
        }
    }

    /// Returns the first word of several that may be the name of a rule without one.
    fn bare_name(&self) -> Option<&str> {
        let has_none = self.name == format!("line-{}", self.line);
        let (first, _) = self.expression.split_once(char::is_whitespace).filter(|_| has_none)?;
        syntax::is_name(first).then_some(first)
    }

    /// Returns where a word is among the rule's actions in the text of its file; without it, where the arrow is.
    pub fn action_place(&self, text: &str, word: &str) -> Range<usize> {
        let plain = syntax::without_comments(text);
        let arrow =
            plain[self.place.end..].find(syntax::ARROW).map_or(self.place.end, |at| self.place.end + at);
        let begin = (arrow + syntax::ARROW.len()).min(plain.len());
        let end = plain[begin..].find('\n').map_or(plain.len(), |at| begin + at);
        let separates = |letter: char| letter == ',' || letter.is_whitespace();
        let mut at = begin;
        for part in plain[begin..end].split(separates) {
            if part == word {
                return at..at + part.len();
            }
            at += part.len() + plain[at + part.len()..].chars().next().map_or(0, char::len_utf8);
        }
        arrow..begin
    }

    /// Returns the expression on one line.
    pub fn label(&self) -> String {
        self.expression.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// Returns a rule, and where its name is; of one without a name, its first word. With a mistake in its actions it has none, but an
/// expression, in which there may be a mistake, too.
fn rule(plain: &str, line: Line) -> Result<(Rule, Range<usize>, Option<Error>), Error> {
    let Line { number, name, expression: place, actions } = line;
    let named = name.clone().unwrap_or_else(|| {
        let begin = if place.is_empty() { actions.start } else { place.start };
        begin..begin + plain[begin..].find(char::is_whitespace).unwrap_or(plain.len() - begin)
    });
    if name.clone().is_some_and(|name| &plain[name] == TOTAL) {
        let message = format!("a rule cannot be named `{TOTAL}`");
        return Err(Error::new(message, named).help("that is what weir calls the sum of all rules"));
    }
    let (actions, mistake) = match grammar::actions(plain, actions) {
        Ok(actions) => (actions, None),
        Err(mistake) => (Actions::default(), Some(mistake)),
    };
    let name = name.map_or_else(|| format!("line-{number}"), |name| plain[name].to_owned());
    let expression = plain[place.clone()].to_owned();
    Ok((Rule { name, line: number, expression, place, actions }, named, mistake))
}

/// Renders a mistake for people: file, line and column, the message, the line with the place marked under it, and what was
/// probably meant.
///
/// ```text
/// edge.rules:3:12: unknown action `blck`
///   bad: ip -> blck
///              ^^^^
/// did you mean `block`?
/// ```
pub fn render(error: &Error, file: &str, text: &str) -> String {
    let (number, column) = position(error, text);
    let start = line_start(error, text);
    let line = text[start..].lines().next().unwrap_or_default();
    let span = error.span.start.saturating_sub(start)..error.span.end.saturating_sub(start);
    format!("{file}:{number}:{column}: {}", Error { span, ..error.clone() }.render(line))
}

/// Returns the line and the column of a mistake, in letters, both from 1.
pub fn position(error: &Error, text: &str) -> (usize, usize) {
    let start = line_start(error, text);
    let before = text.get(start..error.span.start).unwrap_or_default();
    (syntax::line_number(text, start), before.chars().count() + 1)
}

/// Returns where the line begins that the error is in.
fn line_start(error: &Error, text: &str) -> usize {
    text.get(..error.span.start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1)
}

/// The filters of a rule set, for packets of one link type.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Link type of the packets (`LINKTYPE_*`).
    pub link_type: u16,
    /// The filter of each rule, with its expression and its graph: another engine than this crate's may take from them what
    /// it can look up at once, such as addresses, ports, protocols and VLAN tags.
    pub filters: Vec<Filter>,
}

#[cfg(test)]
mod tests;
