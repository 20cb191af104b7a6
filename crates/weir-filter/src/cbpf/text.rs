//! Parser for the output of `tcpdump -ddd`, and for iptables' variant with commas instead of line ends.

use super::{Instruction, Program};

/// An error in the text of a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// The first line is not a number.
    #[error("the first line is not the number of instructions")]
    Count,
    /// A line is not four numbers.
    #[error("line {line} is not `CODE JT JF K`: `{text}`")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Content of the line.
        text: String,
    },
    /// The number of instructions differs from the first line's.
    #[error("the first line says {said} instructions, but there are {found}")]
    Length {
        /// Number in the first line.
        said: usize,
        /// Number of lines after it.
        found: usize,
    },
}

impl Program {
    /// Parses `text`, without [checking](Program::check) the program.
    pub fn from_numbers(text: &str) -> Result<Self, TextError> {
        let mut lines = text.split(['\n', ',']).enumerate().filter(|(_, line)| !line.trim().is_empty());
        let said = lines.next().and_then(|(_, line)| line.trim().parse().ok()).ok_or(TextError::Count)?;
        let instructions: Vec<_> = lines
            .map(|(index, line)| {
                instruction(line)
                    .ok_or_else(|| TextError::Line { line: index + 1, text: line.trim().to_owned() })
            })
            .collect::<Result<_, _>>()?;
        let found = instructions.len();
        if said == found { Ok(Self { instructions }) } else { Err(TextError::Length { said, found }) }
    }
}

fn instruction(line: &str) -> Option<Instruction> {
    let mut words = line.split_whitespace();
    let code = words.next()?.parse().ok()?;
    let jt = words.next()?.parse().ok()?;
    let jf = words.next()?.parse().ok()?;
    let k = words.next()?.parse().ok()?;
    words.next().is_none().then_some(Instruction { code, jt, jf, k })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        let text = "4\n40 0 0 12\n21 0 1 2048\n6 0 0 262144\n6 0 0 0\n";
        let program = Program::from_numbers(text).unwrap();
        assert_eq!(program.as_numbers(), text);
        assert_eq!(Program::from_numbers(&text.replace('\n', ",")), Ok(program));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text| Program::from_numbers(text).unwrap_err().to_string();
        assert_eq!(error(""), "the first line is not the number of instructions");
        assert_eq!(error("2\n6 0 0 0\n"), "the first line says 2 instructions, but there are 1");
        assert_eq!(error("1\n6 0 0\n"), "line 2 is not `CODE JT JF K`: `6 0 0`");
        assert_eq!(error("1\n\n6 0 256 0\n"), "line 3 is not `CODE JT JF K`: `6 0 256 0`");
        assert_eq!(error("1\n6 0 0 0 0"), "line 2 is not `CODE JT JF K`: `6 0 0 0 0`");
    }
}
