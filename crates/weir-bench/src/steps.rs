//! What the reader of weir's captures does with a packet before it looks at it: work whose price an experiment wants to know.

use clap::{Args, ValueEnum};
use weir_filter::Dialect;
use weir_filter::interpret::{Interpreter, Packet};
use weir_judge::compiled::options;
use weir_native::Native;

use crate::failure::Failure;

/// Ethernet.
const LINK_TYPE: u16 = 1;

#[derive(Debug, Args)]
pub(super) struct StepArgs {
    /// Copies of each packet beside the one in the pool.
    #[arg(long, default_value = "0")]
    copies: usize,
    /// Asked in the reader; what does not match is not looked at.
    #[arg(long, requires = "engine")]
    ask: Option<String>,
    #[arg(long, value_enum)]
    engine: Option<Engine>,
}

/// What runs a filter.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Engine {
    Native,
    Interpreter,
}

/// A filter, ready to run.
enum Question {
    Native(Box<Native>),
    Interpreted(Interpreter<'static>),
}

pub(super) struct Steps {
    copies: Vec<Vec<u8>>,
    question: Option<Question>,
}

impl Steps {
    pub(super) fn new(args: &StepArgs) -> Result<Self, Failure> {
        let question = args.ask.as_deref().zip(args.engine);
        let question = question.map(|(text, engine)| Question::new(text, engine)).transpose()?;
        Ok(Self { copies: vec![Vec::new(); args.copies], question })
    }

    /// The packet, or its last copy; none if it does not match.
    #[inline]
    pub(super) fn take<'a>(&'a mut self, frame: &'a [u8]) -> Option<&'a [u8]> {
        if self.question.as_ref().is_some_and(|question| !question.accepts(frame)) {
            return None;
        }
        Some(self.copies.iter_mut().fold(frame, |last, copy| {
            copy.clear();
            copy.extend_from_slice(last);
            copy
        }))
    }
}

impl Question {
    fn new(text: &str, engine: Engine) -> Result<Self, Failure> {
        let filter = weir_filter::compile(text, &options(Dialect::Pcap, LINK_TYPE)).map_err(Failure::new)?;
        Ok(match engine {
            Engine::Native => {
                Self::Native(Box::new(Native::new(&filter.graph, &filter.ast.sets).map_err(Failure::new)?))
            }
            Engine::Interpreter => Self::Interpreted(Interpreter::owning(filter.graph, &filter.ast.sets)),
        })
    }

    #[inline]
    fn accepts(&self, frame: &[u8]) -> bool {
        let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let packet = Packet { data: frame, length, ..Packet::default() };
        match self {
            Self::Native(native) => native.run(&packet) != 0,
            Self::Interpreted(interpreter) => interpreter.run(&packet) != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_engines_answer_and_copies_are_the_packet() {
        let frame = weir_lab::Traffic::new(60).expect("a size").frame(7);
        for engine in [Engine::Native, Engine::Interpreter] {
            for (text, matches) in [("ip and udp port 9", true), ("arp", false)] {
                let args = StepArgs { copies: 2, ask: Some(text.to_owned()), engine: Some(engine) };
                let mut steps = Steps::new(&args).expect("a filter");
                assert_eq!(steps.take(&frame), matches.then_some(&frame[..]), "{text} {engine:?}");
            }
        }
    }
}
