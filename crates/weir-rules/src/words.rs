//! The words of an action, one after the other.

use std::ops::Range;

use weir_filter::{Error, spelling};

/// Reads words from the left.
#[derive(Debug)]
pub(crate) struct Words<'t> {
    text: &'t str,
    /// Where the last word was.
    last: Range<usize>,
    /// Where the rest is.
    rest: Range<usize>,
}

impl<'t> Words<'t> {
    /// Begins with the first word in `range` of `text`, which has one.
    pub(crate) fn new(text: &'t str, range: Range<usize>) -> Self {
        Self { text, last: range.start..range.start, rest: range }
    }

    /// Returns the next word, and stays before it.
    pub(crate) fn peek(&self) -> Option<&'t str> {
        self.text[self.rest.clone()].split_whitespace().next()
    }

    /// Returns the next word.
    pub(crate) fn next(&mut self) -> Option<&'t str> {
        let word = self.peek()?;
        let begin = self.rest.start + self.text[self.rest.clone()].find(word)?;
        self.last = begin..begin + word.len();
        self.rest.start = self.last.end;
        Some(word)
    }

    /// Takes the next word if it is this one.
    pub(crate) fn takes(&mut self, word: &str) -> bool {
        let is_next = self.peek() == Some(word);
        if is_next {
            self.next();
        }
        is_next
    }

    /// Takes words that must follow.
    pub(crate) fn expect(&mut self, words: &[&'static str]) -> Result<(), Error> {
        words.iter().try_for_each(|word| self.one_of(&[word]).map(drop))
    }

    /// Takes one of several words, of which one must follow.
    pub(crate) fn one_of(&mut self, words: &[&'static str]) -> Result<&'static str, Error> {
        let list: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let expected = format!("expected {}", either(&list));
        let given = self.value(&expected)?;
        if let Some(word) = words.iter().find(|word| **word == given) {
            return Ok(word);
        }
        Err(self.wrong(&format!("{expected}, not `{given}`"), words))
    }

    /// Takes any word, of which one must follow.
    pub(crate) fn value(&mut self, expected: &str) -> Result<&'t str, Error> {
        let end = self.last.end;
        self.next().ok_or_else(|| Error::new(expected, end..end))
    }

    /// Returns an error at the last word, and which of `words` it was probably meant to be.
    pub(crate) fn wrong(&self, message: &str, words: &[&'static str]) -> Error {
        let error = Error::new(message, self.last.clone());
        match spelling::nearest(&self.text[self.last.clone()], words.iter().copied()) {
            Some(word) => error.help(format!("did you mean `{word}`?")),
            None => error,
        }
    }

    /// Returns where the last word was.
    pub(crate) fn span(&self) -> Range<usize> {
        self.last.clone()
    }
}

/// Joins words: `a`, `b` or `c`.
pub(crate) fn either(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
