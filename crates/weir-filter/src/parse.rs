//! From text to [`Ast`].

use crate::ast::Ast;
use crate::{Error, Options};

/// Understands `text`.
pub fn parse(_text: &str, _options: &Options<'_>) -> Result<Ast, Error> {
    Err(Error::new("the parser is not there yet", 0..0))
}
