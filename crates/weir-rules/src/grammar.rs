//! Parses the actions of a rule.

use std::ops::Range;
use std::time::Duration;

use weir_filter::Error;

use crate::action::{Actions, CaptureAction, Fate, Key, Learn, Log, Over, Shortcut};
use crate::quantity;
use crate::syntax::trimmed;
use crate::words::Words;

/// The words with which actions begin.
const ACTIONS: [&str; 11] = [
    "capture", "ignore", "sample", "first", "pass", "block", "reflect", "bounce", "continue", "learn", "log",
];

/// What a learned rule may do.
const SHORTCUTS: [&str; 6] = ["capture", "ignore", "pass", "block", "reflect", "bounce"];

/// Parses the actions in `range` of `text`, separated by commas.
pub(crate) fn actions(text: &str, range: Range<usize>) -> Result<Actions, Error> {
    let mut parser = Parser::default();
    let mut begin = range.start;
    for part in text[range.clone()].split(',') {
        let place = trimmed(text, begin..begin + part.len());
        if place.is_empty() {
            let comma = (begin + part.len()).min(range.end - 1);
            return Err(Error::new("expected an action beside the comma", comma..comma + 1));
        }
        begin += part.len() + 1;
        parser.action(Words::new(text, place))?;
    }
    Ok(parser.actions)
}

/// The actions so far, and the words that stand for each.
#[derive(Default)]
struct Parser {
    actions: Actions,
    capture: Option<String>,
    fate: Option<String>,
}

impl Parser {
    fn action(&mut self, mut words: Words<'_>) -> Result<(), Error> {
        let word = words.value("expected an action")?;
        let place = words.span();
        match word {
            "capture" | "ignore" | "sample" | "first" => {
                self.decides(word, &place)?;
                only(&mut self.capture, word, &place)?;
                self.actions.capture = capture(word, &mut words)?;
            }
            "pass" | "block" | "reflect" | "bounce" => {
                self.decides(word, &place)?;
                only(&mut self.fate, word, &place)?;
                self.actions.fate = fate(word, &mut words)?;
                if word != "pass" {
                    self.actions.fate_over = over(&mut words)?;
                }
            }
            "continue" => {
                if let Some(decision) = self.capture.as_ref().or(self.fate.as_ref()) {
                    return Err(undecided(decision, &place));
                }
                if std::mem::replace(&mut self.actions.continues, true) {
                    return Err(twice(word, &place));
                }
            }
            "learn" => {
                if self.actions.learn.is_some() {
                    return Err(twice(word, &place).help("a rule learns one thing: write a second rule"));
                }
                self.actions.learn = Some(learn(&mut words)?);
            }
            "log" => {
                if self.actions.log.is_some() {
                    return Err(twice(word, &place));
                }
                self.actions.log = Some(Log { over: over(&mut words)? });
            }
            _ => return Err(unknown(word, &words)),
        }
        end(word, &mut words)
    }

    /// Returns an error if the rule makes no decision.
    fn decides(&self, word: &str, place: &Range<usize>) -> Result<(), Error> {
        if self.actions.continues { Err(undecided(word, place)) } else { Ok(()) }
    }
}

/// Notes which word makes a decision; only one may.
fn only(before: &mut Option<String>, word: &str, place: &Range<usize>) -> Result<(), Error> {
    match before {
        None => *before = Some(word.to_owned()),
        Some(other) if other == word => return Err(twice(word, place)),
        Some(other) if other == "capture" && ["sample", "first"].contains(&word) => {
            return Err(Error::new(format!("`{word}` contradicts `{other}`"), place.clone())
                .help(format!("without the comma, `capture {word}` captures some of the packets")));
        }
        Some(other) => {
            let help = match word {
                "pass" | "block" | "reflect" | "bounce" => {
                    "a rule has one of pass, block, reflect and bounce"
                }
                _ => "a rule has one of capture, ignore, sample and first",
            };
            return Err(Error::new(format!("`{word}` contradicts `{other}`"), place.clone()).help(help));
        }
    }
    Ok(())
}

fn twice(word: &str, place: &Range<usize>) -> Error {
    Error::new(format!("`{word}` appears twice"), place.clone())
}

fn undecided(word: &str, place: &Range<usize>) -> Error {
    Error::new(format!("`{word}` and `continue` contradict each other"), place.clone()).help(
        "a rule with `continue` decides nothing: it counts, may log and learn, and the next rules go on",
    )
}

fn unknown(word: &str, words: &Words<'_>) -> Error {
    let message = format!("unknown action `{word}`");
    // First, since `reject` is close to `reflect`, which is something else.
    if let Some(meant) = meant(word) {
        return Error::new(message, words.span()).help(meant);
    }
    let error = words.wrong(&message, &ACTIONS);
    match error.help {
        Some(_) => error,
        None => error.help(format!("actions: {}", ACTIONS.join(", "))),
    }
}

/// Returns our word for one of nftables, Suricata or others.
fn meant(word: &str) -> Option<String> {
    let ours = match word {
        "drop" | "deny" | "reject" => "block",
        "accept" | "allow" | "forward" => "pass",
        "redirect" | "fwd" => "reflect IF",
        "bypass" => "learn pass for 30s",
        "counter" | "count" => "continue",
        "save" | "record" | "write" => "capture",
        _ => return None,
    };
    Some(format!("weir's word is `{ours}`"))
}

fn capture(word: &str, words: &mut Words<'_>) -> Result<CaptureAction, Error> {
    let word = match words.peek() {
        Some("sample" | "first") if word == "capture" => words.next().unwrap_or(word),
        _ => word,
    };
    Ok(match word {
        "sample" => {
            let text = words.value("expected which part, such as 1/100, after `sample`")?;
            let every =
                text.strip_prefix("1/").and_then(|every| every.parse().ok()).filter(|&every| every > 0);
            let wrong = || Error::new(format!("`{text}` is not a share of packets"), words.span());
            CaptureAction::Sample(every.ok_or_else(|| wrong().help("1/100 is one packet of a hundred"))?)
        }
        "first" => {
            let text = words.value("expected how many packets after `first`")?;
            let wrong = || Error::new(format!("`{text}` is not a number of packets"), words.span());
            let count = text.parse().ok().filter(|&count| count > 0);
            let count = count.ok_or_else(|| wrong().help("a number from 1: first 20 of each flow"))?;
            words
                .expect(&["of", "each", "flow"])
                .map_err(|error| error.help(format!("write `first {count} of each flow`")))?;
            CaptureAction::First(count)
        }
        "capture" => CaptureAction::Capture,
        _ => CaptureAction::Ignore,
    })
}

fn fate(word: &str, words: &mut Words<'_>) -> Result<Fate, Error> {
    Ok(match word {
        "block" => Fate::Block,
        "bounce" => Fate::Bounce,
        "reflect" => {
            let interface = words.value("expected an interface after `reflect`")?;
            // IFNAMSIZ, with the zero.
            if interface.len() > 15 || interface.contains('/') {
                return Err(Error::new(format!("`{interface}` is not an interface name"), words.span()));
            }
            Fate::Reflect(interface.into())
        }
        _ => Fate::Pass,
    })
}

fn learn(words: &mut Words<'_>) -> Result<Learn, Error> {
    let shortcut = match words.one_of(&SHORTCUTS)? {
        "capture" => Shortcut::Capture,
        "ignore" => Shortcut::Ignore,
        word => Shortcut::Fate(fate(word, words)?),
    };
    words
        .expect(&["for"])
        .map_err(|error| error.help(format!("say for how long: `learn {shortcut} for 30s`")))?;
    let (lasting, idle) = lasting(words, "30s")?;
    let both = words.takes("in");
    if both {
        words.expect(&["both", "directions"])?;
    }
    Ok(Learn { shortcut, lasting, idle, both, over: over(words)? })
}

/// Parses how long an exact rule is in force, behind `for`: a time, such as `example`, and whether `idle` follows.
pub(crate) fn lasting(words: &mut Words<'_>, example: &str) -> Result<(Duration, bool), Error> {
    let text = words.value(&format!("expected a time, such as {example}, after `for`"))?;
    let lasting = quantity::time(text).map_err(|allowed| {
        let help = if text == "idle" { format!("write `for {example} idle`") } else { allowed };
        Error::new(format!("`{text}` is not a time"), words.span()).help(help)
    })?;
    Ok((lasting, words.takes("idle")))
}

/// Parses `if over RATE by KEY`, if it follows.
fn over(words: &mut Words<'_>) -> Result<Option<Over>, Error> {
    if !words.takes("if") {
        return Ok(None);
    }
    words.expect(&["over"])?;
    let text = words.value("expected a rate, such as 100/s, after `over`")?;
    let rate = quantity::rate(text)
        .map_err(|allowed| Error::new(format!("`{text}` is not a rate"), words.span()).help(allowed))?;
    words.expect(&["by"]).map_err(|error| error.help("say of what: `by src`, `by dst` or `by flow`"))?;
    let key = match words.one_of(&["src", "dst", "flow"])? {
        "src" => Key::Source,
        "dst" => Key::Destination,
        _ => Key::Flow,
    };
    Ok(Some(Over { rate, key }))
}

/// Returns an error if words follow.
fn end(action: &str, words: &mut Words<'_>) -> Result<(), Error> {
    let Some(word) = words.next() else { return Ok(()) };
    let message = format!("unexpected `{word}` after `{action}`");
    let help = match word {
        "in" if action == "learn" => "`in both directions` stands before `if over`",
        "idle" if action == "learn" => "`idle` stands behind the time: `for 30s idle`",
        "if" => "`if over` belongs to block, reflect, bounce, learn and log",
        "->" => "one rule per line",
        _ if ACTIONS.contains(&word) => "a comma separates actions",
        _ => return Err(words.wrong(&message, following(action))),
    };
    Err(Error::new(message, words.span()).help(help))
}

/// Returns the words that may follow an action.
fn following(action: &str) -> &'static [&'static str] {
    match action {
        "capture" => &["sample", "first"],
        "learn" => &["if", "in", "idle"],
        _ => &["if"],
    }
}
