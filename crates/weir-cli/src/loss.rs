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
    /// Returns the result of a run that ended with `result` and these losses, if any. `told`: the account, which
    /// includes them, has been printed.
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
