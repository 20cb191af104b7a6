//! The settings that errors refer to.

use crate::{Direction, Mode, SourceChoice};

/// A setting of a capture, of its handlers or of forwarding, as named by [`Error::Setting`](crate::Error) and
/// [`Error::Conflict`](crate::Error).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Setting {
    /// The interfaces of a capture ([`Builder::interface`](crate::Builder::interface)).
    Interface,
    /// [`Builder::queues`](crate::Builder::queues).
    Queues,
    /// [`Builder::source`](crate::Builder::source).
    Source(SourceChoice),
    /// [`Builder::mode`](crate::Builder::mode).
    Mode(Mode),
    /// [`Builder::timestamps`](crate::Builder::timestamps).
    Timestamps,
    /// [`Builder::snap_len`](crate::Builder::snap_len).
    SnapLen,
    /// [`Builder::chunks`](crate::Builder::chunks).
    Chunks,
    /// [`Builder::memory`](crate::Builder::memory).
    Memory,
    /// [`Builder::direction`](crate::Builder::direction).
    Direction(Direction),
    /// [`Builder::by_time`](crate::Builder::by_time).
    ByTime,
    /// The [`Window`](crate::Window) of [`Builder::by_time`](crate::Builder::by_time).
    Window,
    /// [`Builder::segment`](crate::Builder::segment).
    Segment,
    /// [`Builder::leave_out_mark`](crate::Builder::leave_out_mark).
    LeaveOutMark,
    /// [`Builder::filter`](crate::Builder::filter).
    Filter,
    /// [`Builder::sample`](crate::Builder::sample).
    Sample,
    /// `Builder::count_flows`, of the feature `flows`.
    CountFlows,
    /// [`Builder::steer`](crate::Builder::steer).
    Steer,
    /// The number of targets of [`Builder::steer`](crate::Builder::steer).
    Targets,
    /// The number of handlers of a [`Plan`](crate::Plan).
    Handlers,
    /// [`Plan::pin`](crate::Plan::pin).
    Pin,
    /// [`Plan::advanced`](crate::Plan::advanced).
    Advanced,
    /// The threshold of [`Plan::advanced`](crate::Plan::advanced).
    Threshold,
    /// [`Plan::group`](crate::Plan::group).
    Group,
    /// The two interfaces between which packets are forwarded.
    Endpoints,
    /// What happens to forwarding when the process ends.
    OnExit,
    /// The copy of forwarded packets.
    Copy,
    /// [`StatisticsBuilder::filter`](crate::statistics::StatisticsBuilder::filter).
    Filters,
    /// [`StatisticsBuilder::most_keys`](crate::statistics::StatisticsBuilder::most_keys).
    MostKeys,
    /// [`GuardBuilder::rules`](crate::guard::GuardBuilder::rules).
    Rules,
}

impl Setting {
    /// All settings, with one value each.
    pub const ALL: &[Self] = &[
        Self::Interface,
        Self::Queues,
        Self::Source(SourceChoice::Auto),
        Self::Mode(Mode::Pass),
        Self::Timestamps,
        Self::SnapLen,
        Self::Chunks,
        Self::Memory,
        Self::Direction(Direction::Both),
        Self::ByTime,
        Self::Window,
        Self::Segment,
        Self::LeaveOutMark,
        Self::Filter,
        Self::Sample,
        Self::CountFlows,
        Self::Steer,
        Self::Targets,
        Self::Handlers,
        Self::Pin,
        Self::Advanced,
        Self::Threshold,
        Self::Group,
        Self::Endpoints,
        Self::OnExit,
        Self::Copy,
        Self::Filters,
        Self::MostKeys,
        Self::Rules,
    ];
}
