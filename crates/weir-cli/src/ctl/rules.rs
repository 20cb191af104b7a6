//! `weir ctl rules`: shows and replaces the rules of a running guard or capture.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Deserialize as _;
use weir::Direction;
use weir::guard::PortableRules;
use weir_render::json;
use weir_service::ClientError;
use weir_service::control::Order;

use super::answers::{account, refused};
use super::{TargetArgs, exact};
use crate::failure::Failure;
use crate::rules::{self, LiveRules, SetFile, Shown, lifeline, table};
use crate::{interfaces, out, style, units};

#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// Print the rules and what they have counted.
    Show {
        #[command(flatten)]
        target: TargetArgs,

        /// Print the whole account of the process as one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Replace all rules; a packet meets all old ones or all new ones.
    ///
    /// Rules with the same name and actions go on counting. If there are mistakes, the old rules stay in force. Guards take other
    /// rules, and captures and forwarding with --no-confine: loading them takes privileges that a confined capture has given up.
    Replace {
        #[command(flatten)]
        target: TargetArgs,

        /// File with rules; - is standard input.
        file: PathBuf,

        /// Read the set @NAME from FILE; default: the file NAME beside the rules.
        #[arg(long = "set", value_name = "NAME=FILE", value_parser = SetFile::parse)]
        sets: Vec<SetFile>,

        #[arg(long, help = lifeline::FORCE)]
        force: bool,
    },
    /// Add exact rules, for one direction of a flow or both; they are asked before all others.
    ///
    /// The guard needs a table for them: its rules learn, or it has --exact. A rule for the same packets is replaced.
    Add(exact::AddArgs),
    /// Remove exact rules, added or learned.
    Remove(exact::RemoveArgs),
    /// Print the exact rules in force, added and learned, with the packets of those that were added.
    List(exact::ListArgs),
    /// Remove all exact rules, added and learned.
    Flush {
        #[command(flatten)]
        target: TargetArgs,
    },
}

/// Runs the command.
pub(super) fn run(command: &RulesCommand) -> Result<(), Failure> {
    match command {
        RulesCommand::Show { target, json } => show(target, *json),
        RulesCommand::Replace { target, file, sets, force } => replace(target, file, sets, *force),
        RulesCommand::Add(args) => exact::add(args),
        RulesCommand::Remove(args) => exact::remove(args),
        RulesCommand::List(args) => exact::list(args),
        RulesCommand::Flush { target } => exact::flush(target),
    }
}

/// Adds to a failure what becomes of rules that are not replaced.
fn stay(failure: Failure) -> Failure {
    failure.and_hint("the old rules stay in force")
}

fn show(target: &TargetArgs, as_json: bool) -> Result<(), Failure> {
    let account = account(&target.find()?)?;
    let mut text = Vec::new();
    if as_json {
        json::line(&mut text, &account).map_err(Failure::new)?;
    } else {
        text.extend_from_slice(style::lines(&tables(&account)?).as_bytes());
        if let Some(seconds) = account["confirm_within"].as_f64() {
            say_unconfirmed(seconds);
        }
    }
    out::print(&text)
}

/// Returns the table of a guard, or those of a capture's interfaces.
fn tables(account: &serde_json::Value) -> Result<String, Failure> {
    let paint = style::stdout();
    let shown = |counted: &serde_json::Value| {
        Shown::deserialize(counted).map_err(|error| {
            Failure::new(format_args!("cannot read the account of the process: {error}")).hint("try --json")
        })
    };
    if is_forwarding(account) {
        let shown = shown(&account["rules"])?;
        let shown = if shown.captures() { shown.capturing() } else { shown };
        return Ok(table(&shown, paint));
    }
    if !is_capture(account) {
        return Ok(table(&shown(account)?, paint));
    }
    let mut text = String::new();
    let all = ruled(account);
    for one in all {
        if all.len() > 1 {
            let interface = style::visible(one["interface"].as_str().unwrap_or_default());
            text += &format!("{}\n", paint.bold(interface));
        }
        text += &table(&shown(one)?.capturing(), paint);
    }
    Ok(text)
}

fn is_forwarding(account: &serde_json::Value) -> bool {
    account["type"] == "forward"
}

fn is_capture(account: &serde_json::Value) -> bool {
    account["type"] == "account"
}

/// Returns what the rules of a capture's interfaces have counted.
fn ruled(account: &serde_json::Value) -> &[serde_json::Value] {
    account["rules"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Says that rules are not confirmed yet.
fn say_unconfirmed(seconds: f64) {
    let note = style::stderr().yellow("note");
    style::say(format_args!("{note}: without `weir ctl confirm`, the rules are off again in {seconds:.0} s"));
}

fn replace(target: &TargetArgs, file: &Path, sets: &[SetFile], force: bool) -> Result<(), Failure> {
    let rules = LiveRules::read(file, sets).map_err(stay)?;
    let guard = target.find()?;
    let account = account(&guard)?;
    let portable = checked(&rules, &account, force).map_err(stay)?;
    guard.order(Order::Rules(portable)).map_err(|error| match error {
        ClientError::Refused(_) => stay(refused(error)),
        // It may have replaced them, or may still do so.
        error => error.into(),
    })?;
    let count = units::grouped(rules.count() as u64);
    style::say(format_args!("rules replaced: {count} in force"));
    let is_guard = !is_capture(&account) && !is_forwarding(&account);
    if is_capture(&account) && !rules.captures() {
        rules::note(rules::CAPTURE_NOTHING);
    } else if is_guard && rules.captures() {
        rules::note(rules::GUARD_CAPTURES);
    }
    if !is_guard && rules.logs() {
        rules::note(rules::LOG_NOTHING);
    }
    if let Some(seconds) = account["confirm_within"].as_f64() {
        say_unconfirmed(seconds);
    }
    Ok(())
}

/// Returns the rules for the process with this account, if they do not cut off this shell.
fn checked(rules: &LiveRules, account: &serde_json::Value, force: bool) -> Result<PortableRules, Failure> {
    if is_forwarding(account) {
        // Its interfaces are not the host's own.
        return Ok(rules.rules().portable().map_err(weir::Error::from)?);
    }
    let is_dry = account["dry_run"].as_bool() == Some(true);
    let direction = match (account["received"].is_string(), account["sent"].as_bool()) {
        _ if is_capture(account) => Direction::Both,
        (true, Some(true)) => Direction::Both,
        (true, _) => Direction::In,
        _ => Direction::Out,
    };
    let all = if is_capture(account) { ruled(account) } else { std::slice::from_ref(account) };
    let names = all.iter().filter_map(|one| one["interface"].as_str());
    for name in names.filter(|_| !force && !is_dry) {
        for chosen in interfaces::chosen(&[name.to_owned()], &[])? {
            lifeline::check_login(rules, &chosen, direction)?;
        }
    }
    Ok(rules.rules().portable().map_err(weir::Error::from)?)
}
