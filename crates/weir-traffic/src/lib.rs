//! Test traffic: frames that carry a [`Signature`], by which a receiver can tell which ones arrived, and when they were
//! sent. The receiver is a [`Checker`].
//!
//! ```text
//! Description -> flows (addresses, ports) -> headers --.
//!             -> order (which flow is next) -----------+-> Tables -> frame n
//!             -> sizes --------------------------------'
//! ```
//!
//! - `description`: what is wanted, and what is impossible in it; `ranges`: addresses and ports as text.
//! - `flows`, `headers`, `order`, `sizes`, `payload`: the parts; `random`: numbers that a seed determines.
//! - `tables`: what all of these become, and the frames. A program in the kernel can use the same tables.
//! - `signature`: the bytes of the signature.
//! - `check`: what arrived, and what became of the rest.
//! - `templates`: frames of others, sent in turn; `rewrite`: packets of others with other addresses; `sides`: who sent them.
//! - `checksum`, `layout`: the checksum of all of these, and where things are in frames of any origin.

#![forbid(unsafe_code)]

mod check;
mod checksum;
mod description;
mod flows;
mod headers;
mod layout;
mod order;
mod payload;
mod random;
mod ranges;
mod rewrite;
mod sides;
mod signature;
mod sizes;
mod tables;
mod templates;

pub use self::check::{
    Bucket, Checker, Frame, FrameCounters, Latency, Report, STREAMS, StreamReport, WINDOW,
};
pub use self::description::{Description, DescriptionField, Protocol, Refusal, Vxlan};
pub use self::headers::{Checksum, Length};
pub use self::order::Order;
pub use self::payload::Payload;
pub use self::ranges::{Addresses, Ports};
pub use self::rewrite::{
    Carried, Copies, Framing, Left, NetworkMap, PortMap, Pseudonyms, Rewrite, Rewriter, Tag, cut,
};
pub use self::sides::{Side, Sides};
pub use self::signature::{Found, SIGNATURE_LENGTH, Signature};
pub use self::sizes::Sizes;
pub use self::tables::{Head, LONGEST_HEAD, MOST_CHECKSUMS, Tables};
pub use self::templates::{Templates, Unsigned, hex};
