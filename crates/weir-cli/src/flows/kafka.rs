//! A topic of Kafka, as the command line says it: `kafka://HOST:PORT,HOST:PORT/TOPIC?format=json&spool=DIR`.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::str::FromStr;

use weir_export::KafkaArgs;

use crate::units;

/// The scheme.
pub(super) const SCHEME: &str = "kafka://";
/// Kafka's.
const PORT: u16 = 9092;
/// The longest name of a topic.
const LONGEST: usize = 249;
/// The size of a spool, unless told otherwise, and the smallest one.
const SPOOL: u64 = 1 << 30;
const SMALLEST: u64 = 1 << 20;

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A JSON object, for a flow.
    Json,
    /// goflow2's, for each direction of a flow.
    Protobuf,
}

/// Where flows go, and where they wait meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kafka {
    /// Each with a port.
    brokers: Vec<String>,
    topic: String,
    pub(super) form: Form,
    spool: Option<PathBuf>,
    spool_size: u64,
    /// As the user wrote it.
    text: String,
}

impl FromStr for Kafka {
    type Err = String;

    /// Reads what follows `kafka://`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "allowed: kafka://HOST:PORT,HOST:PORT/TOPIC?format=protobuf&spool=DIR&spool-size=1GiB".to_owned()
        };
        let (place, options) = text.split_once('?').unwrap_or((text, ""));
        let (hosts, topic) = place.split_once('/').ok_or_else(wrong)?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if topic.is_empty()
            || topic.len() > LONGEST
            || matches!(topic, "." | "..")
            || !topic.chars().all(is_plain)
        {
            return Err(format!(
                "topic `{topic}`: allowed: letters, digits, '-', '_' and '.', at most {LONGEST}"
            ));
        }
        let brokers = hosts.split(',').map(broker).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
        let (mut form, mut spool, mut spool_size) = (Form::Json, None, None);
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("format", "json")) => form = Form::Json,
                Some(("format", "protobuf")) => form = Form::Protobuf,
                Some(("spool", directory)) if !directory.is_empty() => spool = Some(directory.into()),
                Some(("spool-size", value)) => {
                    let size = units::size(value).map_err(|error| format!("spool-size={value}: {error}"))?;
                    if size < SMALLEST {
                        return Err(format!("spool-size={value}: allowed: 1MiB and more"));
                    }
                    spool_size = Some(size);
                }
                _ => {
                    let allowed =
                        "format=json, format=protobuf, spool=DIR and spool-size=SIZE, with '&' between them";
                    return Err(format!("{option}: allowed: {allowed}"));
                }
            }
        }
        if spool.is_none() && spool_size.is_some() {
            return Err("spool-size: there is no spool; add spool=DIR".to_owned());
        }
        let spool_size = spool_size.unwrap_or(SPOOL);
        Ok(Self {
            brokers,
            topic: topic.to_owned(),
            form,
            spool,
            spool_size,
            text: format!("{SCHEME}{text}"),
        })
    }
}

/// Reads `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`. Returns it with a port.
fn broker(text: &str) -> Option<String> {
    // An address of IPv6 has brackets.
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (format!("[{address}]"), port.strip_prefix(':').or_else(|| port.is_empty().then_some(port))?)
        }
        None => {
            let (host, port) = text.split_once(':').unwrap_or((text, ""));
            (host.to_owned(), port)
        }
    };
    let port = if port.is_empty() { Some(PORT) } else { port.parse().ok().filter(|port| *port > 0) }?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.[]:".contains(letter);
    (!host.is_empty() && host.chars().all(is_plain)).then(|| format!("{host}:{port}"))
}

impl Display for Kafka {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Kafka {
    /// Returns what weir-export is to do. `run`: the number of this run.
    pub(super) fn args(&self, run: u64) -> KafkaArgs {
        let form = match self.form {
            Form::Json => "json",
            Form::Protobuf => "protobuf",
        };
        KafkaArgs {
            brokers: self.brokers.join(","),
            topic: self.topic.clone(),
            form: form.to_owned(),
            run,
            spool: self.spool.clone(),
            spool_size: self.spool_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_brokers_and_options() {
        let parsed = |text: &str| text.parse::<Kafka>();
        for (text, brokers) in [
            ("a/flows", "a:9092"),
            (
                "192.0.2.7:1,b.example,[2001:db8::7],[::1]:2/flows",
                "192.0.2.7:1,b.example:9092,[2001:db8::7]:9092,[::1]:2",
            ),
        ] {
            let kafka = parsed(text).expect("a topic");
            let args = kafka.args(7);
            assert_eq!(
                (args.brokers.as_str(), args.topic.as_str(), args.form.as_str()),
                (brokers, "flows", "json")
            );
            assert_eq!((args.spool, args.run, kafka.to_string()), (None, 7, format!("kafka://{text}")));
        }
        let args =
            parsed("a/x-1?format=protobuf&spool=/var/spool/weir&spool-size=2GiB").expect("a topic").args(1);
        assert_eq!((args.form.as_str(), args.spool_size), ("protobuf", 2 << 30));
        assert_eq!(args.spool, Some("/var/spool/weir".into()));
        for (text, told) in [
            ("", "allowed: kafka://HOST"),
            ("a", "allowed: kafka://HOST"),
            ("/flows", "allowed: kafka://HOST"),
            ("a,/flows", "allowed: kafka://HOST"),
            ("a:0/flows", "allowed: kafka://HOST"),
            ("::1/flows", "allowed: kafka://HOST"),
            ("[x]:1/flows", "allowed: kafka://HOST"),
            ("u@a/flows", "allowed: kafka://HOST"),
            ("a/", "topic ``: allowed: letters"),
            ("a/b/c", "topic `b/c`: allowed"),
            ("a/..", "topic `..`: allowed"),
            ("a/x?format=avro", "format=avro: allowed: format=json"),
            ("a/x?spool=", "spool=: allowed"),
            ("a/x?spool-size=1GiB", "add spool=DIR"),
            ("a/x?spool=d&spool-size=1k", "allowed: 1MiB and more"),
            ("a/x?spool=d&spool-size=much", "spool-size=much"),
        ] {
            let error = parsed(text).expect_err("it is wrong");
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
