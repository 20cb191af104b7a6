//! Which interfaces there are, and which one is meant when none is named.

use std::io::{self, Write};

use weir::link::{self, Link};

use crate::failure::Failure;
use crate::style;

/// The interfaces named on the command line, or the one that is meant when none is; says which.
pub(crate) fn chosen(named: &[String]) -> Result<Vec<String>, Failure> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let links = links()?;
    let Some(first) = links.iter().find(|link| link.is_up() && !link.is_loopback()) else {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let hint = format!("name one with -i, or bring one up; there are: {}", names.join(", "));
        return Err(
            Failure::new("find an interface that is up and is not loopback: there is none").hint(hint)
        );
    };
    style::say(format_args!("no -i: taking {}, the first interface that is up", first.name));
    Ok(vec![first.name.clone()])
}

/// Prints all interfaces, with the numbers and words of `tcpdump -D`.
pub(crate) fn list() -> Result<(), Failure> {
    let links = links()?;
    let mut stdout = io::stdout().lock();
    let lines = links
        .iter()
        .zip(1..)
        .try_for_each(|(link, number)| writeln!(stdout, "{number}.{} [{}]", link.name, describe(link)));
    match lines.and_then(|()| stdout.flush()) {
        // Whoever read it has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| Failure::new(format_args!("write to standard output: {error}"))),
    }
}

fn describe(link: &Link) -> String {
    let mut words = vec![if link.is_up() { "Up" } else { "Down" }.to_owned()];
    if link.is_loopback() {
        words.push("Loopback".to_owned());
    }
    words.push(format!("MTU {}", link.mtu));
    if link.rx_queues > 1 {
        words.push(format!("{} receive queues", link.rx_queues));
    }
    if let Some(program) = link.xdp_program {
        words.push(format!("XDP program {program}"));
    }
    words.join(", ")
}

fn links() -> Result<Vec<Link>, Failure> {
    link::links().map_err(|error| Failure::new(format_args!("list interfaces: {error}")))
}
