//! Suggestions for misspelt words.

/// Longest word to compare, in bytes; all keywords are shorter.
const LONGEST: usize = 40;

/// Longest excerpt of a text in a message, in characters.
const SHOWN: usize = 40;

/// Returns the word that `written` was probably meant to be: the one with the fewest differing letters, if they are few
/// for its length. Among equals, one with the same first letter is preferred.
pub fn nearest<'w>(written: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    if written.len() > LONGEST {
        return None;
    }
    let within = |word: &str| (written.len().max(word.len()) / 3).max(1);
    let distances = words.map(|word| (distance(written, word), word));
    let near = distances.filter(|&(distance, word)| distance < word.len() && distance <= within(word));
    let begins_alike = |word: &str| word.chars().next() == written.chars().next();
    near.min_by_key(|&(distance, word)| (distance, !begins_alike(word))).map(|(_, word)| word)
}

/// Returns the number of letters to insert, delete, replace or swap with a neighbour to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    let mut before = vec![0; to.len() + 1];
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, other) in to.iter().enumerate() {
            let mut least = (last[column] + usize::from(!letter.eq_ignore_ascii_case(other)))
                .min(last[column + 1] + 1)
                .min(line[column] + 1);
            let exchanged = row > 0 && column > 0 && from[row - 1] == *other && to[column - 1] == *letter;
            if exchanged {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut last, line);
    }
    last[to.len()]
}

/// Returns the beginning of a long text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_found_and_what_is_far_is_not() {
        let words = ["port", "proto", "host", "portrange", "udp"];
        let find = |word| nearest(word, words.into_iter());
        assert_eq!(find("prot"), Some("port"), "two letters exchanged are one mistake");
        assert_eq!(find("hots"), Some("host"));
        assert_eq!(find("portrnage"), Some("portrange"));
        assert_eq!(find("PORT"), Some("port"));
        assert_eq!(nearest("htp", ["ftp", "http"].into_iter()), Some("http"));
        assert_eq!(find("example"), None);
        assert_eq!(find(&"p".repeat(1000)), None);
    }
}
