//! The `weir` command.
#![forbid(unsafe_code)]

mod advice;
mod args;
mod capture;
mod cli;
mod completions;
mod count;
mod ctl;
mod cut_off;
mod demo;
mod devices;
mod doctor;
mod failure;
mod files;
mod filter;
mod filter_args;
mod forward;
mod grant;
mod hints;
mod info;
mod interfaces;
mod json;
mod libpcap;
mod live;
mod loss;
mod manual;
mod opening;
mod order;
mod read;
mod report;
mod stop;
mod style;
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    // A usage error ends here, with clap's message and exit status 2.
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Capture(args) => capture::run(args),
        Command::Completions(args) => completions::run(args, Cli::command()),
        Command::Count(args) => count::run(args),
        Command::Ctl(args) => ctl::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Devices(args) => devices::run(args),
        Command::Manual(args) => manual::run(args, Cli::command()),
        Command::Doctor(args) => doctor::run(args),
        Command::Filter(args) => filter::run(args),
        Command::Forward(args) => forward::run(args),
        Command::Info(args) => info::run(args),
        Command::Libpcap(args) => libpcap::install(args),
        Command::Read(args) => read::run(args),
        Command::Run(args) => libpcap::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
