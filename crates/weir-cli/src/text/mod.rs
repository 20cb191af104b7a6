//! Packets as text on standard output, from files and live: weir-render's lines and objects.

mod args;
mod names;
mod page;

pub(crate) use self::args::LineArgs;
pub(crate) use self::page::Page;
