//! Opens files for a confined capture: helper processes do this and nothing else.
//!
//! ```text
//! capture: nobody, no directory   -- Ask: open, remove, list -->   weir-files: the user's rights, that directory
//!                                 <-- Answer, a descriptor ---
//!                                 -- run, a pipe ------------->    weir-run: -z
//! ```
//!
//! With `-Z`, a third process, weir-sockets, removes the capture's sockets at the end.
//!
//! Each process is told in advance which files are possible (a [`Template`]) and refuses all others. An attacker who
//! controls the capture can damage captured files, which was possible anyway.

mod answer;
mod ask;
pub(crate) mod wire;

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use weir::parts::{FileBroker, LocalBroker, Template};
use weir::writer::WriterOptions;
use weir_sys::fork::{Forked, fork};
use weir_sys::user::User;

use self::wire::Answer;
pub(crate) use self::wire::{receive, send};
use crate::Error;
use crate::confine::Needs;

/// The job of the helper processes.
#[derive(Debug)]
struct Task {
    template: Template,
    here: LocalBroker,
    command: Option<OsString>,
    /// Sockets to remove at the end of the capture.
    sockets: Vec<PathBuf>,
    /// Owner of the files; `None`: the user who started weir.
    user: Option<User>,
}

impl Task {
    /// Returns the access that the job needs, with files at `place`.
    fn needs(&self, place: Option<&Path>) -> Needs {
        let needs = place.into_iter().fold(Needs::to_keep(), Needs::write);
        self.sockets.iter().fold(needs, |needs, socket| needs.remove(socket))
    }
}

/// The helper processes, asked one request at a time.
#[derive(Debug)]
pub struct Helpers {
    files: Mutex<Forked>,
    runner: Option<Mutex<Forked>>,
    /// Removes the sockets, if `files` may not.
    sockets: Option<Forked>,
}

/// Waits until a process that keeps files is confined, or returns why it is not.
fn begun(process: &Forked) -> Result<(), String> {
    match receive(process.socket()).map_err(|error| error.to_string())? {
        Some((Answer::Began { refused: None }, _)) => Ok(()),
        Some((Answer::Began { refused: Some(why) }, _)) => Err(why),
        _ => Err("it has ended".to_owned()),
    }
}

impl Helpers {
    /// Starts the processes that writing to `file` needs, before this one has other threads. `None`: it needs none.
    ///
    /// # Errors
    ///
    /// If a process does not start, or cannot be confined, or the program to run on files is not there.
    pub fn for_file(file: Option<&Path>, options: &WriterOptions) -> Result<Option<Arc<Self>>, Error> {
        Self::start(file, options, None, Vec::new())
    }

    /// Starts the processes that a capture to `file` needs, before it has other threads. `sockets` are removed when
    /// this is dropped.
    pub(crate) fn start(
        file: Option<&Path>,
        options: &WriterOptions,
        user: Option<&User>,
        sockets: Vec<PathBuf>,
    ) -> Result<Option<Arc<Self>>, Error> {
        // Standard output is already open.
        let file = file.filter(|file| *file != Path::new("-"));
        if file.is_none() && sockets.is_empty() {
            return Ok(None);
        }
        let path = file.unwrap_or_else(|| Path::new("-"));
        if let Some(command) = options.command.as_deref().filter(|command| !weir::parts::can_run(command)) {
            let command = command.to_string_lossy().into_owned();
            return Err(weir::writer::WriteError::Command { command }.into());
        }
        // Files are where the requested user may write, sockets where the user who started weir may.
        let user = user.filter(|_| file.is_some());
        let (sockets, apart) = if user.is_some() { (Vec::new(), sockets) } else { (sockets, Vec::new()) };
        let task = Task {
            template: Template::new(path, options),
            here: LocalBroker { group_readable: options.group_readable },
            command: options.command.clone(),
            sockets,
            user: user.cloned(),
        };
        let place = file.map(place_of);
        let place = place.as_deref();
        let started = |error: &dyn Display| Error::Helper(error.to_string());
        let runner = task
            .command
            .is_some()
            .then(|| fork(c"weir-run", |socket| answer::run_programs(&task, &task.needs(place), &socket)));
        let runner = runner.transpose().map_err(|error| started(&error))?;
        runner.as_ref().map_or(Ok(()), begun).map_err(|why| started(&why))?;
        let files = fork(c"weir-files", |socket| answer::keep_files(&task, place, &socket));
        let files = files.map_err(|error| started(&error))?;
        // While this process can still remove sockets itself.
        begun(&files).map_err(|why| started(&why))?;
        let task =
            Task { sockets: apart, template: Template::new(Path::new("-"), options), user: None, ..task };
        let sockets = (!task.sockets.is_empty())
            .then(|| fork(c"weir-sockets", |socket| answer::keep_files(&task, None, &socket)));
        let sockets = sockets.transpose().map_err(|error| started(&error))?;
        sockets.as_ref().map_or(Ok(()), begun).map_err(|why| started(&why))?;
        Ok(Some(Arc::new(Self { files: Mutex::new(files), runner: runner.map(Mutex::new), sockets })))
    }

    /// Returns the broker for a writer.
    pub fn broker(self: &Arc<Self>) -> Arc<dyn FileBroker> {
        Arc::clone(self) as Arc<dyn FileBroker>
    }
}

/// Returns the place where files of this name are created: the part of the path without time conversions, or a file
/// beside them.
fn place_of(file: &Path) -> PathBuf {
    let steady = |path: &&Path| {
        path.parent().is_none_or(|parent| !parent.as_os_str().as_encoded_bytes().contains(&b'%'))
    };
    file.ancestors().find(steady).unwrap_or(file).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_without_times() {
        for (file, expected) in [
            ("a/b", "a/b"),
            ("/x/%Y/%m/t-%H", "/x/%Y"),
            ("t-%H", "t-%H"),
            ("%Y/t", "%Y"),
            ("/var/t", "/var/t"),
        ] {
            assert_eq!(place_of(Path::new(file)), Path::new(expected), "{file}");
        }
    }
}
