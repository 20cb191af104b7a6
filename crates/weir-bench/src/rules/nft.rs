//! nft as a contestant: a hidden command that makes rules, waits for SIGINT, says how many packets they have counted, and takes
//! them away.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::set::DEVICE;
use crate::failure::{Failure, failed};
use crate::program::{installed, succeeded};
use crate::receive::interrupted;
use crate::style;

#[derive(Debug, Args)]
pub(crate) struct NftArgs {
    #[arg(short)]
    interface: String,
    /// In nft's language.
    #[arg(long)]
    rules: PathBuf,
}

/// Makes the rules, waits, and prints the number of packets.
pub(crate) fn run(args: &NftArgs) -> Result<(), Failure> {
    let stop = interrupted()?;
    let text =
        fs::read_to_string(&args.rules).map_err(failed("read rules"))?.replace(DEVICE, &args.interface);
    nft(&["-f", "-"], &text)?;
    style::say(format_args!("ready"));
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
    // Without the elements of sets.
    let listed = nft(&["-j", "list", "chain", "netdev", "weir", "c"], "")?;
    nft(&["delete", "table", "netdev", "weir"], "")?;
    let listed: Value = serde_json::from_str(&listed).map_err(failed("read the output of nft"))?;
    let objects = listed["nftables"].as_array().into_iter().flatten();
    let expressions = objects.filter_map(|object| object["rule"]["expr"].as_array()).flatten();
    let packets: u64 = expressions.filter_map(|expression| expression["counter"]["packets"].as_u64()).sum();
    writeln!(io::stdout(), "{packets}").map_err(failed("write to standard output"))
}

/// Runs nft with this on its standard input.
fn nft(arguments: &[&str], input: &str) -> Result<String, Failure> {
    let mut command = Command::new(installed("nft", "nftables")?);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed("run nft"))?;
    let mut pipe = child.stdin.take().expect("a pipe was asked for");
    pipe.write_all(input.as_bytes()).map_err(failed("write to nft"))?;
    drop(pipe);
    let output = succeeded("nft", child.wait_with_output())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
