//! Options for owners of packets.

use std::ffi::OsStr;
use std::path::Path;

use clap::Args;
use weir::who::{Process, Whose};
use weir_sys::user::User;

/// Shortest part of a container's ID that stands for it.
const SHORTEST_ID: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct WhoArgs {
    /// Show whose each packet is: `nginx[4711]`.
    ///
    /// FILE must come from weir capture --who, which keeps in it what became of sockets; see docs/who.md. Lines end with the process on the host
    /// that captured: of a packet that it has sent, the sender; of one that it has received, the receiver; of one that stays on it,
    /// both: `curl[812] > nginx[4711]`. How it was found is added: nothing if it is certain; `?listener` if the
    /// process listens for the connection, which another may have accepted; `?before` if the socket is older than the
    /// capture; `nginx[4711|4712]` if it is one of these. `kernel` stands for packets of no process, `forwarded` for those of other
    /// hosts, `-` for unknown. In names, `[ ] | > ? \` have a `\` before them. Objects (--json) have sender and receiver, with found (certain,
    /// listener, several, before, kernel, forwarded, unknown), pid, name, user, parent, program, arguments, cgroup, unit and container, or
    /// one_of, a list of processes. With -w, records name the process if it is certain
    /// (pcapng, epb_processid_threadid, with 0 for the thread). weir reads FILE twice, since packets may come before what is known of their
    /// socket, with five seconds between; from a pipe, and with --follow, it knows only what has come before.
    #[arg(long, conflicts_with_all = ["repair", "check", "stream"], help_heading = "Line format")]
    who: bool,

    /// With -w, comment on each packet: `sender nginx[4711] user 33 certain`.
    ///
    /// For programs that know nothing but comments. They imply --who.
    #[arg(hide_short_help = true, long = "who-comments", requires = "write", help_heading = "Output")]
    #[arg(conflicts_with_all = ["repair", "check", "stream"])]
    comments: bool,

    /// Skip packets of other processes.
    ///
    /// NAME is that of the process or of its program's file. Packets that may be theirs (`?listener`, `nginx[4711|4712]`) are
    /// included, as they are with --pid, --user and --container. Each of these can be repeated, for any of several; of
    /// different ones, all must fit. -c counts what is left.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["repair", "check", "stream"], help_heading = "Selection")]
    process: Vec<String>,

    /// Skip packets of processes with other numbers.
    #[arg(hide_short_help = true, long, value_name = "N", conflicts_with_all = ["repair", "check", "stream"], help_heading = "Selection")]
    pid: Vec<u32>,

    /// Skip packets of other users: a name on this machine, or a number.
    #[arg(hide_short_help = true, long, value_name = "USER", value_parser = user)]
    #[arg(conflicts_with_all = ["repair", "check", "stream"], help_heading = "Selection")]
    user: Vec<u32>,

    /// Skip packets of other containers: a name, or at least eight digits of an ID.
    #[arg(hide_short_help = true, long, value_name = "NAME", conflicts_with_all = ["repair", "check", "stream"], help_heading = "Selection")]
    container: Vec<String>,
}

impl WhoArgs {
    /// Returns whether owners are looked for.
    pub(in super::super) fn is_on(&self) -> bool {
        self.who || self.comments || self.selects()
    }

    /// Returns whether they are shown, or put into records.
    pub(super) fn is_told(&self) -> bool {
        self.who || self.comments
    }

    pub(super) fn comments(&self) -> bool {
        self.comments
    }

    /// Returns whether packets of some owners are left out.
    pub(in super::super) fn selects(&self) -> bool {
        let Self { process, pid, user, container, .. } = self;
        !(process.is_empty() && pid.is_empty() && user.is_empty() && container.is_empty())
    }

    /// Returns whether a packet is wanted.
    pub(super) fn takes(&self, whose: &Whose) -> bool {
        !self.selects()
            || whose.owners().any(|owner| owner.processes.iter().any(|process| self.takes_process(process)))
    }

    fn takes_process(&self, of: &Process) -> bool {
        let Self { process, pid, user, container, .. } = self;
        let is_named = |name: &String| {
            let program = of.program.as_deref().and_then(|program| Path::new(program).file_name());
            *name == of.name || program == Some(OsStr::new(name))
        };
        let is_in = |wanted: &String| {
            of.container.as_ref().is_some_and(|container| {
                let is_id = wanted.len() >= SHORTEST_ID && container.id.starts_with(wanted.as_str());
                is_id || container.name.as_ref() == Some(wanted)
            })
        };
        (process.is_empty() || process.iter().any(is_named))
            && (pid.is_empty() || pid.contains(&of.id.number))
            && (user.is_empty() || user.contains(&of.user))
            && (container.is_empty() || container.iter().any(is_in))
    }
}

/// Parses a user.
fn user(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match User::find(text) {
        Ok(Some(user)) => Ok(user.uid),
        Ok(None) => Err("no such user here; a number is right wherever the file is from".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
