//! Sends flows to Kafka, for weir, which is at the other end of a socket.

mod args;
#[cfg(feature = "program")]
mod event;
#[cfg(feature = "program")]
mod producer;
#[cfg(feature = "program")]
mod run;
#[cfg(feature = "program")]
mod sandbox;
#[cfg(feature = "program")]
mod spool;
pub mod wire;

pub use self::args::KafkaArgs;

/// Runs the command. Its standard input is a socket to weir.
#[cfg(feature = "program")]
pub fn run(args: &KafkaArgs) -> std::process::ExitCode {
    use std::process::ExitCode;

    let ran = run::socket().map_err(|error| error.to_string()).and_then(|socket| {
        sandbox::enter(args.spool.as_deref())?;
        run::run(args, socket)
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // weir was told, if it is there.
        Err(_) => ExitCode::FAILURE,
    }
}
