//! Counts what an interface receives for ten seconds: `cargo run --release --example count eth0`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::ops::ControlFlow::{Break, Continue};
use std::time::{Duration, Instant};

fn main() -> Result<(), weir::Error> {
    let interface = std::env::args().nth(1).unwrap_or_else(|| "lo".to_owned());
    let mut capture = weir::Capture::builder().interface(interface).open()?;
    let (began, mut packets, mut bytes) = (Instant::now(), 0u64, 0u64);

    capture.run(|chunk| {
        for packet in chunk {
            packets += 1;
            bytes += u64::from(packet.original_len);
        }
        if began.elapsed() < Duration::from_secs(10) { Continue(()) } else { Break(()) }
    })?;

    println!("{packets} packets, {bytes} bytes, {} lost", capture.account()?.total().lost);
    Ok(())
}
