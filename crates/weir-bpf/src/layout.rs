//! Structs and numbers that a program shares with this process. Each is written once, in C: libbpf-cargo makes a Rust type
//! of what clang says about it. A struct's fields are read from bytes, and written to bytes, by their names.
//!
//! weir-ring is built without clang and has structs of its own; `same!` compares them when this crate is compiled.

use std::array;

use weir_ring::shared::{CLOSED, Order, Progress, Queue, Way, WayKey};

skeleton!("layout");

pub(crate) use skeleton::types::{
    arrival, continuing, direction, forward_direction, hooks, key_field, limit_key, limited, log_record,
    log_sizes, mark, no_number, order, progress, queue, rule_capture, rule_fate, rule_kind, rule_tables,
    sampling, steering, stray, timestamps, trace, verdict_of_rules, way, way_bucket, way_key, who_cause,
    who_executed, who_process, who_report,
};

/// A number, as the processor has it in memory.
pub trait Number: Sized {
    /// Reads it from the beginning of `bytes`.
    fn read(bytes: &[u8]) -> Self;

    /// Writes it to the beginning of `bytes`.
    fn write(self, bytes: &mut [u8]);
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Number for $type {
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(*bytes.first_chunk().expect("all bytes of a number"))
            }

            #[inline]
            fn write(self, bytes: &mut [u8]) {
                *bytes.first_chunk_mut().expect("all bytes of a number") = self.to_ne_bytes();
            }
        }
    )*};
}
number!(u8, u16, u32, u64, i64);

impl<T: Number, const N: usize> Number for [T; N] {
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        array::from_fn(|at| T::read(&bytes[at * size_of::<T>()..]))
    }

    #[inline]
    fn write(self, bytes: &mut [u8]) {
        for (at, number) in self.into_iter().enumerate() {
            number.write(&mut bytes[at * size_of::<T>()..]);
        }
    }
}

/// Reads the field at `at` of an `S`. `_` gives its type.
#[inline]
pub fn read<S, F: Number>(bytes: &[u8], at: usize, _: fn(&S) -> F) -> F {
    F::read(&bytes[at..])
}

/// Writes the field at `at` of an `S`.
#[inline]
pub(crate) fn write<S, F: Number>(bytes: &mut [u8], at: usize, _: fn(&S) -> F, value: F) {
    value.write(&mut bytes[at..]);
}

/// Returns the bytes of a field.
pub(crate) const fn width<S, F>(_: fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// `get!(bytes, queue.seen)`: the field `seen` of the `queue` at the beginning of `bytes`.
#[macro_export]
macro_rules! get {
    ($bytes:expr, $struct:ident.$($field:ident).+) => {
        $crate::layout::read($bytes, std::mem::offset_of!($struct, $($field).+), |of: &$struct| of.$($field).+)
    };
}
pub use get;

/// `set!(bytes, queue.seen = 1)` sets that field.
macro_rules! set {
    ($bytes:expr, $struct:ident.$($field:ident).+ = $value:expr) => {
        $crate::layout::write(
            $bytes,
            std::mem::offset_of!($struct, $($field).+),
            |of: &$struct| of.$($field).+,
            $value,
        )
    };
}
pub(crate) use set;

/// Does not compile unless the two structs have these fields, each in the same place and of the same size, and no others.
macro_rules! same {
    ($ours:ident, $theirs:ident: $($field:ident),+ $(,)?) => {
        const _: () = {
            use std::mem::offset_of;

            use $crate::layout::width;

            #[allow(dead_code, reason = "lists all fields of both")]
            fn all($ours { $($field: _),+ }: &$ours, $theirs { $($field: _),+ }: &$theirs) {}
            $(
                assert!(
                    offset_of!($ours, $field) == offset_of!($theirs, $field)
                        && width(|of: &$ours| &of.$field) == width(|of: &$theirs| &of.$field),
                    concat!(
                        "`", stringify!($field), "` of `struct ", stringify!($theirs),
                        "` is elsewhere in C than in Rust's `", stringify!($ours), "`",
                    )
                );
            )+
            assert!(
                size_of::<$ours>() == size_of::<$theirs>(),
                concat!("`struct ", stringify!($theirs), "` has another size in C than in Rust")
            );
        };
    };
}
pub(crate) use same;

const _: () = assert!(
    CLOSED == skeleton::types::commit::COMMIT_CLOSED.0 as u64,
    "`COMMIT_CLOSED` is another bit in C than in Rust"
);
same!(Progress, progress: position, commit, unused);
same!(Order, order: wake_at, clock_offset, unused, slots);
same!(
    Queue, queue: opened, chunk, offset, records, turn, written, seen, captured, bytes, lost_before, lost, errors, stamp,
    jiffy, stamped, warm, filtered, orphans, turns, sampled_out, counted,
    unused,
);
same!(WayKey, way_key: source, destination, rest);
same!(
    Way, way: key, first, next, retransmissions, zero_windows, state, packets, bytes, version, last, lengths, marks, taken,
    taken_bytes, taken_retransmissions, taken_zero_windows,
);
