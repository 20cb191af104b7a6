//! Running iproute2 and ethtool inside a namespace.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use weir_sys::netns::NetNs;

use crate::Error;

/// Runs the lines as one `ip -batch`, which stops at the first that fails.
pub(crate) fn ip(netns: &NetNs, lines: &[String]) -> Result<(), Error> {
    let script = lines.join("\n") + "\n";
    run(netns, "ip", &["-batch", "-"], &script, "iproute2").map(drop).map_err(|error| match error {
        Error::Tool { message, .. } => Error::Tool { command: format!("ip {}", lines.join("; ")), message },
        other => other,
    })
}

/// Switches features of a device: `gro`, `tso`, `rxvlan`, ... .
pub(crate) fn set_features(netns: &NetNs, interface: &str, features: &[(String, bool)]) -> Result<(), Error> {
    let mut arguments = vec!["-K", interface];
    for (feature, on) in features {
        arguments.extend([feature.as_str(), if *on { "on" } else { "off" }]);
    }
    run(netns, "ethtool", &arguments, "", "ethtool").map(drop)
}

/// One of the driver's own counters.
pub(crate) fn driver_counter(netns: &NetNs, interface: &str, counter: &str) -> Result<u64, Error> {
    let listing = run(netns, "ethtool", &["-S", interface], "", "ethtool")?;
    let value =
        listing.lines().find_map(|line| line.trim().strip_prefix(counter)?.strip_prefix(": ")?.parse().ok());
    value.ok_or_else(|| Error::Tool {
        command: format!("ethtool -S {interface}"),
        message: format!("there is no counter {counter}"),
    })
}

fn run(
    netns: &NetNs,
    tool: &str,
    arguments: &[&str],
    input: &str,
    package: &'static str,
) -> Result<String, Error> {
    let Output { status, stdout, stderr } = output(netns, tool, arguments, input).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return Error::MissingTool { tool: tool.to_owned(), package };
        }
        Error::io(format!("run {tool}"))(error)
    })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let command = format!("{tool} {}", arguments.join(" "));
    Err(Error::Tool { command, message: format!("{} ({status})", String::from_utf8_lossy(&stderr).trim()) })
}

fn output(netns: &NetNs, tool: &str, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut command = Command::new(tool);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = netns.spawn(&mut command)?;
    let mut stdin = child.stdin.take().expect("a pipe was asked for");
    // A tool that ends without reading everything says why on standard error.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    child.wait_with_output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_a_missing_tool_is_named_with_its_package() {
        if !crate::require_root("root_a_missing_tool_is_named_with_its_package") {
            return;
        }
        let netns = NetNs::new().expect("namespace");
        let error = run(&netns, "no-such-tool", &[], "", "toolbox").expect_err("there is none");
        assert_eq!(error.to_string(), "`no-such-tool` was not found: install it (`apt-get install toolbox`)");
    }

    #[test]
    fn root_a_failed_batch_says_what_failed() {
        if !crate::require_root("root_a_failed_batch_says_what_failed") {
            return;
        }
        let netns = NetNs::new().expect("namespace");
        let error =
            ip(&netns, &["link set lo up".to_owned(), "link set moon up".to_owned()]).expect_err("no moon");
        assert!(error.to_string().contains("\"moon\""), "{error}");
    }
}
