//! The report: one self-contained page.

use std::error::Error;
use std::fmt::Write as _;

use super::confidence::Side;
use super::digest::Digest;
use super::figure::{Figure, figures};
use super::result::Run;
use super::text::{bars, compared, number, tables, versus};
use super::{Outcome, Published, place};

const STYLE: &str = "\
body { font: 15px/1.45 sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin-top: 2.6rem; border-top: 1px solid #ccc; padding-top: 1.2rem; }
table { border-collapse: collapse; margin: .8rem 0; font-size: 14px; }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e4e4e4; font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; }
.machine td { text-align: left; }
.wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; }
.bad { color: #b02a1a; font-weight: bold; }
.good { color: #1a6d2e; }
.quiet { color: #666; }
summary { cursor: pointer; }
";

/// Makes the page.
pub(crate) fn page(run: &Run) -> Result<String, Box<dyn Error>> {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>weir-bench</title>\n<style>\n{STYLE}</style></head><body>\n<h1>weir-bench</h1>\n<p>{}</p>\n",
        escape(&run.summary)
    );
    if run.quick {
        page.push_str("<p class=\"bad\">Made with --quick: the figures mean little.</p>\n");
    }
    machine(&mut page, run);
    summary(&mut page, run);
    for outcome in &run.outcomes {
        section(&mut page, outcome)?;
    }
    page.push_str("</body></html>\n");
    Ok(page)
}

/// All that is known about the machine; older files say nothing.
fn machine(page: &mut String, run: &Run) {
    let rows = place::rows(&run.machine);
    if rows.is_empty() {
        return;
    }
    page.push_str("<details class=\"machine\"><summary>The machine</summary>\n");
    let head = [String::new(), String::new()];
    table(page, &std::iter::once(head).chain(rows).map(Vec::from).collect::<Vec<_>>());
    page.push_str("</details>\n");
}

/// What a reader must know first: where weir is behind, which targets were missed, what failed.
fn summary(page: &mut String, run: &Run) {
    let mut behind = Vec::new();
    let mut ahead = 0;
    for outcome in &run.outcomes {
        let digest = Digest::of(outcome);
        for versus in &digest.versus {
            match versus.comparison.ahead {
                Some(Side::Theirs) => {
                    let compared = compared(&digest, versus).join(" ");
                    behind.push(format!("{}: {compared}", outcome.about.title))
                }
                Some(Side::Ours) => ahead += 1,
                None => {}
            }
        }
    }
    let missed = all(run, |outcome| {
        outcome.bars.iter().filter(|bar| bar.met == Some(false)).map(|bar| bar.name.clone()).collect()
    });
    let failed = all(run, |outcome| {
        outcome.faults.iter().map(|fault| format!("{}: {}", fault.turn, fault.message)).collect()
    });
    let missing = all(run, |outcome| {
        outcome.about.missing.iter().map(|[series, why]| format!("{series}: {why}")).collect()
    });
    let met =
        run.outcomes.iter().flat_map(|outcome| &outcome.bars).filter(|bar| bar.met == Some(true)).count();
    let _infallible = writeln!(
        page,
        "<p>weir is ahead in {ahead} comparisons and behind in {}; {met} targets are met.</p>",
        behind.len()
    );
    for (title, lines) in [
        ("weir is behind", behind),
        ("Targets missed", missed),
        ("Not measured, or wrong", failed),
        ("Not installed here", missing),
    ] {
        list(page, title, &lines);
    }
    page.push_str("<p>Contents:");
    for outcome in &run.outcomes {
        let name = escape(&outcome.about.name);
        let _infallible = write!(page, " <a href=\"#{name}\">{name}</a>");
    }
    page.push_str("</p>\n");
}

fn all(run: &Run, of: impl Fn(&Outcome) -> Vec<String>) -> Vec<String> {
    let named = |outcome: &Outcome| {
        let name = outcome.about.name.clone();
        of(outcome).into_iter().map(move |text| format!("{name}: {text}")).collect::<Vec<_>>()
    };
    run.outcomes.iter().flat_map(named).collect()
}

fn list(page: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _infallible = writeln!(page, "<p class=\"bad\">{title}:</p><ul>");
    for line in lines {
        let _infallible = writeln!(page, "<li>{}</li>", escape(line));
    }
    page.push_str("</ul>\n");
}

fn section(page: &mut String, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    let (about, digest) = (&outcome.about, Digest::of(outcome));
    let (name, title, method) = (escape(&about.name), escape(&about.title), escape(&about.method));
    let _infallible = writeln!(page, "<h2 id=\"{name}\">{title}</h2>\n<p>{method}</p>");
    let drift = digest.drift.map_or_else(String::new, |drift| {
        format!("; the first round again, at the end: {:+.1} % (median of all series)", drift * 100.0)
    });
    let rounds =
        if outcome.rounds == 1 { "One round".to_owned() } else { format!("{} rounds", outcome.rounds) };
    let _infallible = writeln!(page, "<p class=\"quiet\">{rounds} in {:.0} s{drift}</p>", outcome.seconds);
    let figures = figures(&digest);
    for figure in &figures {
        let _infallible = writeln!(page, "<figure>{}</figure>", figure.svg(&[])?);
    }
    if let Some(figure) = figures.first() {
        let _infallible = writeln!(page, "<p class=\"quiet\">{}</p>", figure.legend());
    }
    for (title, rows) in tables(&digest) {
        if !title.is_empty() {
            let _infallible = writeln!(page, "<h3>{}</h3>", escape(&title));
        }
        table(page, &rows);
    }
    let versus = versus(&digest);
    if !versus.is_empty() {
        page.push_str("<h3>In the same rounds</h3>\n");
        let head = ["", "", "ratio", ""].map(str::to_owned).to_vec();
        table(page, &std::iter::once(head).chain(versus).collect::<Vec<_>>());
    }
    if !outcome.bars.is_empty() {
        page.push_str("<h3>Targets</h3>\n");
        table(page, &bars(&outcome.bars));
    }
    published(page, outcome)?;
    raw(page, outcome);
    Ok(())
}

/// The published results, drawn in the same way, and what differs.
fn published(page: &mut String, outcome: &Outcome) -> Result<(), Box<dyn Error>> {
    let about = &outcome.about;
    if about.published.is_empty() && about.differs.is_empty() {
        return Ok(());
    }
    page.push_str("<h3>Published</h3>\n");
    if let Some(measure) = about.measures.first() {
        let of = |value: &&Published| value.measure == measure.name && value.at.is_none();
        let values: Vec<_> = about.published.iter().filter(of).collect();
        if !values.is_empty() {
            let caption = format!("as published: {}, {}", measure.title, measure.unit);
            let figure = Figure::published(caption, &values);
            let _infallible = writeln!(page, "<figure>{}</figure>", figure.svg(&[])?);
        }
    }
    let mut rows = vec![["", "measure", "at", "value"].map(str::to_owned).to_vec()];
    rows.extend(about.published.iter().map(|value| {
        let at = value.at.map_or_else(String::new, number);
        vec![value.series.clone(), value.measure.clone(), at, number(value.value)]
    }));
    if rows.len() > 1 {
        table(page, &rows);
    }
    if !about.differs.is_empty() {
        page.push_str("<p>What differs:</p><ul>\n");
        for line in &about.differs {
            let _infallible = writeln!(page, "<li>{}</li>", escape(line));
        }
        page.push_str("</ul>\n");
    }
    Ok(())
}

/// Every value that was measured; round 0 repeats round 1.
fn raw(page: &mut String, outcome: &Outcome) {
    page.push_str("<details><summary>Raw values by round</summary>\n");
    let mut rows = vec![["", "measure", "at", "round: value"].map(str::to_owned).to_vec()];
    for series in &outcome.about.series {
        for measure in &outcome.about.measures {
            for at in outcome.places() {
                let of = |value: &&super::result::Value| {
                    value.series == series.name && value.measure == measure.name && value.at == at
                };
                let values: Vec<String> = outcome
                    .values
                    .iter()
                    .filter(of)
                    .map(|value| format!("{}: {}", value.round, number(value.value)))
                    .collect();
                if !values.is_empty() {
                    let at = at.map_or_else(String::new, number);
                    rows.push(vec![series.name.clone(), measure.name.clone(), at, values.join(", ")]);
                }
            }
        }
    }
    table(page, &rows);
    page.push_str("</details>\n");
}

/// The first row is the head.
fn table(page: &mut String, rows: &[Vec<String>]) {
    page.push_str("<div class=\"wide\"><table>\n");
    for (number, row) in rows.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        page.push_str("<tr>");
        for cell in row {
            let class = match cell.as_str() {
                "NO" | "BEHIND" => " class=\"bad\"",
                "yes" | "ahead" => " class=\"good\"",
                _ => "",
            };
            let _infallible = write!(page, "<{tag}{class}>{}</{tag}>", escape(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
