//! The `weir-export` program, which `weir ship` starts.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weir_export::{ShipArgs, ship};

/// Takes what weir has written elsewhere.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Ship finished files of a directory to an S3 store, each verified.
    Ship(ShipArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Ship(args) => ship(&args),
    }
}
