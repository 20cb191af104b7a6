//! Prints time, interface and length of each packet in a capture file that matches a filter, if one is given.
//!
//! ```text
//! read FILE [FILTER]
//! ```
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::env;
use std::error::Error;
use std::path::Path;

use weir::Filter;
use weir::filter::{FileFilter, SystemNames};
use weir::reader::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let file = args.next().ok_or("usage: read FILE [FILTER]")?;
    let filter = args.collect::<Vec<_>>().join(" ");

    let mut reader = Reader::open(Path::new(&file)).map_err(|error| error.to_string())?;
    if !filter.is_empty() {
        let filter = Filter::new(filter).names(SystemNames::new());
        reader = reader.filter(FileFilter::new(filter).map_err(|error| error.to_string())?);
    }
    while let Some(packet) = reader.next_packet().map_err(|error| error.to_string())? {
        let (seconds, nanoseconds) = (packet.timestamp / 1_000_000_000, packet.timestamp % 1_000_000_000);
        println!("{seconds}.{nanoseconds:09} interface {} length {}", packet.interface, packet.original_len);
    }
    Ok(())
}
