//! The choice of receive queues of an interface. Only sources that run in its driver, or right behind it, know on which
//! queue a packet arrived.

use std::ops::RangeInclusive;

use weir_bpf::writers::Chosen;

use super::Device;
use crate::live::request::Settings;
use crate::live::settings::SourceChoice;
use crate::{Direction, Error, Setting};

/// Splits `eth0@0-3` or `eth0@2` into the name and the queues; `None`: the name does not end like that. An interface may
/// be called so, too: look for it first.
pub fn split_name(name: &str) -> Option<(&str, RangeInclusive<u32>)> {
    let (name, queues) = name.rsplit_once('@')?;
    let (first, last) = queues.split_once('-').unwrap_or((queues, queues));
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    (!name.is_empty()).then_some((name, number(first)?..=number(last)?))
}

/// Fails if queues were chosen, and a requested setting leaves no source that knows them.
pub(crate) fn check(device: &Device, settings: &Settings) -> Result<(), Error> {
    if device.chosen.is_none() {
        return Ok(());
    }
    let name = &device.link.name;
    let refused =
        |cause, instead| format!("cannot choose receive queues of `{name}`: {cause}; try {instead}");
    if device.any {
        let cause = "its packets do not tell on which queue they arrived";
        return Err(Error::setting(Setting::Queues, refused(cause, "the name of an interface")));
    }
    let (other, cause, instead) = match (settings.source, settings.direction) {
        (SourceChoice::Tc | SourceChoice::XdpTc | SourceChoice::AfPacket, _) => (
            Setting::Source(settings.source),
            "this source does not know on which queue a packet arrived",
            "the xdp source",
        ),
        _ if settings.segment => (
            Setting::Segment,
            "only the tc source can split packets into segments, and it does not know their queues",
            "capturing whole packets",
        ),
        (_, Direction::Out) => (
            Setting::Direction(settings.direction),
            "sent packets have no receive queue",
            "capturing received packets",
        ),
        _ => return Ok(()),
    };
    Err(Error::conflict(Setting::Queues, other, refused(cause, instead)))
}

/// Takes advice to use a source that does not know queues out of an error, if queues were chosen.
pub(crate) fn advised(device: &Device, error: Error) -> Error {
    const KNOWS: &[SourceChoice] = &[SourceChoice::Xdp];
    match error {
        Error::Unsupported { name, cause, sources, otherwise }
            if device.chosen.is_some() && sources != KNOWS =>
        {
            let lost = otherwise.is_empty() && !sources.is_empty();
            let otherwise = if lost { "capture on all of its queues" } else { otherwise };
            Error::Unsupported { name, cause, sources: &[], otherwise }
        }
        other => other,
    }
}

/// Says which queues were chosen, if any.
pub(crate) fn note(device: &Device) -> Option<String> {
    let Chosen { first, count } = device.chosen?;
    let all = device.rx_queues;
    Some(match count {
        1 => format!("only receive queue {first} of {all}"),
        _ => format!("only receive queues {first}-{} of {all}", first + count - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_a_number_or_a_range_behind_the_last_at() {
        assert_eq!(split_name("eth0@2"), Some(("eth0", 2..=2)));
        assert_eq!(split_name("eth0@0-3"), Some(("eth0", 0..=3)));
        assert_eq!(split_name("a@b@10-12"), Some(("a@b", 10..=12)));
        assert_eq!(split_name("eth0@3-1"), Some(("eth0", RangeInclusive::new(3, 1))));
        for name in [
            "eth0",
            "eth0@",
            "@1",
            "eth0@if5",
            "eth0@+1",
            "eth0@1-",
            "eth0@-1",
            "eth0@1-2-3",
            "eth0@4294967296",
        ] {
            assert_eq!(split_name(name), None, "{name}");
        }
    }
}
