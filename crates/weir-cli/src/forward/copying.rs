//! `-w`: a copy of the forwarded packets, written to a file by a separate thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use weir::writer::{Writer, WriterOptions};
use weir::{Builder, Capture, Delivery, FileInterface};

use crate::args::PoolArgs;
use crate::failure::Failure;
use crate::{style, units};

/// What is copied, and where to.
#[derive(Debug, Args)]
#[command(next_help_heading = "Copy")]
pub(super) struct CopyArgs {
    /// Write a copy of the forwarded packets to FILE (pcapng).
    ///
    /// Packets are copied as sent. A slow disk loses copies, which are counted, but never packets.
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Truncate copies to SIZE bytes.
    ///
    /// Default and maximum: 262144; 0 means the maximum.
    #[arg(short, long = "snapshot-length", alias = "snaplen", value_name = "SIZE", value_parser = units::snap_len)]
    #[arg(
        requires = "write",
        default_value = "262144",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    snap_len: u32,

    #[command(flatten)]
    pool: PoolArgs,
}

/// The result of the copy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CopySummary {
    pub(super) file: String,
    /// Packets to be copied.
    seen: u64,
    /// Packets in the file.
    pub(super) written: u64,
    /// Packets for which the pool had no space.
    pub(super) lost: u64,
    /// Packets that could not be read or written.
    pub(super) errors: u64,
}

impl CopySummary {
    /// Returns the number of packets that should be in the file but are not.
    pub(super) fn missing(&self) -> u64 {
        self.lost + self.errors
    }
}

/// Longest delay in noticing the request to stop.
const WAIT: Duration = Duration::from_millis(100);

/// A copy in progress.
#[derive(Debug)]
pub(super) struct Copying {
    thread: JoinHandle<(CopySummary, Result<(), Failure>)>,
    stop: Arc<AtomicBool>,
}

impl CopyArgs {
    /// Returns the output file, if there is one.
    pub(super) fn file(&self) -> Option<&Path> {
        self.write.as_deref()
    }

    /// Returns the writer's options.
    pub(super) fn options() -> WriterOptions {
        weir::with!(
            WriterOptions::default(),
            user_application = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()
        )
    }

    /// Returns the configuration of the pool, if there is a copy.
    pub(super) fn builder(&self) -> Option<Builder> {
        self.write.as_ref()?;
        let usual = Delivery::Batched { min_bytes: 256 << 10, timeout: Duration::from_millis(200) };
        Some(self.pool.apply(Capture::builder().snap_len(self.snap_len), usual))
    }

    /// Starts writing packets from `capture`.
    pub(super) fn begin(
        &self,
        capture: Option<Capture>,
        options: &WriterOptions,
    ) -> Result<Option<Copying>, Failure> {
        let (Some(file), Some(capture)) = (&self.write, capture) else { return Ok(None) };
        let described: Vec<_> = capture.interfaces().iter().map(FileInterface::from).collect();
        let writer = Writer::create(file, &described, options)?;
        let stop = Arc::<AtomicBool>::default();
        let (file, stopped) = (file.clone(), Arc::clone(&stop));
        let thread = thread::Builder::new()
            .name("weir-copy".to_owned())
            .spawn(move || write(&file, capture, writer, &stopped))
            .map_err(|error| Failure::new(format_args!("cannot start a thread for the copy: {error}")))?;
        Ok(Some(Copying { thread, stop }))
    }
}

impl Copying {
    /// Ends the copy, after forwarding has ended: everything in the pool is written.
    pub(super) fn finish(self) -> (CopySummary, Result<(), Failure>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn write(
    file: &Path,
    mut capture: Capture,
    mut writer: Writer,
    stop: &AtomicBool,
) -> (CopySummary, Result<(), Failure>) {
    let result = take(&mut capture, &mut writer, stop);
    if let Err(failure) = &result
        && !stop.load(Ordering::Relaxed)
    {
        style::say(format_args!("weir: the copy ends here, but forwarding continues: {}", failure.message()));
    }
    // Reads to the end so that the totals add up: packets from here on count as errors.
    let stopped = drain(&mut capture, stop);
    let account = capture.stats();
    let total = account.as_ref().map(weir::CaptureStats::total).unwrap_or_default();
    let closed = account.map_err(Failure::from).and_then(|account| Ok(writer.close(&account)?));
    for warning in writer.warnings() {
        style::say(format_args!("weir: {warning}"));
    }
    let written = writer.written().packets;
    let summary = CopySummary {
        file: file.display().to_string(),
        seen: total.seen,
        written,
        lost: total.lost,
        errors: total.errors + total.captured.saturating_sub(written),
    };
    (summary, result.and(stopped).and(closed))
}

/// Discards packets until it is told to stop, and those that are left.
fn drain(capture: &mut Capture, stop: &AtomicBool) -> Result<(), Failure> {
    while !stop.load(Ordering::Relaxed) {
        drop(capture.next(WAIT)?);
    }
    capture.stop()?;
    while capture.next(Duration::ZERO)?.taken().is_some() {}
    Ok(())
}

/// Writes packets until it is told to stop, then those that are left.
fn take(capture: &mut Capture, writer: &mut Writer, stop: &AtomicBool) -> Result<(), Failure> {
    while !stop.load(Ordering::Relaxed) {
        match capture.next(Duration::ZERO)?.taken() {
            Some(chunk) => writer.write(chunk)?,
            None => {
                // Completes pending writes before sleeping, so that their chunks return to the pool.
                writer.flush()?;
                if let Some(chunk) = capture.next(WAIT)?.taken() {
                    writer.write(chunk)?;
                }
            }
        }
    }
    capture.stop()?;
    while let Some(chunk) = capture.next(Duration::ZERO)?.taken() {
        writer.write(chunk)?;
    }
    Ok(())
}
