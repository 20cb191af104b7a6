//! The command line of `weir ship`, which `weir` shows, too.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  weir flows -i eth0 --to 'file:/var/lib/flows?format=parquet'
  weir ship /var/lib/flows s3://lake/flows --delete
        Write flows to files, and ship each finished file to the bucket `lake`.
  weir ship /var/lib/flows s3://lake/flows --endpoint http://192.0.2.9:9000 --once
        Ship what is there to a store that is not Amazon's, and end.
  weir ship /var/lib/flows file:///mnt/archive
        Copy to a directory.

DIR/sensor=a/day=2026-11-30/x.parquet becomes the object PREFIX/sensor=a/day=2026-11-30/x.parquet. Files and directories whose names \
begin with a dot are left alone: they are not finished.
Keys and region come from the environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL; in Amazon's cloud, from the machine's role.

Each object is read back and compared before its file counts as shipped; DIR/.weir-shipped lists these files. An object is never \
overwritten: if another one is in its place, the file stays, and is told and counted.
SIGINT (Ctrl-C) or SIGTERM ends the program; the next run goes on where it was.
Exit status: 0 success, 1 error, or files are left with --once, 2 usage error.";

/// Ship finished files of a directory to an S3 store, each verified.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub struct ShipArgs {
    /// Ship the finished files below DIR.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// Ship them to s3://BUCKET/PREFIX, or copy them to file:///DIR.
    #[arg(value_name = "STORE")]
    pub(crate) to: String,

    /// Delete a file once its object is verified.
    #[arg(long)]
    pub(crate) delete: bool,

    /// Ship what is there, and end.
    #[arg(long)]
    pub(crate) once: bool,

    /// Look for new files every TIME.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, default_value = "10s")]
    #[arg(conflicts_with = "once")]
    pub(crate) every: Duration,

    /// Reach the S3 store at URL instead of Amazon's.
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,

    /// Print a JSON object for each file shipped, then the account.
    #[arg(long)]
    pub(crate) json: bool,

    /// Print only errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
