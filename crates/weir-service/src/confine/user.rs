//! The user of a running command: an unprivileged one, if root started it.

use weir_sys::privilege::{self, Capabilities};
use weir_sys::user::User;

use crate::Error;

/// The user that the package creates for weir alone.
const OWN: &str = "weir";
/// The user that exists everywhere and may be in use by others.
const LAST: &str = "nobody";

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

/// Switches to the user and drops nothing else.
pub(super) fn switch_to(user: &User) -> Result<(), Error> {
    user.switch_to().map_err(|error| Error::SwitchUser { name: user.name.clone(), why: error.to_string() })
}

fn own() -> Become {
    if !rustix::process::geteuid().is_root() {
        return Become::Nobody(None);
    }
    let takes = Capabilities::SETUID | Capabilities::SETGID;
    let may = privilege::effective().is_ok_and(|held| held.contains(takes));
    let known = |name| User::find(name).ok().flatten();
    let found = || known(OWN).or_else(User::passing).or_else(|| known(LAST));
    let found = may.then(found).flatten();
    found.map_or(Become::Nobody(Some("runs as root: it cannot change its user")), Become::Own)
}

/// Returns the user for processes that leave files to later ones, if root started the program.
pub(crate) fn lasting() -> Option<User> {
    let known = |name| User::find(name).ok().flatten();
    let takes = Capabilities::SETUID | Capabilities::SETGID;
    let may = privilege::effective().is_ok_and(|held| held.contains(takes));
    if rustix::process::geteuid().is_root() && may { known(OWN).or_else(|| known(LAST)) } else { None }
}

impl Become {
    /// Finds the user `asked` for, or else a user for weir alone if root started it, while lookups are possible.
    pub(crate) fn find(asked: Option<&str>) -> Result<Self, Error> {
        let Some(name) = asked else { return Ok(own()) };
        let found = User::find(name)
            .map_err(|error| Error::User { name: name.to_owned(), why: error.to_string() })?;
        let user = found.ok_or_else(|| Error::UnknownUser(name.to_owned()))?;
        Ok(if user.uid == 0 && rustix::process::geteuid().is_root() {
            Self::Nobody(Some("runs as root, as requested"))
        } else {
            Self::Asked(user)
        })
    }

    /// Returns the user who captures packets.
    pub(crate) fn user(&self) -> Option<&User> {
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
