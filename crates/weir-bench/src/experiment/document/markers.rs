//! The generated blocks of a Markdown document, between markers on lines of their own.

use super::block;
use super::results::Results;

const END: &str = "<!-- /weir-bench -->";

pub(super) struct Blocks<'a> {
    /// All experiments.
    pub(super) names: &'a [&'a str],
    pub(super) results: &'a Results,
}

impl Blocks<'_> {
    /// Fills all blocks of `document` anew.
    ///
    /// # Errors
    ///
    /// The cause and what to do, if a marker is wrong or results have no block.
    pub(super) fn fill(&self, document: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(document.len());
        let mut seen: Vec<&str> = Vec::new();
        let mut open: Option<(usize, &str)> = None;
        for (number, line) in (1..).zip(document.lines()) {
            match (marker(line), open) {
                (Marker::Begin(name), None) => {
                    self.check(number, name, &seen)?;
                    seen.push(name);
                    open = Some((number, name));
                    filled.push_str(line);
                    filled.push_str("\n\n");
                    filled.push_str(&block::of(self.results, name));
                    filled.push('\n');
                }
                (Marker::Begin(_), Some(begin)) => return Err(endless(begin)),
                (Marker::End, None) => {
                    return Err(format!(
                        "line {number} ends a block that has not begun; try without that line"
                    ));
                }
                (Marker::End, Some(_)) => {
                    open = None;
                    filled.push_str(END);
                    filled.push('\n');
                }
                (Marker::None, Some(_)) => {}
                (Marker::None, None) => {
                    filled.push_str(line);
                    filled.push('\n');
                }
            }
        }
        if let Some(begin) = open {
            return Err(endless(begin));
        }
        match self.results.names().find(|name| !seen.contains(name)) {
            Some(name) => Err(format!(
                "the results of {name} have no block; try the lines <!-- weir-bench: {name} --> and {END} in its section"
            )),
            None => Ok(filled),
        }
    }

    fn check(&self, number: usize, name: &str, seen: &[&str]) -> Result<(), String> {
        if !self.names.contains(&name) {
            return Err(format!(
                "line {number} begins a block for {name:?}, which is no experiment; try a name of weir-bench list"
            ));
        }
        if seen.contains(&name) {
            return Err(format!("line {number} begins a second block for {name}; try to remove one of them"));
        }
        Ok(())
    }
}

fn endless((number, name): (usize, &str)) -> String {
    format!("the block of {name}, which line {number} begins, has no end; try the line {END} after it")
}

enum Marker<'a> {
    Begin(&'a str),
    End,
    None,
}

fn marker(line: &str) -> Marker<'_> {
    let line = line.trim();
    if line == END {
        return Marker::End;
    }
    let name = line.strip_prefix("<!-- weir-bench:").and_then(|rest| rest.strip_suffix("-->"));
    name.map_or(Marker::None, |name| Marker::Begin(name.trim()))
}
