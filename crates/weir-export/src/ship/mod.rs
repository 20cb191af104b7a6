//! Ships finished files of a directory to a store.
//!
//! ```text
//! finished files, oldest first -> put, if there is none -> read back, compare -> journal -> (--delete) delete
//! ```
//!
//! A file is only told to be there once its object was read back. Whatever stops the program, the next run goes on: an
//! object that is there already is compared instead of written.

mod account;
mod files;
mod journal;
mod store;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::account::Account;
use self::files::{Finished, finished};
use self::journal::Journal;
use self::store::{Shipped, Store, StoreError};
use crate::args::ShipArgs;

/// Between two tries while the store cannot be reached.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Tries with `--once`.
const TRIES: u32 = 4;

/// Runs the command.
pub fn run(args: &ShipArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = runtime.map_err(Trouble::Start).and_then(|runtime| runtime.block_on(ship(args)));
    match result {
        Ok(code) => code,
        Err(trouble) => {
            say(&trouble.to_string());
            ExitCode::from(if matches!(trouble, Trouble::Usage(_)) { 2 } else { 1 })
        }
    }
}

/// Why nothing can be shipped.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("cannot start: {0}")]
    Start(io::Error),
    #[error("{0}")]
    Usage(StoreError),
    #[error("{0}")]
    Journal(#[from] journal::JournalError),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// Tells the user something; where nobody reads it, nothing can be done.
fn say(text: &str) {
    let _unread = writeln!(io::stderr(), "weir: {text}");
}

/// A file that was shipped, for programs.
#[derive(Debug, Serialize)]
struct FileShipped<'a> {
    /// Always `shipped`.
    r#type: &'static str,
    file: String,
    object: &'a str,
    bytes: u64,
    sha256: &'a str,
    /// The object was there already.
    was_there: bool,
}

/// A run.
struct Run<'a> {
    args: &'a ShipArgs,
    store: Store,
    journal: Journal,
    account: Account,
    /// Files that are not tried again in this run.
    refused: Vec<Finished>,
    /// The user knows that the store cannot be reached.
    is_told: bool,
    /// The next round is the first.
    is_first: bool,
}

async fn ship(args: &ShipArgs) -> Result<ExitCode, Trouble> {
    let store = Store::open(&args.to, args.endpoint.as_deref()).map_err(Trouble::Usage)?;
    let journal = Journal::open(&args.dir, &args.to)?;
    let mut stop = Stop::new().map_err(Trouble::Start)?;
    let mut run = Run {
        args,
        store,
        journal,
        account: Account::default(),
        refused: Vec::new(),
        is_told: false,
        is_first: true,
    };
    let mut wait = SHORTEST;
    let mut tries = 0;
    loop {
        let round = tokio::select! {
            () = stop.wait() => break,
            round = run.round() => round?,
        };
        let pause = match round {
            Round::Done if args.once => break,
            Round::Done => {
                (wait, tries) = (SHORTEST, 0);
                args.every
            }
            Round::Unreachable => {
                tries += 1;
                if args.once && tries >= TRIES {
                    break;
                }
                let pause = wait;
                wait = (wait * 2).min(LONGEST);
                pause
            }
        };
        tokio::select! {
            () = stop.wait() => break,
            () = tokio::time::sleep(pause) => {}
        }
    }
    run.end()
}

/// How a round ended.
enum Round {
    /// Each file is shipped, or has been refused.
    Done,
    /// The store could not be reached.
    Unreachable,
}

impl Run<'_> {
    /// Ships all files that are not shipped yet.
    async fn round(&mut self) -> Result<Round, Trouble> {
        let mut all = finished(&self.args.dir, &mut |problem| say(&problem));
        // What is to be deleted is compared once more if an earlier run has shipped it.
        let is_over = |file: &Finished| self.journal.has(file) && !self.args.delete;
        if std::mem::take(&mut self.is_first) {
            self.account.earlier = all.iter().filter(|file| is_over(file)).count() as u64;
        }
        all.retain(|file| !is_over(file) && !self.refused.contains(file));
        self.account.waiting = all.len() as u64;
        for file in all {
            let began = Instant::now();
            match self.store.ship(&self.args.dir, &file).await {
                Ok(shipped) => self.note(file, &shipped, began.elapsed())?,
                Err(StoreError::Unreachable(why)) => {
                    if !std::mem::replace(&mut self.is_told, true) {
                        say(&format!(
                            "cannot ship to {}: {why}; files wait, and it is tried again",
                            self.args.to
                        ));
                    }
                    return Ok(Round::Unreachable);
                }
                // It is looked at again in the next round, if it is there.
                Err(StoreError::Changed) => {}
                Err(error) => {
                    say(&format!("cannot ship {}: {error}", file.path.display()));
                    self.account.refused += 1;
                    self.refused.push(file);
                }
            }
            self.account.waiting -= 1;
        }
        Ok(Round::Done)
    }

    fn note(&mut self, file: Finished, shipped: &Shipped, time: Duration) -> Result<(), Trouble> {
        if std::mem::take(&mut self.is_told) && !self.args.quiet {
            say(&format!("{} can be reached again", self.args.to));
        }
        let full = self.args.dir.join(&file.path);
        self.account.add(file.size, shipped.was_there);
        self.journal.add(file.clone(), &shipped.sha256)?;
        if self.args.delete
            && let Err(error) = std::fs::remove_file(&full)
        {
            say(&format!("cannot delete {}: {error}; it is shipped", full.display()));
            self.refused.push(file);
        }
        let (file, object) = (full.display().to_string(), shipped.object.as_str());
        let (bytes, sha256, was_there) = (shipped.bytes, shipped.sha256.as_str(), shipped.was_there);
        if self.args.json {
            print(&FileShipped { r#type: "shipped", file, object, bytes, sha256, was_there })
        } else if self.args.quiet {
            Ok(())
        } else {
            let how = if was_there { "was there already" } else { "verified" };
            say(&format!("{file} -> {object}: {bytes} bytes in {:.1} s, {how}", time.as_secs_f64()));
            Ok(())
        }
    }

    fn end(self) -> Result<ExitCode, Trouble> {
        let Self { args, account, .. } = self;
        if args.json {
            print(&account)?;
        }
        if !args.quiet {
            say(&account.text());
        }
        let is_short = account.refused > 0 || (args.once && account.waiting > 0);
        Ok(if is_short { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Prints an object.
fn print(object: &impl Serialize) -> Result<(), Trouble> {
    let mut line = serde_json::to_string(object).expect("it has text and numbers only");
    line.push('\n');
    io::stdout().write_all(line.as_bytes()).map_err(Trouble::Output)
}

/// The signals that end the program.
struct Stop(Signal, Signal);

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}
