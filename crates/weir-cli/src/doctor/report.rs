//! Prints the checks.

use super::check::{Check, CheckState, NOT_PERMITTED, THERE};
use crate::style::{Paint, wrap};

/// Widths of the state and name columns.
const STATE: usize = 7;
const NAME: usize = 17;
const INDENT: usize = 2 + STATE + 2 + NAME + 2;

/// Returns the report, wrapped at `columns` between words.
pub(super) fn report(checks: &[Check], conclusion: &str, columns: usize, paint: Paint) -> String {
    let width = columns.clamp(60, 120) - INDENT;
    let mut text = String::new();
    let mut group = "";
    let mut last_remedy = None;
    for check in checks {
        if check.group != group {
            if !group.is_empty() {
                text.push('\n');
            }
            group = &check.group;
            text.push_str(&format!("{}\n", paint.bold(title(group))));
            for (state, found) in [(CheckState::Ok, THERE), (CheckState::Unknown, NOT_PERMITTED)] {
                let same = checks.iter().filter(|other| other.group == group && is(other, state, found));
                let names: Vec<&str> = same.map(|check| check.name).collect();
                if !names.is_empty() {
                    let words = names.join(", ");
                    text.push_str(&line(&Check { state, ..Check::ok(found, words) }, width, paint));
                }
            }
            last_remedy = None;
        }
        if is(check, CheckState::Ok, THERE) || is(check, CheckState::Unknown, NOT_PERMITTED) {
            continue;
        }
        // A repeated fix is printed once.
        let repeated = check.remedy.is_some() && check.remedy.as_ref() == last_remedy;
        let shown = if repeated { Check { remedy: None, ..check.clone() } } else { check.clone() };
        last_remedy = check.remedy.as_ref().or(last_remedy);
        text.push_str(&line(&shown, width, paint));
    }
    text.push('\n');
    for (number, line) in wrap(conclusion, columns.clamp(60, 120)).iter().enumerate() {
        text.push_str(&format!("{}\n", if number == 0 { paint.bold(line) } else { line.clone() }));
    }
    text
}

fn is(check: &Check, state: CheckState, found: &str) -> bool {
    check.state == state && check.found == found
}

/// Capitalises the first letter, except in a name.
fn title(group: &str) -> String {
    let mut letters = group.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn line(check: &Check, width: usize, paint: Paint) -> String {
    let state = match check.state {
        CheckState::Ok => paint.green(format!("{:<STATE$}", "ok")),
        CheckState::Note => paint.cyan(format!("{:<STATE$}", "note")),
        CheckState::Weak => paint.yellow(format!("{:<STATE$}", "weak")),
        CheckState::Missing => paint.red(format!("{:<STATE$}", "missing")),
        CheckState::Unknown => paint.dim(format!("{:<STATE$}", "?")),
    };
    let said = match &check.why {
        Some(why) => format!("{}: {why}", check.found),
        None => check.found.clone(),
    };
    let mut text = String::new();
    for (number, words) in wrap(&said, width).into_iter().enumerate() {
        match number {
            0 => text.push_str(&format!("  {state}  {:<NAME$}  {words}\n", check.name)),
            _ => text.push_str(&format!("{:INDENT$}{words}\n", "")),
        }
    }
    // Not wrapped, so that it can be copied.
    if let Some(remedy) = &check.remedy {
        text.push_str(&format!("{:INDENT$}{} {remedy}\n", "", paint.cyan("->")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_says_what_why_and_how_to_fix_it() {
        let check = Check::weak("ring", "256 of 4096").why("it overruns").remedy("ethtool -G eth0 rx 4096");
        let text = line(&check, 50, Paint::PLAIN);
        let expected = format!(
            "  weak     {:<NAME$}  256 of 4096: it overruns\n{:INDENT$}-> ethtool -G eth0 rx 4096\n",
            "ring", ""
        );
        assert_eq!(text, expected);
    }
}
