//! The copy of forwarded packets: a pool that the program fills before redirecting, and that is read like any capture.

use weir_bpf::pool::{PoolMaps, PoolOptions};
use weir_ring::Shape;

use super::endpoint::Endpoint;
use crate::live::capture::builder::Builder;
use crate::live::capture::choose::Opener;
use crate::live::capture::interface::CaptureInterface;
use crate::live::error::size;
use crate::live::request::Settings;
use crate::live::request::memory::Need;
use crate::live::source::programmed::{self, AtGateInForce, Programmed, pool_options};
use crate::live::source::xdp;
use crate::{Direction, Error, Interface, ModeKind, Setting, SourceKind};

/// The copy of one direction.
#[derive(Debug)]
pub(super) struct Copy<'a> {
    settings: &'a Settings,
    /// The number of the direction, which is also that of its interface in the copy.
    id: u32,
    snap_len: u32,
    shape: Shape,
}

/// Returns the settings for a capture whose interfaces are determined elsewhere.
pub(super) fn settings(how: Builder) -> Result<Settings, Error> {
    match how {
        Builder { interfaces, .. } if !interfaces.is_empty() => Err(Error::conflict(
            Setting::Copy,
            Setting::Interface,
            "the copy of what is forwarded has its interfaces from that",
        )),
        Builder { settings: Settings { filter: Some(_), .. }, .. } => Err(Error::conflict(
            Setting::Copy,
            Setting::Filter,
            "the copy of what is forwarded has its filter from that",
        )),
        Builder { statistics, .. } if !statistics.is_empty() => Err(Error::conflict(
            Setting::Copy,
            Setting::Filters,
            "cannot count beside the copy of what is forwarded; try statistics of an interface",
        )),
        Builder { settings, .. } => settings.checked(),
    }
}

impl<'a> Copy<'a> {
    /// Plans the pool for packets that `from` receives.
    pub(super) fn plan(from: &Endpoint, id: u32, settings: &'a Settings) -> Result<Self, Error> {
        let shape = settings.pool.shape(&from.device.link.name, Self::need(from, settings))?;
        Ok(Self { settings, id, snap_len: Self::snap_len(from, settings), shape })
    }

    /// Returns the resources needed.
    pub(super) fn need(from: &Endpoint, settings: &Settings) -> Need {
        programmed::need(from.device.rx_queues, Self::snap_len(from, settings))
    }

    fn snap_len(from: &Endpoint, settings: &Settings) -> u32 {
        settings.snap_len.min(xdp::largest_native(&from.device))
    }

    /// Returns the options for the program.
    pub(super) fn options(&self) -> PoolOptions {
        pool_options(&self.shape, self.settings, self.id, self.snap_len, false)
    }

    /// Opens the process's side; `in_force` is the filter of this direction.
    pub(super) fn port(
        self,
        from: &Endpoint,
        maps: PoolMaps,
        in_force: &AtGateInForce,
    ) -> Result<CaptureInterface, Error> {
        let device = &from.device;
        let mut source = Programmed::new(device, None, self.shape, maps)?;
        source.in_force = in_force.clone();
        let detail = format!(
            "{} chunks of {} per queue",
            self.shape.chunks(),
            size::binary(self.shape.limit().into())
        );
        let why = "a copy of forwarded packets".to_owned();
        let opener = Opener { device, id: self.id, settings: self.settings, link_type: device.link_type()? };
        let (source, interface) = opener.describe(SourceKind::Forward, source, self.snap_len, detail, why);
        let opened = (source, Interface { mode: ModeKind::Forward, ..interface });
        CaptureInterface::new(from.name(), device, self.id as usize, Some(Direction::In), opened)
    }
}
