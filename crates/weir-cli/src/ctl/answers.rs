//! What processes with rules answer.

use weir_service::ClientError;
use weir_service::control::client::Running;

use crate::failure::Failure;
use crate::style;

/// Returns the account of a guard, or of a capture with rules.
pub(super) fn account(guard: &Running) -> Result<serde_json::Value, Failure> {
    let account: serde_json::Value = serde_json::from_str(guard.status()?.get()).map_err(Failure::new)?;
    match account["type"].as_str() {
        Some("guard") => Ok(account),
        Some("account") if account["rules"].is_array() => Ok(account),
        Some("forward") if account["rules"].is_object() => Ok(account),
        _ => Err(Failure::new("cannot do that: the process has no rules")
            .hint("`weir ctl list` says which process is one; choose it with --target")),
    }
}

/// Returns the failure of an order. What a guard says needs no introduction.
pub(super) fn refused(error: ClientError) -> Failure {
    match error {
        ClientError::Refused(why) => Failure::new(style::visible(&why)),
        error => error.into(),
    }
}
