//! What can be chosen.

use std::time::Duration;

/// What a table keeps, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many flows there is room for; at least one.
    pub flows: u32,
    /// A flow ends when it has been silent for so long.
    pub idle: Duration,
    /// A flow ends so long after its first packet, and the next packet begins another one.
    pub active: Duration,
    /// Flows are those of the innermost packet in tunnels, not of the outermost.
    pub inner: bool,
    /// Packets of several interfaces can belong to the same flow.
    pub across_interfaces: bool,
    /// Whether the first packets of a flow are read for what its application says.
    pub names: bool,
}

impl Default for Settings {
    /// A million flows; 15 seconds of silence, or 60 in all.
    fn default() -> Self {
        Self {
            flows: 1 << 20,
            idle: Duration::from_secs(15),
            active: Duration::from_secs(60),
            inner: false,
            across_interfaces: false,
            names: true,
        }
    }
}
