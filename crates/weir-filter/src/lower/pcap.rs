//! The dialect `pcap`.

use crate::ast::Ast;
use crate::graph::Graph;
use crate::{Error, Options};

/// What `ast` means in bytes.
pub(crate) fn lower(_ast: &Ast, _options: &Options<'_>) -> Result<Graph, Error> {
    Err(Error::new("this dialect is not there yet", 0..0))
}
