"""Makes the views of `weir sql` in an engine and prints the rows of each as JSON.

    ask.py chdb|datafusion|spark DIR < SQL

chDB is ClickHouse as a library. DataFusion gets the views of DuckDB, over a table of its own. Spark has two workers, processes of their own.
"""

import atexit
import datetime
import json
import os
import re
import sys


def plain(value):
    """The same value in all engines: times as DuckDB writes them."""
    if isinstance(value, datetime.datetime):
        value = value.strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, datetime.date):
        return str(value)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", value):
        return value.rstrip("0").rstrip(".") + "+00" if "." in value else value + "+00"
    return value


def chdb():
    from chdb.session import Session

    session = Session()

    def ask(statement, wants_rows):
        answer = session.query(statement, "JSON")
        return json.loads(answer.data())["data"] if wants_rows else None

    return ask


def datafusion():
    from datafusion import SessionContext

    context = SessionContext()

    def ask(statement, wants_rows):
        if "read_parquet" in statement:
            context.sql(f"CREATE EXTERNAL TABLE files STORED AS PARQUET PARTITIONED BY (sensor, day, hour) LOCATION '{sys.argv[2]}/'")
            statement = "CREATE VIEW flows AS SELECT * REPLACE (CAST(hour AS INT) AS hour) FROM files"
        answer = context.sql(statement.replace("quantile_cont", "percentile_cont"))
        return answer.to_arrow_table().to_pylist() if wants_rows else answer.collect() and None

    return ask


def spark():
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in {
        "ui.enabled": "false",
        "sql.session.timeZone": "UTC",
        "driver.host": "127.0.0.1",
        "driver.bindAddress": "127.0.0.1",
        "sql.shuffle.partitions": "2",
        # Each file is one task at least, so both workers read.
        "sql.files.openCostInBytes": str(128 << 20),
    }.items():
        builder = builder.config(f"spark.{key}", value)
    session = builder.getOrCreate()
    # Otherwise executors that have ended are started again until the driver has gone.
    atexit.register(session.stop)
    executors = session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    print(f"{len(executors) - 1} workers", file=sys.stderr)

    def ask(statement, wants_rows):
        answer = session.sql(statement)
        return [row.asDict() for row in answer.collect()] if wants_rows else None

    return ask


ask = {"chdb": chdb, "datafusion": datafusion, "spark": spark}[sys.argv[1]]()
sql = sys.stdin.read()
for statement in sql.split(";\n"):
    if statement.strip():
        ask(statement, False)
for view in re.findall(r"VIEW (\w+)", sql):
    rows = [{key: plain(value) for key, value in row.items()} for row in ask(f"SELECT * FROM {view}", True)]
    print(json.dumps({"view": view, "rows": rows}))
