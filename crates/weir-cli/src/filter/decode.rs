//! Decodes classic BPF.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use serde::Serialize;
use weir_filter::cbpf::{Program, Rules};

use super::{print, print_json};
use crate::failure::Failure;
use crate::style;

#[derive(Serialize)]
struct Decoded {
    instructions: usize,
    listing: String,
    /// An equivalent expression in the dialect `pcap`, for Ethernet; null: there is none.
    expression: Option<String>,
    /// Why there is none.
    no_expression: Option<String>,
    /// Why the kernel would reject the program; null: it accepts it.
    flaw: Option<String>,
}

pub(super) fn run(path: &Path, json: bool) -> Result<(), Failure> {
    let text = read(path)?;
    let program = Program::from_numbers(&text).map_err(|error| {
        Failure::usage(format!("{}: {error}", path.display()))
            .hint("--decode reads the output of `tcpdump -ddd`")
    })?;
    let (expression, no_expression) = match program.expression() {
        Ok(expression) => (Some(expression), None),
        Err(reason) => (None, Some(reason.to_string())),
    };
    let decoded = Decoded {
        expression,
        no_expression,
        instructions: program.len(),
        listing: program.listing(),
        flaw: program.check(Rules::Kernel).err().map(|flaw| flaw.to_string()),
    };
    if json { print_json(&decoded) } else { print(&decoded.text()) }
}

fn read(path: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let result = match path.as_os_str() == "-" {
        true => io::stdin().read_to_string(&mut text).map(|_| text),
        false => fs::read_to_string(path),
    };
    result.map_err(|error| Failure::new(format_args!("cannot read {}: {error}", path.display())))
}

impl Decoded {
    fn text(&self) -> String {
        let paint = style::stdout();
        let mut text = self.listing.clone();
        text.push('\n');
        text += &match (&self.expression, &self.no_expression) {
            (Some(expression), _) if expression.is_empty() => "every packet matches\n".to_owned(),
            (Some(expression), _) => {
                format!("{} (--dialect pcap, Ethernet)\n  {expression}\n", paint.bold("as an expression"))
            }
            (None, reason) => format!("no expression: {}\n", reason.as_deref().unwrap_or_default()),
        };
        if let Some(flaw) = &self.flaw {
            text += &format!("{}: {flaw}\n", paint.yellow("the kernel would reject it"));
        }
        text
    }
}
