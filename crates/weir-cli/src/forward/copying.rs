//! `-w`: the copy of what is forwarded, written to a file by a thread of its own.

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

/// What became of the copy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CopySummary {
    pub(super) file: String,
    /// Packets that were to be copied.
    seen: u64,
    /// Packets in the file.
    pub(super) written: u64,
    /// Packets that found no room in the pool.
    pub(super) lost: u64,
    /// Packets that could not be read, or written.
    pub(super) errors: u64,
}

impl CopySummary {
    /// Packets that were to be copied and are not in the file.
    pub(super) fn missing(&self) -> u64 {
        self.lost + self.errors
    }
}

/// Longest time until the order to stop is seen.
const WAIT: Duration = Duration::from_millis(100);

/// A copy that is being written.
#[derive(Debug)]
pub(super) struct Copying {
    thread: JoinHandle<(CopySummary, Result<(), Failure>)>,
    stop: Arc<AtomicBool>,
}

impl CopyArgs {
    /// The file that is written, if one is.
    pub(super) fn file(&self) -> Option<&Path> {
        self.write.as_deref()
    }

    /// How it is written.
    pub(super) fn options() -> WriterOptions {
        WriterOptions {
            user_application: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..WriterOptions::default()
        }
    }

    /// How the pool is to be, if there is one.
    pub(super) fn builder(&self) -> Option<Builder> {
        self.write.as_ref()?;
        let usual = Delivery::Batched { min_bytes: 256 << 10, timeout: Duration::from_millis(200) };
        Some(self.pool.apply(Capture::builder().snap_len(self.snap_len), usual))
    }

    /// Begins to write what `capture` brings.
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
            .map_err(|error| Failure::new(format_args!("start a thread for the copy: {error}")))?;
        Ok(Some(Copying { thread, stop }))
    }
}

impl Copying {
    /// Ends it, once forwarding has ended: all that is in the pool goes to the file.
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
        style::say(format_args!("weir: the copy ends here, and forwarding continues: {}", failure.message()));
    }
    // To the end, so that the account closes: what comes now is counted as an error.
    let stopped = drain(&mut capture, stop);
    let account = capture.account();
    let total = account.as_ref().map(weir::Account::total).unwrap_or_default();
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

/// Takes what comes until it is to stop, and what is left, and lets it go.
fn drain(capture: &mut Capture, stop: &AtomicBool) -> Result<(), Failure> {
    while !stop.load(Ordering::Relaxed) {
        drop(capture.next(WAIT)?);
    }
    capture.stop()?;
    while capture.next(Duration::ZERO)?.is_some() {}
    Ok(())
}

/// Writes until it is to stop, and then what is left.
fn take(capture: &mut Capture, writer: &mut Writer, stop: &AtomicBool) -> Result<(), Failure> {
    while !stop.load(Ordering::Relaxed) {
        match capture.next(Duration::ZERO)? {
            Some(chunk) => writer.write(chunk)?,
            None => {
                // Chunks that are on their way to the disk go back to the pool before it sleeps.
                writer.flush()?;
                if let Some(chunk) = capture.next(WAIT)? {
                    writer.write(chunk)?;
                }
            }
        }
    }
    capture.stop()?;
    while let Some(chunk) = capture.next(Duration::ZERO)? {
        writer.write(chunk)?;
    }
    Ok(())
}
