//! The `weir` command.
#![forbid(unsafe_code)]

mod advice;
mod alike;
mod args;
mod capture;
mod check;
mod cli;
mod columns;
mod companion;
mod completions;
mod count;
mod counts;
mod ctl;
mod cut_off;
mod demo;
mod devices;
mod doctor;
mod failure;
mod files;
mod filter;
mod filter_args;
mod flows;
mod forward;
mod generate;
mod grant;
mod guard;
mod hints;
mod info;
mod install;
mod interfaces;
mod libpcap;
mod link_types;
mod live;
mod loss;
mod manual;
mod opening;
mod order;
mod out;
mod program;
mod protocol;
mod read;
mod replay;
mod report;
mod rewriting;
mod rules;
mod sending;
mod ship;
mod shorthand;
mod spelling;
mod sql;
mod stat;
mod stop;
mod style;
mod text;
mod typed;
mod units;
mod unsorted;
mod workers;

use std::env;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    if let Err(failure) = grant::close_to_its_user() {
        return failure.report();
    }
    let words = shorthand::with_command(env::args_os().collect());
    let cli = match Cli::try_parse_from(&words) {
        Ok(cli) => cli,
        Err(error) => return usage(error, words.get(1).and_then(|word| word.to_str())),
    };
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
        Command::Flows(args) => flows::run(args),
        Command::Forward(args) => forward::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Guard(args) => guard::run(args),
        Command::Info(args) => info::run(args),
        Command::Libpcap(args) => libpcap::install(args),
        Command::Read(args) => read::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Rules(args) => rules::run(args),
        Command::Run(args) => libpcap::run(args),
        Command::Ship(args) => ship::run(args, &words),
        Command::Sql(args) => sql::run(args),
        Command::Stat(args) => stat::run(args),
        Command::Top(args) => stat::top(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints help, or what is wrong with the command line. The exit status is 2 in that case.
fn usage(mut error: clap::Error, command: Option<&str>) -> ExitCode {
    if let Some(failure) = spelling::answer(&mut error, command) {
        return failure.report();
    }
    // If that fails, there is no way to report it.
    let _nobody_left = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
