//! The pool's size, and when packets are handed over.

use std::time::Duration;

use clap::Args;
use weir::{Builder, Delivery};

use crate::units;

/// The pool's size and when packets are handed over.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pool and delivery")]
pub(crate) struct PoolArgs {
    /// Chunks per queue.
    #[arg(long, value_name = "R", value_parser = units::chunks, allow_hyphen_values = true)]
    chunks: Option<u32>,

    /// Size of a chunk.
    #[arg(long, value_name = "SIZE", value_parser = units::chunk_size, allow_hyphen_values = true)]
    chunk_size: Option<u32>,

    /// The whole pool of a queue, instead of --chunks; needs a unit: 64MiB.
    #[arg(short = 'B', long, value_name = "SIZE", value_parser = units::size_with_unit, allow_hyphen_values = true)]
    #[arg(conflicts_with = "chunks")]
    buffer_size: Option<u64>,

    /// The most that the whole capture takes for packets, all interfaces and queues together; needs a unit: 512MiB. Unless
    /// set, an eighth of the available memory.
    #[arg(long, value_name = "SIZE", value_parser = units::size_with_unit, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["chunks", "buffer_size"])]
    memory: Option<u64>,

    /// Hand packets over once this much has come together ...
    #[arg(long, value_name = "SIZE", value_parser = units::size_u32, allow_hyphen_values = true)]
    min_bytes: Option<u32>,

    /// ... or this long after the first of them. Without both, the load decides.
    #[arg(long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    read_timeout: Option<Duration>,

    /// Poll without sleep: the shortest latency, at the price of a core.
    #[arg(long, conflicts_with_all = ["min_bytes", "read_timeout"])]
    active: bool,
}

impl PoolArgs {
    /// WinPcap's defaults for what the user left out of the two: 16 KiB, one second.
    const MIN_BYTES: u32 = 16 << 10;
    const TIMEOUT: Duration = Duration::from_secs(1);

    /// Sets pool and delivery; `usual` is the delivery when the user asked for none.
    pub(crate) fn apply(&self, mut builder: Builder, usual: Delivery) -> Builder {
        if let Some(bytes) = self.buffer_size {
            let (chunks, chunk_size) = weir::pool_of(bytes, self.chunk_size);
            builder = builder.chunks(chunks).chunk_size(chunk_size);
        } else {
            if let Some(chunks) = self.chunks {
                builder = builder.chunks(chunks);
            }
            if let Some(chunk_size) = self.chunk_size {
                builder = builder.chunk_size(chunk_size);
            }
            if let Some(memory) = self.memory {
                builder = builder.memory(memory);
            }
        }
        builder.delivery(self.delivery(usual))
    }

    fn delivery(&self, usual: Delivery) -> Delivery {
        match (self.active, self.min_bytes, self.read_timeout) {
            (true, ..) => Delivery::Active,
            (false, None, None) => usual,
            (false, min_bytes, timeout) => Delivery::Batched {
                min_bytes: min_bytes.unwrap_or(Self::MIN_BYTES),
                timeout: timeout.unwrap_or(Self::TIMEOUT),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::capture;
    use super::*;

    #[test]
    fn delivery_follows_the_file() {
        let delivery = |args: &[&str]| {
            let args = capture(args).expect("parses");
            args.live.pool.delivery(Delivery::Adaptive)
        };
        assert!(matches!(delivery(&[]), Delivery::Adaptive));
        assert!(matches!(delivery(&["--active"]), Delivery::Active));
        assert!(
            matches!(delivery(&["--min-bytes", "64K"]), Delivery::Batched { min_bytes: 65_536, timeout } if timeout == PoolArgs::TIMEOUT)
        );
        assert!(
            matches!(delivery(&["--read-timeout", "5ms"]), Delivery::Batched { min_bytes: PoolArgs::MIN_BYTES, timeout } if timeout == Duration::from_millis(5))
        );
        assert!(capture(&["--active", "--read-timeout", "5ms"]).is_err());
    }

    #[test]
    fn a_pool_size_becomes_chunks() {
        let divide = |args: &[&str]| {
            let pool = capture(args).expect("parses").live.pool;
            weir::pool_of(pool.buffer_size.expect("-B"), pool.chunk_size)
        };
        let table: [(&[&str], (u32, u32)); 6] = [
            (&["-B", "64MiB"], (64, 1 << 20)),
            (&["-B", "50MB"], (48, 1 << 20)),
            (&["-B", "2MiB"], (8, 256 << 10)),
            (&["-B", "1B"], (2, 4 << 10)),
            (&["-B", "1MiB", "--chunk-size", "1MiB"], (2, 1 << 20)),
            (&["-B", "100000T"], (u32::MAX, 1 << 20)),
        ];
        for (args, expected) in table {
            assert_eq!(divide(args), expected, "{args:?}");
        }
    }
}
