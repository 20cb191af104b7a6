//! weir-filter(7), the manual page of the filter language, made from docs/filter.md.
//!
//! It understands the Markdown that the document uses: sections, paragraphs, lists, code, and tables, whose rows become
//! paragraphs.

use clap_mangen::roff::{Inline, Roff, bold, roman};

const DOCUMENT: &str = include_str!("../../../../docs/filter.md");

/// Returns the page.
pub(super) fn page(version: &str) -> String {
    let mut roff = Roff::new();
    roff.control("TH", ["WEIR-FILTER", "7", "", version, "Miscellaneous Information Manual"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("weir-filter - filter expressions of weir")]);
    roff.control("SH", ["DESCRIPTION"]);
    // The first line is the title.
    body(&mut roff, DOCUMENT.lines().skip(1));
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("weir(1), weir-filter(1), weir-capture(1), weir-read(1), pcap-filter(7)")]);
    roff.render()
}

fn body(roff: &mut Roff, lines: impl Iterator<Item = &'static str>) {
    let (mut is_code, mut is_new, mut head) = (false, true, Vec::new());
    for line in lines {
        if line.starts_with("```") {
            is_code = !is_code;
            roff.control(if is_code { "EX" } else { "EE" }, []);
        } else if is_code {
            roff.text([roman(line)]);
        } else if line.is_empty() {
            head.clear();
            is_new = true;
            continue;
        } else if let Some(title) = line.strip_prefix("## ") {
            roff.control("SH", [title.to_uppercase().as_str()]);
        } else if let Some(row) = line.strip_prefix('|') {
            table(roff, row, &mut head);
        } else if let Some(item) = line.strip_prefix("- ") {
            roff.control("IP", ["-", "2"]);
            roff.text(inline(item));
        } else {
            if is_new {
                roff.control("PP", []);
            }
            roff.text(inline(line.trim_start()));
        }
        is_new = false;
    }
}

/// Writes a row: the first cell, and below it the others, each after the title of its column if it has one.
fn table<'a>(roff: &mut Roff, row: &'a str, head: &mut Vec<&'a str>) {
    let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").map(str::trim).collect();
    if head.is_empty() {
        *head = cells;
        return;
    }
    if row.starts_with("--") {
        return;
    }
    roff.control("TP", []);
    roff.text(inline(cells[0]));
    for (number, cell) in cells.iter().enumerate().skip(1) {
        if number > 1 {
            roff.control("br", []);
        }
        let title = head.get(number).filter(|title| !title.is_empty());
        let mut words: Vec<Inline> = title.map(|title| inline(&format!("{title}: "))).unwrap_or_default();
        words.extend(inline(cell));
        roff.text(words);
    }
}

/// Returns a text with what is in backquotes or double stars in bold; of a link, only its text.
fn inline(text: &str) -> Vec<Inline> {
    let mut words = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            words.push(bold(part.replace("\\|", "|")));
            continue;
        }
        for (number, part) in unlinked(part).split("**").enumerate() {
            words.push(if number % 2 == 1 { bold(part) } else { roman(part) });
        }
    }
    words
}

fn unlinked(text: &str) -> String {
    let Some((before, rest)) = text.split_once('[') else { return text.to_owned() };
    match rest.split_once("](").and_then(|(name, rest)| Some((name, rest.split_once(')')?.1))) {
        Some((name, after)) => format!("{before}{name}{}", unlinked(after)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn groff_shows_the_whole_document() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("weir-filter.7");
        std::fs::write(&file, page("weir")).expect("room");
        let output = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-Kutf8", "-rLL=2000n", "-P-c", "-P-u", "-P-b", "-P-o"])
            .arg(&file)
            .output()
            .expect("groff is installed");
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        let shown: Vec<&str> = text.split_whitespace().collect();
        let mark = |c: char| "`*|[]()#-".contains(c);
        let missing: Vec<&str> = DOCUMENT
            .lines()
            .filter(|line| !line.starts_with("```") && !line.contains("]("))
            .flat_map(str::split_whitespace)
            .map(|word| word.trim_matches(mark))
            .filter(|word| word.chars().all(char::is_alphanumeric) && !word.is_empty())
            .filter(|word| !shown.iter().any(|other| other.to_lowercase().contains(&word.to_lowercase())))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(!text.contains("**") && !text.contains("]("), "{text}");
    }
}
