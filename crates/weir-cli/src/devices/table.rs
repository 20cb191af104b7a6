//! Prints interfaces as a table.

use super::Device;
use crate::style::Paint;
use crate::units;

const HEAD: [&str; 9] = ["name", "state", "speed", "MTU", "queues", "driver", "XDP", "auto", "address"];

/// Returns the table. The last column, the address, is truncated to fit into `columns`.
pub(super) fn table(devices: &[Device], columns: usize, paint: Paint) -> String {
    let rows: Vec<[String; 9]> = devices.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([HEAD[column].len()]).max().unwrap_or(0)
    };
    let last = HEAD.len() - 1;
    let widths: Vec<usize> = (0..last).map(width).collect();
    let left = columns.saturating_sub(widths.iter().map(|width| width + 2).sum()).max(HEAD[last].len());

    let mut text = String::new();
    let head = HEAD.map(str::to_owned);
    for (number, row) in std::iter::once(&head).chain(&rows).enumerate() {
        let mut line = String::new();
        for (cell, &width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:<width$}  "));
        }
        line.push_str(&cut(&row[last], left));
        let line = line.trim_end();
        let up = number > 0 && devices[number - 1].up;
        let line = match number {
            0 => paint.bold(line),
            _ if up => line.to_owned(),
            _ => paint.dim(line),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn row(device: &Device) -> [String; 9] {
    let state = match (device.up, device.carrier) {
        (false, _) => "down",
        (true, false) => "no link",
        (true, true) => "up",
    };
    let queues = match device.queues.max_rx.filter(|&max| max != device.queues.rx) {
        Some(max) => format!("{}/{max}", device.queues.rx),
        None => device.queues.rx.to_string(),
    };
    let dash = || "-".to_owned();
    [
        device.name.clone(),
        state.to_owned(),
        device.speed_bits.map_or_else(dash, speed),
        device.mtu.to_string(),
        queues,
        driver(device),
        xdp(device),
        device.auto.source.map_or_else(dash, |source| source.to_string()),
        address(device),
    ]
}

/// Formats a speed as `10G`, in bits per second as usual for network cards.
fn speed(bits: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let text = units::scaled(bits as f64);
    let (number, prefix) = text.split_once(' ').unwrap_or((&text, ""));
    let number =
        if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{prefix}")
}

fn driver(device: &Device) -> String {
    let driver = device.driver.as_ref().map(|driver| driver.name.clone());
    driver.or_else(|| device.kind.clone()).unwrap_or_else(|| "-".to_owned())
}

/// Returns the driver's best mode, and whether another program is attached.
fn xdp(device: &Device) -> String {
    let best = match device.xdp {
        None => "unknown",
        Some(xdp) if xdp.zero_copy => "zero-copy",
        Some(xdp) if xdp.native => "native",
        Some(_) => "generic",
    };
    let busy = device.programs.iter().any(|program| program.hook.starts_with("xdp"));
    if busy { "in use".to_owned() } else { best.to_owned() }
}

/// Returns the first address, and the number of others.
fn address(device: &Device) -> String {
    match device.addresses.as_slice() {
        [] => device.master.as_ref().map(|master| format!("in {master}")).unwrap_or_default(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} +{}", more.len()),
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['~']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_short() {
        for (bits, text) in [(10_000_000, "10M"), (2_500_000_000, "2.5G"), (100_000_000_000, "100G")] {
            assert_eq!(speed(bits), text);
        }
    }

    #[test]
    fn long_addresses_are_cut_visibly() {
        assert_eq!(cut("192.0.2.2/24", 12), "192.0.2.2/24");
        assert_eq!(cut("192.0.2.2/24", 11), "192.0.2.2/~");
    }
}
