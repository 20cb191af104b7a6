//! Reports losses, even in quiet runs, and as the exit status if requested.

use clap::Args;

use crate::failure::Failure;
use crate::style;

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LossArgs {
    /// Exit with status 3 if packets were lost at any stage.
    #[arg(hide_short_help = true, long)]
    fail_on_loss: bool,
}

impl LossArgs {
    /// Returns the result of a run that ended with `result` and these losses, if any: a failure outweighs them. `told`: the
    /// account, which includes them, has been printed.
    pub(crate) fn end(
        &self,
        result: Result<(), Failure>,
        loss: Option<String>,
        told: bool,
    ) -> Result<(), Failure> {
        let Some(loss) = loss else { return result };
        if self.fail_on_loss && result.is_ok() {
            return Err(Failure::loss(loss));
        }
        if !told {
            style::say(format_args!("{}: {loss}", style::stderr().red("weir")));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_outweighs_losses_and_they_outweigh_success_if_that_was_asked_for() {
        let message = |result: Result<(), Failure>| result.map_err(|failure| failure.message().to_owned());
        for fail_on_loss in [false, true] {
            let args = LossArgs { fail_on_loss };
            for told in [false, true] {
                let end =
                    |result, loss: Option<&str>| message(args.end(result, loss.map(str::to_owned), told));
                let failed = || Err(Failure::new("the disk is full"));
                let full = Err("the disk is full".to_owned());
                assert_eq!(end(Ok(()), None), Ok(()));
                assert_eq!(end(failed(), None), full);
                assert_eq!(end(failed(), Some("5 of 9 packets lost")), full);
                let lost = if fail_on_loss { Err("5 of 9 packets lost".to_owned()) } else { Ok(()) };
                assert_eq!(end(Ok(()), Some("5 of 9 packets lost")), lost);
            }
        }
    }
}
