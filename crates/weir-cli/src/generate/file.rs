//! Frames written to a capture file instead of an interface.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use weir::send::Sent;
use weir::writer::{Compression, Format, WriteError, Writer, WriterOptions};
use weir::{CaptureStats, FileInterface, Packet};

use super::frames::Frames;
use super::schedule::Schedule;
use crate::files::FormatArg;

/// Writes the frames of the schedule. Times are those at which they are due, or at which they were made. Returns how many
/// were written.
pub(super) fn write(
    path: &Path,
    frames: &Frames,
    stream: u16,
    schedule: &mut Schedule,
    stop: &AtomicBool,
) -> (Sent, Result<(), WriteError>) {
    let mut sent = Sent::default();
    let result = try_write(path, frames, stream, schedule, stop, &mut sent);
    (sent, result)
}

fn try_write(
    path: &Path,
    frames: &Frames,
    stream: u16,
    schedule: &mut Schedule,
    stop: &AtomicBool,
    sent: &mut Sent,
) -> Result<(), WriteError> {
    let pcap = FormatArg::of_name(path).is_some_and(|format| matches!(format, FormatArg::Pcap));
    let options = weir::with!(
        WriterOptions::default(),
        format = if pcap { Format::Pcap { nanoseconds: true } } else { Format::Pcapng },
        compression = Compression::of_name(path).unwrap_or_default(),
        user_application = concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned()
    );
    let interface = FileInterface::new(frames.link_type());
    let mut writer = Writer::create(path, &[interface], &options)?;
    let (began, start) = (Instant::now(), super::now());
    let mut frame = Vec::new();
    while !stop.load(Ordering::Relaxed)
        && let Some(next) = schedule.next(|sequence| frames.size(sequence), || began.elapsed())
    {
        let since = next.due.unwrap_or_else(|| began.elapsed());
        let timestamp = start.saturating_add(nanoseconds(since));
        frames.write(next.sequence, timestamp, stream, &mut frame);
        let original_len = u32::try_from(frame.len()).expect("a frame is short");
        writer.packet(&weir::with!(Packet::new(timestamp, &frame), original_len))?;
        *sent += Sent { packets: 1, bytes: original_len.into() };
    }
    writer.finish(&CaptureStats::default()).1
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
