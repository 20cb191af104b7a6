//! Who a command is while it runs: somebody who may do nothing, if it was root who started it.

use clap::Args;
use weir_sys::privilege::{self, Capabilities};
use weir_sys::user::User;

use crate::failure::Failure;

/// The user that the package makes for no other program.
const OWN: &str = "weir";
/// Who is everywhere: others may be it, too.
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

/// Who to become.
#[derive(Debug)]
pub(crate) enum Become {
    /// Somebody who was named.
    Asked(User),
    /// A user of weir's own; files stay with who started it.
    Own(User),
    /// Nobody else; with a word about it, where that is weaker than it could be.
    Nobody(Option<&'static str>),
}

impl UserArgs {
    /// Who to become, looked up while that is possible.
    pub(crate) fn find(&self) -> Result<Become, Failure> {
        let Some(name) = &self.relinquish_privileges else { return own() };
        let found = User::find(name).map_err(|error| Failure::new(format_args!("-Z {name}: {error}")))?;
        let unknown = || {
            Failure::usage(format!("-Z {name}: no such user"))
                .hint("getent passwd lists those that there are")
        };
        let user = found.ok_or_else(unknown)?;
        Ok(if user.uid == 0 && rustix::process::geteuid().is_root() {
            Become::Nobody(Some("it is user 0, as requested"))
        } else {
            Become::Asked(user)
        })
    }

    /// Becomes that user, with nothing else given up.
    pub(super) fn switch_to(user: &User) -> Result<(), Failure> {
        user.switch_to().map_err(|error| {
            Failure::new(format_args!("-Z {}: {error}", user.name))
                .hint("changing the user takes root, or CAP_SETUID and CAP_SETGID")
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
    Ok(found.map_or(Become::Nobody(Some("it stays user 0: it cannot become another")), Become::Own))
}

impl Become {
    /// Who takes packets.
    pub(super) fn user(&self) -> Option<&User> {
        match self {
            Self::Asked(user) | Self::Own(user) => Some(user),
            Self::Nobody(_) => None,
        }
    }

    /// Whose files are, if that is not who started us.
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

    /// Threads of the sources, which give everything up by themselves, become it too.
    pub(crate) fn threads_too(&self) {
        self.user().into_iter().for_each(privilege::become_nobody_as);
    }
}
