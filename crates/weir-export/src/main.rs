//! The `weir-export` program, which weir starts.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use weir_export::{KafkaArgs, ShipArgs, kafka, ship};

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
    /// Send flows to Kafka, for a running weir.
    #[command(hide = true)]
    Kafka(KafkaArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Ship(args) => ship(&args),
        Command::Kafka(args) => kafka(&args),
    }
}
