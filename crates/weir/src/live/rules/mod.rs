//! Rules as they are given, and what was counted for them.

mod action;
pub(crate) mod exact;
mod given;
mod logged;
mod reading;

pub use self::action::{Action, CaptureAction, Fate, Learn, Limit, LimitKey, LogAction};
pub use self::exact::{ExactEntry, ExactError, ExactFlow, ExactRule};
pub(crate) use self::given::Rule;
pub use self::given::{PortableRules, RuleInfo, Rules};
pub use self::logged::LoggedPacket;
pub(crate) use self::logged::SNAP_LEN as LOG_SNAP_LEN;
pub use self::reading::{Count, FateCounts, Reading, RuleCount, Unkept};
