//! What is found at the beginning of some bytes.

/// What a reader finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading<T> {
    /// Nothing of its kind.
    Nothing,
    /// A message, to its end, or as far as it can be known.
    Whole(T),
    /// A message that ends early; what it says so far, if anything. In a TCP connection the rest may follow.
    Part(Option<T>),
}

impl<T> Reading<T> {
    /// Returns a message, which is there to its end or not.
    pub(crate) fn of(message: T, whole: bool) -> Self {
        if whole { Self::Whole(message) } else { Self::Part(Some(message)) }
    }

    /// Makes something else of the message.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Reading<U> {
        match self {
            Self::Nothing => Reading::Nothing,
            Self::Whole(found) => Reading::Whole(make(found)),
            Self::Part(found) => Reading::Part(found.map(make)),
        }
    }
}
