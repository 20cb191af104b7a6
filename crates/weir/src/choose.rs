//! Which source captures on which interface, and whether there is memory for it.

use std::fs;

use crate::Error;
use crate::builder::{Direction, Mode, Settings, SourceChoice};
use crate::interface::{Device, Interface};
use crate::source::{Source, af_packet, xdp};

/// Opens the source that the settings ask for on `device`; with `auto`, the one that fits, and says why.
pub(crate) fn open(
    device: &Device,
    id: u32,
    settings: &Settings,
) -> Result<(Box<dyn Source>, Interface), Error> {
    if !device.link.is_up() {
        return Err(Error::InterfaceDown { name: device.link.name.clone() });
    }
    let link_type = device.link_type()?;
    let describe = |source, snap_len, detail, why: String, queues| Interface {
        id,
        name: device.link.name.clone(),
        link_type,
        snap_len,
        speed_bits: device.speed_bits,
        mac: device.link.address.as_slice().try_into().ok().filter(|_| device.link.hardware == 1),
        source,
        mode: match settings.mode {
            Mode::Pass => "pass",
            Mode::Exclusive => "exclusive",
        },
        detail,
        why,
        queues,
    };
    let open_xdp = |native_only, why: String| -> Result<(Box<dyn Source>, Interface), Error> {
        let opened = xdp::open(device, id, settings, native_only)?;
        let queues = opened.source.queues();
        Ok((Box::new(opened.source), describe("xdp", opened.snap_len, opened.detail, why, queues)))
    };
    let open_af_packet = |why: String| -> Result<(Box<dyn Source>, Interface), Error> {
        let opened = af_packet::open(device, id, settings)?;
        let queues = opened.source.queues();
        Ok((Box::new(opened.source), describe("af_packet", opened.snap_len, opened.detail, why, queues)))
    };
    let asked = || "asked for".to_owned();
    match settings.source {
        SourceChoice::Xdp => {
            if settings.direction == Direction::Out {
                return Err(Error::Options(
                    "the xdp source sees only what arrives, not what is sent (-Q out)".into(),
                ));
            }
            open_xdp(false, asked())
        }
        SourceChoice::AfPacket => {
            if settings.mode == Mode::Exclusive {
                return Err(Error::Options(
                    "the af_packet source cannot take packets away from the host".into(),
                ));
            }
            open_af_packet(asked())
        }
        SourceChoice::Auto => match prefer(device, settings) {
            Preference::Xdp(why) => match open_xdp(true, why.clone()) {
                Err(error) if settings.mode == Mode::Pass && !is_final(&error) => {
                    open_af_packet(format!("xdp would fit ({why}), but: {error}"))
                }
                other => other,
            },
            Preference::AfPacket(why) => open_af_packet(why),
        },
    }
}

enum Preference {
    Xdp(String),
    AfPacket(String),
}

/// The rule of `auto`: never disturb an interface that the host works with, be fast on one that is there to be captured.
fn prefer(device: &Device, settings: &Settings) -> Preference {
    if settings.mode == Mode::Exclusive {
        return Preference::Xdp(
            "only xdp can take packets away from the host, as mode exclusive asks".into(),
        );
    }
    if device.link_type().is_ok_and(|link_type| link_type != 1) {
        return Preference::AfPacket("its frames have no Ethernet header".into());
    }
    if device.link.is_loopback() {
        return Preference::AfPacket("it is the loopback".into());
    }
    match settings.direction {
        Direction::Out => Preference::AfPacket("xdp does not see what is sent".into()),
        Direction::In if !device.in_use => {
            Preference::Xdp("it has no address and no bridge: a capture port".into())
        }
        Direction::Both if !device.in_use => Preference::Xdp(
            "it has no address and no bridge: a capture port, of which what arrives is captured".into(),
        ),
        Direction::In | Direction::Both => Preference::AfPacket(
            "the host works with it: both directions, and its traffic is not disturbed".into(),
        ),
    }
}

/// Whether another source would meet the same.
fn is_final(error: &Error) -> bool {
    matches!(
        error,
        Error::Memory { .. } | Error::Shape(_) | Error::InterfaceGone { .. } | Error::Corrupt { .. }
    )
}

/// Refuses a pool that the machine has no memory for.
pub(crate) fn check_memory(name: &str, asked: u64) -> Result<(), Error> {
    let Some(available) = available_memory() else { return Ok(()) };
    if asked > available {
        return Err(Error::Memory { name: name.to_owned(), asked, available });
    }
    Ok(())
}

/// `MemAvailable`, bytes.
pub(crate) fn available_memory() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
