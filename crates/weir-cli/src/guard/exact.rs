//! Exact rules that clients add to a guard and remove again.

use weir::Guard;
use weir::guard::{ExactError, ExactFlow, ExactRule};
use weir_service::control::{ExactDone, ExactOrder, MOST_EXACT};

/// Does what a client orders; `Err`: why nothing of it was done.
pub(super) fn obey(guard: &mut Guard, order: ExactOrder) -> Result<ExactDone, String> {
    match order {
        ExactOrder::Add(rules) => each(rules, "add", |rules| add(guard, &rules).map(|()| true)),
        ExactOrder::Remove(flows) => each(flows, "remove", |flows| remove(guard, &flows)),
        ExactOrder::List { behind } => {
            let mut rules = guard.exact_rules().map_err(|error| failed("list", &error))?;
            if let Some(behind) = behind {
                rules.retain(|rule| rule.flow > behind);
            }
            rules.truncate(MOST_EXACT);
            Ok(ExactDone::Listed(rules))
        }
        ExactOrder::Flush => {
            let rules = guard.flush_exact().map_err(|error| failed("remove", &error))?;
            Ok(ExactDone::Changed { rules, failed: Vec::new() })
        }
    }
}

/// Does something with each; that there is no table for any is told once.
fn each<T>(
    all: Vec<T>,
    what: &str,
    mut one: impl FnMut(T) -> Result<bool, ExactError>,
) -> Result<ExactDone, String> {
    let (mut rules, mut wrong) = (0, Vec::new());
    for (number, each) in all.into_iter().enumerate() {
        match one(each) {
            Ok(true) => rules += 1,
            Ok(false) => wrong.push((number, "there is no such rule".to_owned())),
            Err(error @ ExactError::NoTable) => return Err(failed(what, &error)),
            Err(error) => wrong.push((number, why(&error))),
        }
    }
    Ok(ExactDone::Changed { rules, failed: wrong })
}

/// Adds all of these rules, or none.
fn add(guard: &mut Guard, rules: &[ExactRule]) -> Result<(), ExactError> {
    for (number, rule) in rules.iter().enumerate() {
        if let Err(error) = guard.add_exact(rule) {
            for before in &rules[..number] {
                guard.remove_exact(&before.flow)?;
            }
            return Err(error);
        }
    }
    Ok(())
}

/// Removes all rules for these packets; returns whether there was one.
fn remove(guard: &mut Guard, flows: &[ExactFlow]) -> Result<bool, ExactError> {
    flows.iter().try_fold(false, |was_there, flow| Ok(guard.remove_exact(flow)? | was_there))
}

fn failed(what: &str, error: &ExactError) -> String {
    format!("cannot {what} exact rules: {}", why(error))
}

fn why(error: &ExactError) -> String {
    match error {
        ExactError::NoTable => "this guard has no table for them; try weir guard --exact N".to_owned(),
        ExactError::Full(_) => format!("{error}; try --exact"),
        _ => error.to_string(),
    }
}
