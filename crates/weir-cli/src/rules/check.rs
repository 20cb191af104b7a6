//! `weir rules check`: mistakes, what each rule does, and which never match.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use weir_filter::regions::regions;
use weir_filter::{Beside, Dialect, Filter, Options};
use weir_render::json;
use weir_rules::{Actions, Error, Fate, Finding, Rule, RuleSet};

use super::file::RuleFile;
use super::names::SetFile;
use crate::failure::{Failure, printed};
use crate::filter_args::netmask;
use crate::{link_types, out, style};

const EXAMPLES: &str = "\
Examples:
  weir rules check edge.rules
        Show what each rule does.
  weir rules check edge.rules --set blocklist=/var/lib/blocked
        Read @blocklist from another file than the one called blocklist beside edge.rules.
  echo 'port 53 -> capture, block' | weir rules check -
        Check rules from standard input.

A rule set:
  bad:   host in @blocklist        -> capture, block
  dns:   port 53                   -> capture
  noise: udp port 5353             -> ignore
  bulk:  tcp port 443              -> capture first 20 of each flow
  scan:  tcp[tcpflags] == tcp-syn  -> capture, block if over 100/s by src
  all:   ip                        -> continue, log if over 1000/s by dst
  rest:                            -> sample 1/100

The first rule that matches decides twice: what the capture does with the packet (capture, ignore, \
sample 1/N, first N of each flow), and what happens to the packet (pass, block, reflect IF, bounce). \
Rules with continue only count, learn and log. What no rule matches is ignored and passes. \
docs/rules.md has the details. In the kernel (weir guard), rules about addresses, ports, protocols, directions and VLAN tags are looked up together, \
however many they are; one that `needs a filter` costs time for each packet that the rest of it lets through to its filter.

Exit status: 0 no mistakes, 1 mistakes, 2 usage error.";

/// What to check.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckRulesArgs {
    /// File with rules; - is standard input.
    file: PathBuf,

    /// Read the set @NAME from FILE; default: the file NAME beside the rules.
    #[arg(long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse)]
    sets: Vec<SetFile>,

    /// Link type of the packets, by name or number.
    #[arg(short = 'y', long, value_name = "LINKTYPE", value_parser = link_types::parse, default_value = "EN10MB")]
    link_type: u16,

    /// IPv4 netmask for `ip broadcast`: 255.255.255.0 or /24.
    #[arg(hide_short_help = true, long, value_name = "MASK", value_parser = netmask)]
    netmask: Option<Ipv4Addr>,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What is odd, with the number of the rule.
type Findings = Vec<(usize, Finding)>;

/// The rules, and what is known of them.
#[derive(Debug)]
struct Looked {
    set: RuleSet,
    findings: Findings,
    /// For each rule, whether it needs a filter, because its fields do not say it all; none: for packets other
    /// than Ethernet.
    filtered: Vec<bool>,
}

/// `LINKTYPE_ETHERNET`.
const ETHERNET: u16 = 1;

/// The result, as an object.
#[derive(Debug, Serialize)]
struct Checked<'a> {
    file: &'a str,
    link_type: u16,
    /// Empty if there are mistakes.
    rules: Vec<CheckedRule<'a>>,
    mistakes: Vec<Mistake<'a>>,
}

#[derive(Debug, Serialize)]
struct CheckedRule<'a> {
    name: &'a str,
    line: usize,
    expression: String,
    /// Whether the next rules are asked, too.
    r#continue: bool,
    /// What the capture does; a rule that continues decides nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<String>,
    /// What happens to the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    fate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    learn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// Whether the kernel has to run a filter for it, and not only look it up in tables; absent for packets other than Ethernet.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs_filter: Option<bool>,
    /// What is odd about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    /// Earlier rules that leave it no packet, or nothing to learn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because_of: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct Mistake<'a> {
    line: usize,
    column: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<&'a str>,
}

/// Runs the command.
pub(super) fn run(args: &CheckRulesArgs) -> Result<(), Failure> {
    let file = RuleFile::read(&args.file, &args.sets)?;
    match look(args, &file) {
        Ok(looked) if args.json => print(&checked(args, &file, &looked)),
        Ok(looked) => {
            let Looked { set, findings, .. } = &looked;
            out::print(table(&looked).as_bytes())?;
            if set.rules.is_empty() {
                let warning = style::stderr().yellow("warning");
                style::say(format_args!(
                    "{warning}: {}: there are no rules: no packet is captured, and every packet passes",
                    file.name
                ));
            }
            for (number, finding) in findings {
                let rule = &set.rules[*number];
                let warning = style::stderr().yellow("warning");
                let said = said(finding, set);
                style::say(format_args!("{warning}: {}:{}: `{}` {said}", file.name, rule.line, rule.name));
            }
            let interfaces = reflected_to(set);
            if !interfaces.is_empty() {
                let (note, names) = (style::stderr().yellow("note"), interfaces.join("`, `"));
                style::say(format_args!(
                    "{note}: {}: not checked: whether `{names}` can be reflected to; weir guard looks for interfaces",
                    file.name
                ));
            }
            Ok(())
        }
        Err(mistakes) if args.json => {
            print(&Checked {
                mistakes: mistakes.iter().map(|error| mistake(error, &file)).collect(),
                ..empty(args, &file)
            })?;
            Err(file.failure(&mistakes))
        }
        Err(mistakes) => Err(file.failure(&mistakes)),
    }
}

/// Returns the rules and what is odd about them, or the mistakes.
fn look(args: &CheckRulesArgs, file: &RuleFile) -> Result<Looked, Vec<Error>> {
    let options = Options {
        dialect: Dialect::Weir,
        link_type: args.link_type,
        snap_len: weir::DEFAULT_SNAP_LEN,
        metadata: Beside::Direction,
        swapped: false,
        others: &[],
        netmask: args.netmask.map(u32::from),
        names: &file.names,
    };
    let (set, compiled) = RuleSet::parse_and(&file.text, |set| set.compile(&options))?;
    file.warn_of_sets();
    let findings = weir_rules::findings(&set, &compiled, &options);
    let needs_filter = |filter: &Filter| regions(&filter.ast).iter().any(|region| !region.exact);
    let ethernet = (args.link_type == ETHERNET).then(|| compiled.filters.iter().map(needs_filter).collect());
    Ok(Looked { set, findings, filtered: ethernet.unwrap_or_default() })
}

/// Returns the interfaces that packets are reflected to, each once.
fn reflected_to(set: &RuleSet) -> Vec<String> {
    let fates = set.rules.iter().flat_map(|rule| {
        let learned = rule.actions.learn.as_ref().map(|learn| learn.shortcut.decisions().1);
        [Some(rule.actions.fate.clone()), learned].into_iter().flatten()
    });
    let mut names: Vec<String> = Vec::new();
    for fate in fates {
        if let Fate::Reflect(interface) = fate
            && !names.iter().any(|name| **name == *interface)
        {
            names.push(interface.to_string());
        }
    }
    names
}

/// Says what is odd about a rule.
fn said(finding: &Finding, set: &RuleSet) -> String {
    let name = |number: &usize| format!("`{}`", set.rules[*number].name);
    match finding {
        Finding::Never => "matches no packet".to_owned(),
        Finding::Covered { by } => {
            let names: Vec<_> = by.iter().map(name).collect();
            let decide = if by.len() == 1 { "decides" } else { "decide" };
            format!("matches no whole packet: {} {decide} before", names.join(", "))
        }
        Finding::NoFlow => "learns nothing: its packets are not IP, and belong to no flow".to_owned(),
        Finding::Moot { by } => {
            format!("learns nothing: {} has learned from all its packets before", name(by))
        }
    }
}

fn empty<'a>(args: &CheckRulesArgs, file: &'a RuleFile) -> Checked<'a> {
    Checked { file: &file.name, link_type: args.link_type, rules: Vec::new(), mistakes: Vec::new() }
}

fn checked<'a>(
    args: &CheckRulesArgs,
    file: &'a RuleFile,
    Looked { set, findings, filtered }: &'a Looked,
) -> Checked<'a> {
    let rule = |(number, rule): (usize, &'a Rule)| {
        let finding = findings.iter().find(|(of, _)| *of == number).map(|(_, finding)| finding);
        let because_of = match finding {
            Some(Finding::Covered { by }) => by.clone(),
            Some(Finding::Moot { by }) => vec![*by],
            _ => Vec::new(),
        };
        let [capture, fate] = decisions(&rule.actions);
        CheckedRule {
            name: &rule.name,
            line: rule.line,
            expression: rule.label(),
            r#continue: rule.actions.continues,
            capture,
            fate,
            learn: rule.actions.learn.as_ref().map(ToString::to_string),
            log: rule.actions.log.as_ref().map(ToString::to_string),
            needs_filter: filtered.get(number).copied(),
            warning: finding.map(|finding| said(finding, set)),
            because_of: because_of.into_iter().map(|number| set.rules[number].name.as_str()).collect(),
        }
    };
    Checked { rules: set.rules.iter().enumerate().map(rule).collect(), ..empty(args, file) }
}

/// Returns both decisions of a rule that makes them.
fn decisions(actions: &Actions) -> [Option<String>; 2] {
    if actions.continues {
        return [None, None];
    }
    let over = actions.fate_over.map(|over| format!(" {over}")).unwrap_or_default();
    [Some(actions.capture.to_string()), Some(format!("{}{over}", actions.fate))]
}

fn mistake<'a>(error: &'a Error, file: &RuleFile) -> Mistake<'a> {
    let (line, column) = weir_rules::position(error, &file.text);
    Mistake { line, column, message: &error.message, help: error.help.as_deref() }
}

fn print(object: &impl Serialize) -> Result<(), Failure> {
    printed(json::line(out::stdout(), object))
}

/// Longest expression in a table, in letters.
const LONGEST: usize = 60;

/// Returns a row for each rule.
fn table(Looked { set, filtered, .. }: &Looked) -> String {
    let head = ["rule", "expression", "capture", "packet", "also"].map(str::to_owned);
    let row = |(number, rule): (usize, &Rule)| {
        let [capture, fate] =
            decisions(&rule.actions).map(|decision| decision.unwrap_or_else(|| "-".to_owned()));
        let (learn, log) = (&rule.actions.learn, &rule.actions.log);
        let filter = filtered.get(number).filter(|needs| **needs).map(|_| "needs a filter".to_owned());
        let also = rule.actions.continues.then(|| "continue".to_owned()).into_iter();
        let also = also
            .chain(learn.iter().map(ToString::to_string))
            .chain(log.iter().map(ToString::to_string))
            .chain(filter);
        [rule.name.clone(), shortened(rule.label()), capture, fate, also.collect::<Vec<_>>().join(", ")]
    };
    let rows: Vec<_> = std::iter::once(head).chain(set.rules.iter().enumerate().map(row)).collect();
    let widths: [usize; 5] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let paint = style::stdout();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let line = cells.join("  ").trim_end().to_owned();
        text += &if number == 0 { paint.dim(line) } else { line };
        text.push('\n');
    }
    text
}

fn shortened(expression: String) -> String {
    match expression.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &expression[..end]),
        None if expression.is_empty() => "(every packet)".to_owned(),
        None => expression,
    }
}
