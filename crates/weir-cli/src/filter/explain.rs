//! Explains how terms are joined, what each matches, and which bytes it reads.

use serde::Serialize;
use weir::filter::Compiled;
use weir_filter::graph::{Graph, TermId};

use super::{NEVER, Needs, print, print_json, reads, terms};
use crate::failure::Failure;
use crate::{link_types, style};

#[derive(Serialize)]
struct Explained<'a> {
    expression: &'a str,
    /// The expression with all qualifiers and parentheses, which is the same; empty: every packet.
    understood: String,
    link_type: u16,
    /// Whether no packet can match.
    never_matches: bool,
    needs: Needs,
    terms: Vec<Term<'a>>,
    /// What is read to find the headers for all terms.
    headers: Vec<String>,
}

#[derive(Serialize)]
struct Term<'a> {
    text: &'a str,
    /// Explanation of what it matches.
    matches: String,
    reads: Vec<String>,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Show {
    /// What each term matches.
    Words,
    /// Also the bytes that it reads.
    Bytes,
    /// Everything, as one object.
    Json,
}

pub(super) fn run(compiled: &Compiled, needs: Needs, link_type: u16, show: Show) -> Result<(), Failure> {
    let mut reads = reads::of_terms(&compiled.lowered);
    let mut terms_explained = Vec::new();
    let are_inner = compiled.ast.are_inner();
    for (index, (text, term)) in terms(compiled).into_iter().zip(&compiled.ast.terms).enumerate() {
        let id = TermId(u32::try_from(index).expect("terms are counted in 32 bits"));
        let inside = if are_inner[index] { ", inside a tunnel" } else { "" };
        let matches = compiled.ast.explain(term) + inside;
        terms_explained.push(Term { text, matches, reads: reads.remove(&id).unwrap_or_default() });
    }
    let explained = Explained {
        expression: &compiled.text,
        understood: match show {
            Show::Json => format!("{:#}", compiled.ast.joined()),
            Show::Words | Show::Bytes => compiled.ast.joined().to_string(),
        },
        link_type,
        never_matches: compiled.graph.root() == Graph::REFUSE,
        needs,
        terms: terms_explained,
        headers: reads.remove(&TermId::NONE).unwrap_or_default(),
    };
    match show {
        Show::Json => print_json(&explained),
        Show::Words | Show::Bytes => print(&explained.text(show == Show::Bytes)),
    }
}

impl Explained<'_> {
    fn text(&self, bytes: bool) -> String {
        let paint = style::stdout();
        let mut lines = vec![format!("{} for {}", paint.bold(self.what()), link_types::name(self.link_type))];
        if self.terms.len() > 1 {
            lines.push(format!("understood as: {}", self.understood));
        }
        for term in &self.terms {
            lines.push(String::new());
            lines.push(format!("  {}", paint.cyan(term.text)));
            lines.push(format!("      matches {}", term.matches));
            if bytes && !term.reads.is_empty() {
                lines.extend(listed("      reads", &term.reads).map(|line| paint.dim(line)));
            }
        }
        if bytes && !self.headers.is_empty() {
            lines.push(String::new());
            lines.extend(listed("  to find the headers:", &self.headers).map(|line| paint.dim(line)));
        }
        if let Some(told) = self.needs.told() {
            lines.push(String::new());
            lines.push(format!("  {told}"));
        }
        if self.never_matches {
            lines.push(String::new());
            lines.push(paint.yellow(format_args!("  {NEVER}")));
        }
        lines.join("\n") + "\n"
    }

    fn what(&self) -> String {
        match (self.expression.trim(), self.terms.len()) {
            ("", _) => "Every packet".to_owned(),
            (_, 1) => "1 term".to_owned(),
            (_, count) => format!("{count} terms"),
        }
    }
}

/// Prints `items` after `before`, wrapped onto further lines if necessary.
fn listed(before: &str, items: &[String]) -> impl Iterator<Item = String> {
    let indent = before.len() - before.trim_start().len() + 4;
    let width = style::columns().clamp(40, 110);
    let mut lines = vec![before.to_owned()];
    for item in items {
        let line = lines.last_mut().expect("never empty");
        if line.len() + 1 + item.len() > width {
            lines.push(format!("{:indent$}{item}", ""));
        } else {
            line.push(' ');
            line.push_str(item);
        }
    }
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_wrapped() {
        let items: Vec<String> = (0..40).map(|at| format!("[header + {at}:1]")).collect();
        let lines: Vec<String> = listed("  reads", &items).collect();
        assert!(lines.len() > 3 && lines[0].starts_with("  reads [header + 0:1] "), "{lines:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("      [")), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= 110), "{lines:?}");
        assert_eq!(lines.join(" ").split_whitespace().count(), 1 + 40 * 3);
    }
}
