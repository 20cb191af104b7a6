//! `--follow`: stays with a file that is being written, and moves along its ring.

mod names;
mod watch;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir::filter::FileFilter;
use weir::reader::{ReadReason, Reader};
use weir::who::Whose;
use weir::{FileInterface, Packet};

use self::names::newest_of_ring;
use self::watch::Watch;
use super::input::Input;
use super::pass::{Pass, pass};
use super::sink::{End, Sink};
use super::who::Who;
use super::{ReadArgs, failure};
use crate::failure::Failure;

/// Reads `path`, or the newest file of the ring with this name, and every file after it. `opened` is called once the filter
/// has its code.
pub(super) fn run(
    args: &ReadArgs,
    path: &Path,
    filter: Option<&FileFilter>,
    sink: &mut dyn Sink,
    opened: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut sink = Continued { sink, known: Vec::new(), numbers: Vec::new(), overwritten: false };
    let mut path = if path.exists() { path.to_owned() } else { newest_of_ring(path) };
    let (mut choice, mut opened) = (None, Some(opened));
    let mut who = args.who(args.sort(), filter)?;
    let mut before: Option<Arc<Mutex<Watch>>> = None;
    loop {
        let watch = Arc::new(Mutex::new(Watch::new(&path)));
        let asked = Arc::clone(&watch);
        let reader = match Reader::follow(&path, Box::new(move || locked(&asked).goes_on())) {
            // It was begun anew since it was found: what comes after it is not known.
            Ok(_) if locked(&watch).is_overwritten() => continue,
            Err(error) if matches!(error.reason, ReadReason::Overwritten { .. }) => continue,
            Ok(reader) => reader.pausing(),
            Err(error) => match &before {
                // The ring has deleted it since it was found.
                Some(before) if !path.exists() => {
                    path = locked(before).another();
                    continue;
                }
                _ => return Err(failure(error)),
            },
        };
        if let Some(before) = &before {
            locked(before).note_gap(&path);
        }
        let reader = filter.cloned().into_iter().fold(reader, Reader::filter);
        opened.take().map_or(Ok(()), |opened| opened())?;
        let mut reading = Pass::of(args, Input::One(Box::new(reader)));
        reading.choice = choice.unwrap_or(reading.choice);
        reading.who = who.take();
        sink.numbers.clear();
        sink.overwritten = false;
        let result = pass(&mut reading, &mut sink);
        let later = match sink.overwritten {
            true => Some(locked(&watch).after_overwritten(&reading.input)),
            false => locked(&watch).take_later(),
        };
        match later.filter(|_| !reading.choice.is_over() && !reading.choice.is_past()) {
            Some(later) => path = later,
            None => return result,
        }
        // A damaged file does not end the ring.
        if let Err(failure) = result {
            failure.report();
        }
        choice = Some(reading.choice);
        who = reading.who;
        who.iter_mut().for_each(Who::next_file);
        before = Some(watch);
    }
}

fn locked(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files one after the other, as if they were one: an interface that was in an earlier file has its number.
struct Continued<'a> {
    sink: &'a mut dyn Sink,
    known: Vec<FileInterface>,
    /// Numbers of the interfaces of the current file.
    numbers: Vec<u32>,
    /// Whether the current file was begun anew before it was read to its end.
    overwritten: bool,
}

impl Sink for Continued<'_> {
    fn interface(&mut self, interface: &FileInterface, fine: bool) -> Result<(), End> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let same = (0..self.known.len())
            .find(|&place| self.known[place] == *interface && !self.numbers.contains(&number(place)));
        if same.is_none() {
            self.sink.interface(interface, fine)?;
            self.known.push(interface.clone());
        }
        self.numbers.push(number(same.unwrap_or(self.known.len() - 1)));
        Ok(())
    }

    fn owned(&mut self, whose: &Whose) {
        self.sink.owned(whose);
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), End> {
        let interface = self.numbers.get(packet.interface as usize).copied().unwrap_or(packet.interface);
        self.sink.packet(&weir::with!(*packet, interface))
    }

    fn pause(&mut self) -> Result<(), End> {
        self.sink.pause()
    }

    fn overwritten(&mut self, bytes: u64) -> Result<(), End> {
        self.overwritten = true;
        self.sink.overwritten(bytes)
    }

    fn finish(&mut self) -> Result<(), End> {
        self.sink.finish()
    }
}
