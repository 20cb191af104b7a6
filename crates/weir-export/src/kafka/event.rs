//! What happens: weir asks for something, or librdkafka has something to say.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::wire::Request;

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    Request(Request),
    /// weir has ended.
    Closed,
    Delivered {
        token: usize,
        outcome: Outcome,
        octets: usize,
    },
    Trouble(String),
    /// The producer cannot go on; another one can.
    Fatal(String),
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All replicas in sync have it.
    Acknowledged,
    /// No broker will ever take it.
    Refused(String),
    /// It is to be sent again.
    Again(String),
}

impl Outcome {
    pub(super) fn of(error: &KafkaError) -> Self {
        use RDKafkaErrorCode as Code;
        match error.rdkafka_error_code() {
            Some(
                Code::MessageSizeTooLarge
                | Code::InvalidMessage
                | Code::InvalidMessageSize
                | Code::InvalidRecord,
            ) => Self::Refused(error.to_string()),
            _ => Self::Again(error.to_string()),
        }
    }
}
