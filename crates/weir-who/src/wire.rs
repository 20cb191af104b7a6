//! News as bytes.

use std::fmt;

use crate::News;

/// Bytes that are no news.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(pub(crate) String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

/// Appends news to `bytes`, which [`decode`] reads on any machine.
pub fn encode(news: &[News], bytes: &mut Vec<u8>) {
    todo!()
}

/// Reads what [`encode`] has written.
///
/// # Errors
///
/// They are cut, or from something else. News of kinds that this version does not know are left out.
pub fn decode(bytes: &[u8]) -> Result<Vec<News>, WireError> {
    todo!()
}
