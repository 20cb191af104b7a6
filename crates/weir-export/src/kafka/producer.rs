//! librdkafka, which keeps the connections to brokers: a producer that is idempotent, and waits for all replicas.

use std::sync::mpsc::Sender;

use rdkafka::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, PurgeConfig, ThreadedProducer};

use super::event::{Event, Outcome};
use super::wire::Message;

/// Tells the loop what happens.
#[derive(Debug)]
pub(super) struct Listener(pub(super) Sender<Event>);

impl ClientContext for Listener {
    fn error(&self, error: KafkaError, reason: &str) {
        let reason = if reason.is_empty() { error.to_string() } else { reason.to_owned() };
        let event = match error.rdkafka_error_code() {
            Some(RDKafkaErrorCode::Fatal) => Event::Fatal(reason),
            // What each broker says is better.
            Some(RDKafkaErrorCode::AllBrokersDown) => return,
            _ => Event::Trouble(reason),
        };
        let _it_ends = self.0.send(event);
    }
}

impl ProducerContext for Listener {
    type DeliveryOpaque = usize;

    fn delivery(&self, delivered: &DeliveryResult<'_>, token: usize) {
        let (message, outcome) = match delivered {
            Ok(message) => (message, Outcome::Acknowledged),
            Err((error, message)) => (message, Outcome::of(error)),
        };
        let octets = message.payload().map_or(0, <[u8]>::len) + message.key().map_or(0, <[u8]>::len);
        let _it_ends = self.0.send(Event::Delivered { token, outcome, octets });
    }
}

/// Sends messages.
pub(super) struct Producer {
    inner: ThreadedProducer<Listener>,
    topic: String,
}

impl std::fmt::Debug for Producer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Producer").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Producer {
    pub(super) fn new(brokers: &str, topic: &str, listener: Listener) -> Result<Self, String> {
        let mut config = ClientConfig::new();
        for (name, value) in [
            ("bootstrap.servers", brokers),
            ("client.id", "weir"),
            ("enable.idempotence", "true"),
            ("acks", "all"),
            // A message that may be with a broker is never given up: to send it once more would double it.
            ("message.timeout.ms", "0"),
            // More than is ever in flight.
            ("queue.buffering.max.messages", "10000000"),
            ("queue.buffering.max.kbytes", "1048576"),
            ("linger.ms", "20"),
            ("compression.codec", "lz4"),
            // As programs in Java choose partitions.
            ("partitioner", "murmur2_random"),
            ("reconnect.backoff.max.ms", "2000"),
            ("socket.keepalive.enable", "true"),
        ] {
            config.set(name, value);
        }
        let inner = config.create_with_context(listener).map_err(|error| error.to_string())?;
        Ok(Self { inner, topic: topic.to_owned() })
    }

    /// Sends a message. What becomes of it is an [`Event::Delivered`] with this token.
    pub(super) fn send(&self, message: Message<'_>, token: usize) -> Result<(), Outcome> {
        let record = BaseRecord::with_opaque_to(&self.topic, token).key(message.key).payload(message.value);
        self.inner.send(record).map_err(|(error, _)| Outcome::of(&error))
    }

    /// Gives up all messages; each is still told of.
    pub(super) fn give_up(&self) {
        self.inner.purge(PurgeConfig::default().queue().inflight());
    }
}
