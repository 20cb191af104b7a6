//! Rules in force: loaded into the kernel, by themselves or in front of a capture's programs ([`before`]), and replaced while packets
//! flow.

mod ahead;
pub(crate) mod before;
mod in_force;
mod loader;
mod process;
mod site;

pub(crate) use self::in_force::InForce;
pub(crate) use self::loader::Loader;
pub(crate) use self::process::{Decider, InProcess};
pub(crate) use self::site::{Placed, Site};
