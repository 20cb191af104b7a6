//! Counts what an interface receives in ten seconds: `cargo run --release --example count eth0`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::time::{Duration, Instant};

use weir::Next;

fn main() -> Result<(), weir::Error> {
    let interface = std::env::args().nth(1).unwrap_or_else(|| "lo".to_owned());
    let mut capture = weir::Capture::builder().interface(interface).open()?;
    let (end, mut packets, mut bytes) = (Instant::now() + Duration::from_secs(10), 0u64, 0u64);

    while Instant::now() < end {
        if let Next::Taken(chunk) = capture.next(Duration::from_millis(100))? {
            for packet in &chunk {
                packets += 1;
                bytes += u64::from(packet.original_len);
            }
        }
    }

    capture.stop()?;
    println!("{packets} packets, {bytes} bytes, {} lost", capture.stats()?.total().lost);
    Ok(())
}
