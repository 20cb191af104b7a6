//! The user of a running command: an unprivileged one, if root started it.

use clap::Args;
use weir_sys::privilege::{self, Capabilities};
use weir_sys::user::User;

use crate::failure::Failure;

/// The user that the package creates for weir alone.
const OWN: &str = "weir";
/// The user that exists everywhere and may be in use by others.
const LAST: &str = "nobody";

#[derive(Debug, Args)]
#[command(next_help_heading = "Privileges")]
pub(crate) struct UserArgs {
    /// Switch to USER once the interfaces are open.
    ///
    /// USER then creates and owns all files. Without -Z, weir started as root switches to the user
    /// `weir`, or to an otherwise unused user if there is none, and root owns the files. `-Z root`
    /// keeps weir running as root.
    #[arg(hide_short_help = true, short = 'Z', long, value_name = "USER")]
    relinquish_privileges: Option<String>,
}

/// The user to switch to.
#[derive(Debug)]
pub(crate) enum Become {
    /// The user who was requested.
    Asked(User),
    /// A user for weir alone; files belong to the user who started it.
    Own(User),
    /// No switch, with a note if that weakens the sandbox.
    Nobody(Option<&'static str>),
}

impl UserArgs {
    /// Finds the user to switch to, while lookups are possible.
    pub(crate) fn find(&self) -> Result<Become, Failure> {
        let Some(name) = &self.relinquish_privileges else { return own() };
        let found = User::find(name).map_err(|error| Failure::new(format_args!("-Z {name}: {error}")))?;
        let unknown =
            || Failure::usage(format!("-Z {name}: no such user")).hint("`getent passwd` lists users");
        let user = found.ok_or_else(unknown)?;
        Ok(if user.uid == 0 && rustix::process::geteuid().is_root() {
            Become::Nobody(Some("runs as root, as requested"))
        } else {
            Become::Asked(user)
        })
    }

    /// Switches to the user and drops nothing else.
    pub(super) fn switch_to(user: &User) -> Result<(), Failure> {
        user.switch_to().map_err(|error| {
            Failure::new(format_args!("-Z {}: {error}", user.name))
                .hint("changing the user requires root, or CAP_SETUID and CAP_SETGID")
        })
    }
}

fn own() -> Result<Become, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Become::Nobody(None));
    }
    let takes = Capabilities::SETUID | Capabilities::SETGID;
    let may = privilege::effective().is_ok_and(|held| held.contains(takes));
    let known = |name| User::find(name).ok().flatten();
    let found = || known(OWN).or_else(User::passing).or_else(|| known(LAST));
    let found = may.then(found).flatten();
    Ok(found.map_or(Become::Nobody(Some("runs as root: it cannot change its user")), Become::Own))
}

impl Become {
    /// Returns the user who captures packets.
    pub(super) fn user(&self) -> Option<&User> {
        match self {
            Self::Asked(user) | Self::Own(user) => Some(user),
            Self::Nobody(_) => None,
        }
    }

    /// Returns the owner of the files, if it is not the user who started weir.
    pub(crate) fn asked_for(&self) -> Option<&User> {
        match self {
            Self::Asked(user) => Some(user),
            _ => None,
        }
    }

    pub(super) fn weakness(&self) -> Option<&'static str> {
        match self {
            Self::Nobody(weakness) => *weakness,
            _ => None,
        }
    }

    /// Makes the threads of sources, which drop their privileges themselves, switch as well.
    pub(crate) fn threads_too(&self) {
        self.user().into_iter().for_each(privilege::become_nobody_as);
    }
}
