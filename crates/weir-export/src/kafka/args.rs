//! The command line of `weir-export kafka`, which weir writes and the program reads.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Where flows go, and where they wait.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub struct KafkaArgs {
    /// The brokers to ask first, HOST:PORT, with commas between them.
    #[arg(long)]
    pub brokers: String,

    /// The topic.
    #[arg(long)]
    pub topic: String,

    /// A word for the form of the messages: those of another form, or for another topic, are not in one spool.
    #[arg(long)]
    pub form: String,

    /// The number of this run of weir.
    #[arg(long)]
    pub run: u64,

    /// Keep messages in this directory while brokers are away.
    #[arg(long)]
    pub spool: Option<PathBuf>,

    /// So many bytes of it.
    #[arg(long, default_value_t = 1 << 30)]
    pub spool_size: u64,
}

impl KafkaArgs {
    /// Returns the command line, without the program.
    pub fn words(&self) -> Vec<OsString> {
        let Self { brokers, topic, form, run, spool, spool_size } = self;
        let mut words =
            vec!["kafka".into(), format!("--brokers={brokers}").into(), format!("--topic={topic}").into()];
        words.extend([format!("--form={form}").into(), format!("--run={run}").into()]);
        words.push(format!("--spool-size={spool_size}").into());
        if let Some(spool) = spool {
            let mut word = OsString::from("--spool=");
            word.push(spool);
            words.push(word);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn the_program_reads_what_weir_writes() {
        let spool = Some(PathBuf::from("/var/a b"));
        let args = KafkaArgs {
            brokers: "-a:1,[::1]:2".to_owned(),
            topic: "t".to_owned(),
            form: "json".to_owned(),
            run: 7,
            spool,
            spool_size: 9,
        };
        for args in [args.clone(), KafkaArgs { spool: None, ..args }] {
            let matches = KafkaArgs::augment_args(Command::new("kafka")).get_matches_from(args.words());
            assert_eq!(KafkaArgs::from_arg_matches(&matches).expect("all of it"), args);
        }
    }
}
