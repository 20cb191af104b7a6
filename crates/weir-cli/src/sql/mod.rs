//! `weir sql`: prints SQL with which engines of others read files of flows.
//!
//! The views are the same for all engines (`views.sql`), but for a few words; how files are read is each engine's own.
//! No comment has a semicolon, so whoever runs the statements one by one can divide them there.

mod place;

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use weir_columns::{Columns, Described, Values};

use self::place::Place;
use crate::failure::Failure;
use crate::out;

const EXAMPLES: &str = "\
Examples:
  weir flows -i eth0 --to 'file:/var/lib/weir/flows?format=parquet'
  weir sql --for duckdb --from /var/lib/weir/flows | duckdb flows.db
  duckdb flows.db 'SELECT * FROM top_talkers'
        Write flows to files, make views of them once, and ask.
  weir sql --for clickhouse --from s3://lake/flows --endpoint http://192.0.2.9:9000
        The same for ClickHouse, of what weir ship has put into a store that is not Amazon's.
  weir sql --for spark --from s3://lake/flows > flows.sql; spark-sql -i flows.sql
        For Spark, in the bucket `lake` at Amazon.

Views: flows has a row for each flow; host_flows, flows_by_host, top_talkers, conversations, by_application, by_name, by_hour, scans, retransmissions \
and slow_servers are made from it. They read whatever files are there when a question is asked.
Keys of a store come from where the engine runs: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the machine's role.
Exit status: 0 success, 1 error, 2 usage error.";

/// Print SQL with which DuckDB, ClickHouse or Spark read files of flows.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SqlArgs {
    /// Engine: duckdb, clickhouse or spark.
    #[arg(long = "for", value_name = "ENGINE", value_enum, hide_possible_values = true)]
    engine: Engine,

    /// Read the files below DIR, or s3://BUCKET/PREFIX.
    #[arg(long, value_name = "PLACE", default_value = "/var/lib/weir/flows")]
    from: Place,

    /// Reach the S3 store at URL instead of Amazon's.
    #[arg(long, value_name = "URL", value_parser = place::endpoint)]
    endpoint: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Engine {
    #[value(name = "duckdb")]
    DuckDb,
    #[value(name = "clickhouse")]
    ClickHouse,
    Spark,
}

/// Views of flows: `@VIEW` creates one, `@P95` is what 95 of 100 connections took at most to answer.
const VIEWS: &str = include_str!("views.sql");

/// The region that stores other than Amazon's say they are in, unless told otherwise.
const REGION: &str = "us-east-1";

/// Runs the command.
pub(crate) fn run(args: &SqlArgs) -> Result<(), Failure> {
    if args.endpoint.is_some() && matches!(args.from, Place::Directory(_)) {
        return Err(Failure::usage("--endpoint is for files in a store: --from s3://BUCKET/PREFIX"));
    }
    out::print(args.engine.sql(&args.from, args.endpoint.as_deref()).as_bytes())
}

impl Engine {
    fn sql(self, from: &Place, endpoint: Option<&str>) -> String {
        let (about, files) = match self {
            Self::DuckDb => (include_str!("duckdb.sql"), duckdb(from, endpoint)),
            Self::ClickHouse => (include_str!("clickhouse.sql"), clickhouse(from, endpoint)),
            Self::Spark => (include_str!("spark.sql"), spark(from, endpoint)),
        };
        let (view, p95) = match self {
            Self::DuckDb => ("CREATE OR REPLACE VIEW", "quantile_cont(f.server_seconds, 0.95)"),
            Self::ClickHouse => ("CREATE OR REPLACE VIEW", "quantileExactInclusive(0.95)(f.server_seconds)"),
            Self::Spark => ("CREATE OR REPLACE TEMPORARY VIEW", "percentile(f.server_seconds, 0.95)"),
        };
        let head = include_str!("head.sql");
        format!("{about}{head}{files}{VIEWS}").replace("@VIEW", view).replace("@P95", p95)
    }

    /// Returns the type of a column in this engine.
    fn column(self, column: Described) -> &'static str {
        match (self, column.values) {
            (Self::ClickHouse, Values::Texts) => "String",
            (Self::ClickHouse, Values::Int32) => "Int32",
            (Self::ClickHouse, Values::Int64) => "Int64",
            (Self::ClickHouse, Values::Doubles) => "Float64",
            (Self::ClickHouse, Values::Times) => "DateTime64(6, \\'UTC\\')",
            (_, Values::Texts) => "STRING",
            (_, Values::Int32) => "INT",
            (_, Values::Int64) => "BIGINT",
            (_, Values::Doubles) => "DOUBLE",
            (_, Values::Times) => "TIMESTAMP",
        }
    }
}

fn duckdb(from: &Place, endpoint: Option<&str>) -> String {
    let mut sql = String::new();
    let files = match from {
        Place::Directory(directory) => format!("{directory}/**/*.parquet"),
        Place::Bucket { bucket, prefix } => {
            let reached = endpoint.map(|url| {
                let (scheme, host) = url.split_once("://").unwrap_or(("https", url));
                format!(", ENDPOINT '{host}', URL_STYLE 'path', USE_SSL {}", scheme == "https")
            });
            let _infallible = write!(
                sql,
                "-- Who asks the store. It is forgotten at the end of the session: repeat this line in the next one.\n\
                 CREATE OR REPLACE SECRET weir (TYPE s3, PROVIDER credential_chain{}, SCOPE 's3://{bucket}');\n\n",
                reached.unwrap_or_default()
            );
            format!("s3://{bucket}{prefix}/**/*.parquet")
        }
    };
    let _infallible = write!(
        sql,
        "-- If some files have `columns=basic` and others not, add: , union_by_name = true\n\
         @VIEW flows AS\n\
         SELECT * FROM read_parquet('{files}', hive_partitioning = true,\n  \
         hive_types = {{'sensor': VARCHAR, 'day': DATE, 'hour': INTEGER}});\n"
    );
    sql
}

fn clickhouse(from: &Place, endpoint: Option<&str>) -> String {
    let columns = Columns::All.described().map(|column| {
        let kind = Engine::ClickHouse.column(column);
        // What `columns=basic` leaves out is NULL there.
        if column.is_optional || !Columns::Basic.described().any(|basic| basic == column) {
            format!("{} Nullable({kind})", column.name)
        } else {
            format!("{} {kind}", column.name)
        }
    });
    let columns = listed(columns.chain(["sensor String", "day Date", "hour Int32"].map(str::to_owned)));
    let files = match (from, endpoint) {
        (Place::Directory(directory), _) => format!("file('{directory}/**/*.parquet'"),
        (Place::Bucket { bucket, prefix }, Some(url)) => format!("s3('{url}/{bucket}{prefix}/**/*.parquet'"),
        (Place::Bucket { bucket, prefix }, None) => {
            format!("s3('https://{bucket}.s3.amazonaws.com{prefix}/**/*.parquet'")
        }
    };
    format!("@VIEW flows AS\nSELECT * FROM {files}, 'Parquet', '{columns}');\n")
}

fn spark(from: &Place, endpoint: Option<&str>) -> String {
    let columns =
        Columns::All.described().map(|column| format!("{} {}", column.name, Engine::Spark.column(column)));
    let columns = listed(columns.chain(["sensor STRING", "day DATE", "hour INT"].map(str::to_owned)));
    let files = match from {
        Place::Directory(directory) => format!("path 'file://{directory}'"),
        Place::Bucket { bucket, prefix } => {
            let reached = endpoint.map(|url| {
                format!(
                    ", fs.s3a.endpoint '{url}', fs.s3a.path.style.access 'true',\n  fs.s3a.endpoint.region '{REGION}'"
                )
            });
            format!("path 's3a://{bucket}{prefix}'{}", reached.unwrap_or_default())
        }
    };
    format!("@VIEW flows ({columns})\nUSING parquet OPTIONS ({files}, pathGlobFilter '*.parquet');\n")
}

/// Returns items with commas between them, in lines of four.
fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.collect();
    items.chunks(4).map(|some| some.join(", ")).collect::<Vec<_>>().join(",\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(engine: Engine, from: &str, endpoint: Option<&str>) -> String {
        engine.sql(&from.parse().expect("a place"), endpoint)
    }

    #[test]
    fn each_engine_has_all_views_and_is_told_where_files_are() {
        let endpoint = Some("http://192.0.2.9:9000");
        for (engine, from, endpoint, told) in [
            (Engine::DuckDb, "/a/b/", None, "read_parquet('/a/b/**/*.parquet'"),
            (Engine::DuckDb, "s3://lake", None, "read_parquet('s3://lake/**/*.parquet'"),
            (
                Engine::DuckDb,
                "s3://lake/x/",
                endpoint,
                "ENDPOINT '192.0.2.9:9000', URL_STYLE 'path', USE_SSL false, SCOPE 's3://lake'",
            ),
            (
                Engine::ClickHouse,
                "/a",
                None,
                "file('/a/**/*.parquet', 'Parquet', 'first DateTime64(6, \\'UTC\\'),",
            ),
            (Engine::ClickHouse, "s3://lake/x", None, "s3('https://lake.s3.amazonaws.com/x/**/*.parquet'"),
            (Engine::ClickHouse, "s3://lake/x", endpoint, "s3('http://192.0.2.9:9000/lake/x/**/*.parquet'"),
            (Engine::Spark, "/a", None, "path 'file:///a', pathGlobFilter"),
            (
                Engine::Spark,
                "s3://lake/x",
                endpoint,
                "path 's3a://lake/x', fs.s3a.endpoint 'http://192.0.2.9:9000'",
            ),
        ] {
            let text = sql(engine, from, endpoint);
            assert!(text.contains(told), "{told}: {text}");
            assert!(!text.contains('@') && text.matches(" VIEW ").count() == 11, "{text}");
            let comments = text.lines().filter(|line| line.starts_with("--"));
            assert!(
                comments.clone().count() > 15 && comments.clone().all(|line| !line.contains(';')),
                "{text}"
            );
            // The help has the name of each.
            for view in text.split(" VIEW ").skip(1).filter_map(|rest| rest.split([' ', '(']).next()) {
                assert!(EXAMPLES.contains(view), "{view}");
            }
        }
    }
}
