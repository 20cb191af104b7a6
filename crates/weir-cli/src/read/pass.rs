//! Moves selected packets from the input to a sink.

use weir::filter::FileFilter;
use weir::reader::{Item, ReadError, ReadReason};

use super::choice::{Choice, Verdict};
use super::input::{Input, Sort};
use super::sink::{End, Sink};
use super::who::Who;
use super::{Progress, ReadArgs, failure};
use crate::failure::Failure;

/// The input, the selection and the progress bar.
pub(super) struct Pass<'a> {
    args: &'a ReadArgs,
    filter: Option<&'a FileFilter>,
    pub(super) input: Input,
    pub(super) choice: Choice,
    progress: Progress,
    /// How the input is sorted.
    pub(super) sort: Sort,
    /// `None`: nobody asks whose packets are.
    pub(super) who: Option<Who<'a>>,
}

impl<'a> Pass<'a> {
    pub(super) fn open(
        args: &'a ReadArgs,
        filter: Option<&'a FileFilter>,
        sort: Sort,
    ) -> Result<Self, Failure> {
        let input = Input::open_until_signal(&args.files(), sort, filter)?;
        let progress = Progress::new(input.meters(), input.size(), args.prints());
        let who = args.who(sort, filter)?;
        Ok(Self { filter, progress, sort, who, ..Self::of(args, input) })
    }

    /// Reads `input`, which has its filter already.
    pub(super) fn of(args: &'a ReadArgs, input: Input) -> Self {
        let choice = Choice::new(args.limits(), input.meters());
        Self {
            args,
            filter: None,
            input,
            choice,
            progress: Progress::default(),
            sort: args.sort(),
            who: None,
        }
    }

    /// Starts over, sorting this time.
    fn again(&mut self) -> Result<(), Failure> {
        self.progress.clear();
        *self = Self::open(self.args, self.filter, self.args.sort())?;
        Ok(())
    }
}

/// Moves selected packets to `sink`. The intact parts of damaged input are included.
pub(super) fn pass(pass: &mut Pass<'_>, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut damage = Vec::new();
    let mut result = work(pass, sink, &mut damage);
    if let Err(End::Unordered) = result {
        damage.clear();
        let again = pass.again().map_err(End::from).and_then(|()| sink.begin_again());
        result = again.and_then(|()| work(pass, sink, &mut damage));
    }
    pass.progress.clear();
    let finished = result.and_then(|()| {
        // The intact part of a damaged file counts. A file that the filter cannot apply to leaves the total unknown.
        if damage.iter().any(|damage| matches!(damage.reason, ReadReason::Filter { .. })) {
            sink.refused();
        }
        sink.finish()
    });
    if finished.is_err() {
        sink.give_up();
    }
    Failure::each(damage.into_iter().map(failure).chain(end(finished).err()).collect())
}

/// Reads to the end, and adds the damage that was found.
fn work(pass: &mut Pass<'_>, sink: &mut dyn Sink, damage: &mut Vec<ReadError>) -> Result<(), End> {
    let Pass { args, input, choice, who, .. } = pass;
    // Whether runs can be copied unchanged: nothing is left out but what the reader itself filters.
    let mut runs = false;
    let mut told = Vec::new();
    loop {
        while runs && let Some(run) = input.next_run() {
            sink.run(&run)?;
        }
        let described = match input.next() {
            Ok(Some(Item::Packet(mut packet))) => {
                let owned = match who {
                    None => None,
                    Some(who) => match who.judge(&mut packet) {
                        Some(whose) => Some((who, whose)),
                        None => continue,
                    },
                };
                let (interface, lost) = (packet.interface, packet.lost_before);
                let give = |packet| match owned {
                    None => sink.packet(packet),
                    Some((who, whose)) => who.give(&whose, packet, sink),
                };
                match choice.judge(packet) {
                    Verdict::Take(packet) => give(&packet)?,
                    Verdict::Last(packet) => return give(&packet),
                    Verdict::Leave => sink.left(interface, lost),
                }
                None
            }
            Ok(Some(Item::Interface(number))) => Some(number),
            Ok(Some(Item::Statistics(statistics))) => {
                sink.statistics(&statistics)?;
                None
            }
            Ok(Some(Item::Block { kind, body })) => {
                who.iter_mut().for_each(|who| who.block(kind, body));
                sink.block(kind, body)?;
                None
            }
            Ok(Some(Item::Pause)) => {
                sink.pause()?;
                if args.follow && choice.is_past() {
                    return Ok(());
                }
                None
            }
            Ok(None) => {
                sink.comments(&input.later_comments(&mut told));
                return Ok(());
            }
            // This is part of following, and `sink` says so.
            Err(ReadError { reason: ReadReason::Overwritten { unread }, .. }) => {
                sink.overwritten(unread)?;
                None
            }
            Err(error) => {
                damage.push(error);
                None
            }
        };
        let described = described.and_then(|number| Some((number, input.interfaces().get(number as usize)?)));
        if let Some((number, interface)) = described {
            who.iter_mut().for_each(|who| who.interface(number, interface));
            sink.comments(&input.later_comments(&mut told));
            sink.interface(&choice.described(interface), input.fine())?;
            runs = choice.takes_whole()
                && who.is_none()
                && input.one().is_some_and(|reader| sink.takes_runs(reader));
        }
    }
}

fn end(result: Result<(), End>) -> Result<(), Failure> {
    match result {
        // The reader of the output has enough.
        Ok(()) | Err(End::Enough) => Ok(()),
        Err(End::Failed(failure)) => Err(failure),
        Err(End::Unordered) => unreachable!("the second attempt sorts"),
    }
}
