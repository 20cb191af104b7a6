//! Counts what an interface receives until Ctrl-C, in tokio's event loop: `cargo run --release --example tokio eth0`.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use weir::{Capture, Next};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let interface = std::env::args().nth(1).unwrap_or_else(|| "lo".to_owned());
    let capture = Capture::builder().interface(interface).open()?;
    let stop = capture.stop_handle();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.stop();
        }
    });

    // Sound: a capture keeps one descriptor for as long as it lives.
    #[allow(deprecated, reason = "tokio before 1.54 has no other")]
    let mut capture = AsyncFd::with_interest(capture, Interest::READABLE)?;
    let mut packets = 0;
    loop {
        let mut ready = capture.readable_mut().await?;
        match ready.get_inner_mut().try_next()? {
            Next::Taken(chunk) => packets += chunk.len(),
            Next::NotYet => ready.clear_ready(),
            Next::Over => break,
        }
    }

    let total = capture.get_ref().stats()?.total();
    println!("{packets} packets, {} captured, {} lost", total.captured, total.lost);
    Ok(())
}
