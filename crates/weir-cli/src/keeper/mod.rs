//! Who opens the files for a capture that is confined: processes beside it, which do nothing else.
//!
//! ```text
//! capture: nobody, no directory   -- Ask: open, remove, list -->   weir-files: the user's rights, that directory
//!                                 <-- Answer, a descriptor ---
//!                                 -- run, a pipe ------------->    weir-run: -z
//! ```
//!
//! With `-Z` a third, weir-sockets, removes the sockets of the capture at its end.
//!
//! Each is told beforehand which files there can be (a [`Template`]) and answers for no other: who has taken the capture over can
//! spoil captured files, which he could anyway.

mod answer;
mod ask;
mod wire;

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weir::writer::{Here, Keeper, Template, WriterOptions};
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use self::wire::{Answer, receive};
use crate::confine::Needs;
use crate::failure::Failure;

/// What the processes are to do.
#[derive(Debug)]
pub(super) struct Task {
    template: Template,
    here: Here,
    command: Option<OsString>,
    /// Sockets that go with the capture.
    sockets: Vec<PathBuf>,
    /// Whose the files will be; `None`: who started us.
    user: Option<User>,
}

impl Task {
    /// What it takes, with files at `place`.
    fn needs(&self, place: Option<&Path>) -> Needs {
        let needs = place.into_iter().fold(Needs::to_keep(), Needs::write);
        self.sockets.iter().fold(needs, |needs, socket| needs.remove(socket))
    }
}

/// The processes, asked one question at a time.
#[derive(Debug)]
pub(crate) struct Helpers {
    files: Mutex<Forked>,
    runner: Option<Mutex<Forked>>,
    /// Who removes the sockets, where `files` may not.
    sockets: Option<Forked>,
}

/// Waits until a process that keeps files is confined, or says why it is not.
fn begun(process: &Forked) -> Result<(), String> {
    match receive(process.socket()).map_err(|error| error.to_string())? {
        Some((Answer::Began { refused: None }, _)) => Ok(()),
        Some((Answer::Began { refused: Some(why) }, _)) => Err(why),
        _ => Err("it has ended".to_owned()),
    }
}

impl Helpers {
    /// Starts those that a capture to `file` needs, before it has other threads. `sockets`: removed when all of this is dropped.
    pub(crate) fn start(
        file: Option<&Path>,
        options: &WriterOptions,
        user: Option<&User>,
        sockets: Vec<PathBuf>,
    ) -> Result<Option<Arc<Self>>, Failure> {
        // Standard output is open.
        let file = file.filter(|file| *file != Path::new("-"));
        if file.is_none() && sockets.is_empty() {
            return Ok(None);
        }
        let path = file.unwrap_or_else(|| Path::new("-"));
        if let Some(command) = options.command.as_deref().filter(|command| !weir::writer::can_run(command)) {
            let command = command.to_string_lossy().into_owned();
            return Err(weir::writer::WriteError::Command { command }.into());
        }
        // Files are where the user may write that was asked for, sockets where who started us may.
        let user = user.filter(|_| file.is_some());
        let (sockets, apart) = if user.is_some() { (Vec::new(), sockets) } else { (sockets, Vec::new()) };
        let task = Task {
            template: Template::new(path, options),
            here: Here { group_readable: options.group_readable },
            command: options.command.clone(),
            sockets,
            user: user.cloned(),
        };
        let place = file.map(crate::files::place);
        let place = place.as_deref();
        let started = |error: &dyn Display| {
            Failure::new(format_args!("start a process that opens files: {error}"))
                .hint("--no-confine does without")
        };
        let runner = task
            .command
            .is_some()
            .then(|| fork(c"weir-run", |socket| answer::run_programs(&task, &task.needs(place), &socket)));
        let runner = runner.transpose().map_err(|error| started(&error))?;
        runner.as_ref().map_or(Ok(()), begun).map_err(|why| started(&why))?;
        let files = fork(c"weir-files", |socket| answer::keep_files(&task, place, &socket));
        let files = files.map_err(|error| started(&error))?;
        // While sockets can still be removed by us.
        begun(&files).map_err(|why| started(&why))?;
        let task =
            Task { sockets: apart, template: Template::new(Path::new("-"), options), user: None, ..task };
        let sockets = (!task.sockets.is_empty())
            .then(|| fork(c"weir-sockets", |socket| answer::keep_files(&task, None, &socket)));
        let sockets = sockets.transpose().map_err(|error| started(&error))?;
        sockets.as_ref().map_or(Ok(()), begun).map_err(|why| started(&why))?;
        Ok(Some(Arc::new(Self { files: Mutex::new(files), runner: runner.map(Mutex::new), sockets })))
    }

    /// As a writer wants it.
    pub(crate) fn keeper(self: &Arc<Self>) -> Arc<dyn Keeper> {
        Arc::clone(self) as Arc<dyn Keeper>
    }
}
