//! `weir ctl rules add`, `remove`, `list` and `flush`: the exact rules of a running guard.

mod input;
mod list;

use std::path::{Path, PathBuf};

use clap::Args;
use weir::guard::{ExactFlow, ExactRule, Fate};
use weir::parts::command;
use weir_rules::{ExactPackets, Fate as Wanted};
use weir_service::control::client::Running;
use weir_service::control::{ExactDone, ExactOrder, MOST_EXACT};
use weir_sys::cut_off::Login;

use self::input::{Line, Lines};
pub(super) use self::list::{ListArgs, list};
use super::TargetArgs;
use super::answers::{account, refused};
use crate::failure::Failure;
use crate::rules::lifeline;
use crate::{interfaces, style, units};

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    #[command(flatten)]
    target: TargetArgs,

    #[arg(long, help = lifeline::FORCE)]
    force: bool,

    /// Rules, each in quotes; - reads them from standard input, a line each.
    ///
    /// 'block tcp 192.0.2.7:4444 > 198.51.100.1:80 for 10m'. The action is block, pass or bounce; the protocol tcp, udp, sctp, icmp,
    /// icmp6, gre, or a number (proto 89). `vlan 5` before the protocol is for packets with that tag. `in both directions` makes a
    /// rule for answers, too. `for 10m idle` ends the rule when no packet has met it for that time, each direction by itself.
    /// Without `for TIME` the rule stays until it is removed or the guard ends.
    #[arg(value_name = "RULE", required = true)]
    rules: Vec<String>,
}

#[derive(Debug, Args)]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Packets, each in quotes, as in a rule; - reads them from standard input, a line each.
    ///
    /// 'tcp 192.0.2.7:4444 > 198.51.100.1:80'. The whole rule is taken, too.
    #[arg(value_name = "PACKETS", required = true)]
    packets: Vec<String>,
}

/// Adds exact rules.
pub(super) fn add(args: &AddArgs) -> Result<(), Failure> {
    let guard = args.target.find()?;
    let account = account(&guard)?;
    let is_dry = account["dry_run"].as_bool() == Some(true);
    let login = match account["interface"].as_str().filter(|_| !args.force && !is_dry) {
        Some(name) => login(name)?,
        None => None,
    };
    let made = |text: &str| {
        let rule = weir_rules::ExactRule::parse(text).map_err(Mistake::Text)?;
        match login.as_ref().filter(|login| rule.fate != Wanted::Pass && is_of(rule.packets, login)) {
            Some(login) => Err(Mistake::CutsOff(*login)),
            None => Ok(rules_of(&rule)),
        }
    };
    let mut change = Change { what: "add", guard: Some(guard), path: PathBuf::new(), done: 0, failed: 0 };
    change.all(&args.rules, made, ExactOrder::Add)?;
    change.end("added")
}

/// Removes exact rules.
pub(super) fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let guard = args.target.find()?;
    let made = |text: &str| {
        let packets = ExactPackets::parse(text).map_err(Mistake::Text)?;
        Ok(packets.directions().map(flow_of).collect())
    };
    let mut change = Change { what: "remove", guard: Some(guard), path: PathBuf::new(), done: 0, failed: 0 };
    change.all(&args.packets, made, ExactOrder::Remove)?;
    change.end("removed")
}

/// Removes all exact rules.
pub(super) fn flush(target: &TargetArgs) -> Result<(), Failure> {
    let ExactDone::Changed { rules, .. } = target.find()?.exact(ExactOrder::Flush).map_err(refused)? else {
        return Err(Failure::new("cannot remove exact rules: unexpected answer"));
    };
    style::say(format_args!("{} removed", counted(rules)));
    Ok(())
}

/// Why a text makes no rule.
enum Mistake {
    Text(weir_rules::Error),
    /// It would end this login.
    CutsOff(Login),
}

/// Rules that are being changed.
struct Change {
    what: &'static str,
    /// The guard; `None`: connect to it again, at `path`. It serves one client at a time, and none for long.
    guard: Option<Running>,
    path: PathBuf,
    done: usize,
    failed: usize,
}

impl Change {
    /// Changes all rules that are given, as arguments or on standard input.
    fn all<T>(
        &mut self,
        given: &[String],
        make: impl Fn(&str) -> Result<Vec<T>, Mistake>,
        order: impl Fn(Vec<Vec<T>>) -> ExactOrder,
    ) -> Result<(), Failure> {
        if given != ["-"] {
            let mut all = Vec::new();
            for text in given {
                // With a mistake in the command line nothing is done.
                let made = make(text).map_err(|mistake| wrong(self.what, None, text, mistake).status(2));
                all.push(made.map_err(|failure| of_file(failure, self.what, text))?);
            }
            let lines: Vec<_> = given.iter().map(|text| Line { number: None, text: text.clone() }).collect();
            return self.order(&lines, order(all));
        }
        // Waiting for input takes as long as it does.
        if let Some(guard) = self.guard.take() {
            self.path = guard.path().to_owned();
        }
        let mut input = Lines::standard().map_err(unread)?;
        while let Some(batch) = input.batch(MOST_EXACT).map_err(unread)? {
            let (mut lines, mut all) = (Vec::new(), Vec::new());
            let mut told = Told::default();
            for line in batch {
                match make(&line.text) {
                    Ok(one) => {
                        all.push(one);
                        lines.push(line);
                    }
                    Err(mistake) => {
                        self.failed += 1;
                        told.tell(|| wrong(self.what, line.number, &line.text, mistake));
                    }
                }
            }
            told.end();
            if !all.is_empty() {
                self.order(&lines, order(all))?;
            }
        }
        Ok(())
    }

    /// Has the guard change the rules of these lines.
    fn order(&mut self, lines: &[Line], order: ExactOrder) -> Result<(), Failure> {
        let guard = match self.guard.take() {
            Some(guard) => guard,
            None => Running::at(Path::new(&self.path))?,
        };
        let ExactDone::Changed { rules, failed } = guard.exact(order).map_err(refused)? else {
            return Err(Failure::new(format_args!("cannot {} exact rules: unexpected answer", self.what)));
        };
        self.done += rules;
        self.failed += failed.len();
        let mut told = Told::default();
        for (number, why) in failed {
            let Some(line) = lines.get(number) else { continue };
            told.tell(|| {
                let place =
                    line.number.map(|number| format!("standard input:{number}: ")).unwrap_or_default();
                let message = format!("{place}cannot {} `{}`: {why}", self.what, line.text.trim());
                Failure::new(style::visible(&message))
            });
        }
        told.end();
        Ok(())
    }

    /// Says how many were changed.
    fn end(self, done: &str) -> Result<(), Failure> {
        match self.failed {
            0 => {
                style::say(format_args!("{} {done}", counted(self.done)));
                Ok(())
            }
            failed => {
                let failed = units::grouped(failed as u64);
                Err(Failure::new(format_args!("{} {done}, {failed} not", counted(self.done))))
            }
        }
    }
}

/// Failures of many lines, of which the first are shown.
#[derive(Default)]
struct Told(usize);

impl Told {
    const MOST: usize = 10;

    fn tell(&mut self, failure: impl FnOnce() -> Failure) {
        self.0 += 1;
        if self.0 <= Self::MOST {
            failure().report();
        }
    }

    /// Says how many are not shown.
    fn end(self) {
        if let Some(more @ 1..) = self.0.checked_sub(Self::MOST) {
            style::say(format_args!("... and {} more lines", units::grouped(more as u64)));
        }
    }
}

/// Adds advice if a text that makes no rule is the name of a file.
fn of_file(failure: Failure, what: &str, text: &str) -> Failure {
    if !Path::new(text).is_file() {
        return failure;
    }
    let file = command::word(text);
    failure.and_hint(&format!("{file} is a file; to read lines from it: weir ctl rules {what} - < {file}"))
}

/// Returns the failure of a text that makes no rule.
fn wrong(what: &str, line: Option<usize>, text: &str, mistake: Mistake) -> Failure {
    let place =
        |column: usize| line.map(|line| format!("standard input:{line}:{column}: ")).unwrap_or_default();
    match mistake {
        Mistake::Text(error) => {
            let (_, column) = weir_rules::position(&error, text);
            Failure::new(format_args!("{}{}", place(column), error.render(&style::visible(text))))
        }
        Mistake::CutsOff(Login { client, server }) => {
            let message = format!(
                "{}cannot {what} `{}`: it would cut off this shell, a connection from {client} to {server}",
                place(1),
                text.trim()
            );
            Failure::new(style::visible(&message)).hint("--force overrides this")
        }
    }
}

fn unread(error: std::io::Error) -> Failure {
    Failure::new(format_args!("cannot read standard input: {error}"))
}

/// Returns the login by SSH of this shell, if it goes through the interface with this name.
fn login(interface: &str) -> Result<Option<Login>, Failure> {
    for chosen in interfaces::chosen(&[interface.to_owned()], &[])? {
        if let Some(login) = lifeline::login(&chosen)? {
            return Ok(Some(login));
        }
    }
    Ok(None)
}

fn is_of(packets: ExactPackets, login: &Login) -> bool {
    const TCP: u8 = 6;
    let ends = (packets.flow.from, packets.flow.to);
    packets.flow.protocol == TCP
        && [(login.client, login.server), (login.server, login.client)].contains(&ends)
}

fn rules_of(rule: &weir_rules::ExactRule) -> Vec<ExactRule> {
    let fate = match &rule.fate {
        Wanted::Pass => Fate::Pass,
        Wanted::Block => Fate::Block,
        Wanted::Bounce => Fate::Bounce,
        Wanted::Reflect(interface) => Fate::Reflect(interface.to_string()),
    };
    let one = |flow| weir::with!(ExactRule::new(flow_of(flow), fate.clone(), rule.lasting), idle = rule.idle);
    rule.packets.directions().map(one).collect()
}

fn flow_of(flow: weir_rules::ExactFlow) -> ExactFlow {
    ExactFlow::new(flow.protocol, flow.from, flow.to).vlan(flow.vlan)
}

fn counted(rules: usize) -> String {
    match rules {
        1 => "1 exact rule".to_owned(),
        rules => format!("{} exact rules", units::grouped(rules as u64)),
    }
}
