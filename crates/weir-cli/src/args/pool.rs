//! The size of the pool, and the delivery of packets.

use std::time::Duration;

use clap::Args;
use weir::{Builder, Delivery};

use crate::units;

/// The pool's size and when packets are handed over.
#[derive(Debug, Args)]
#[command(next_help_heading = "Buffering")]
pub(crate) struct PoolArgs {
    /// Set the number of chunks per queue, at least 2.
    ///
    /// Default: 64, or fewer if there are many queues or memory is short.
    #[arg(hide_short_help = true, long, value_name = "R", value_parser = units::chunks, allow_hyphen_values = true)]
    chunks: Option<u32>,

    /// Set the chunk size: 4KiB to 1GiB.
    ///
    /// Default: 1MiB, or less if memory is short.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::chunk_size, allow_hyphen_values = true)]
    chunk_size: Option<u32>,

    /// Set the pool size per queue, such as 64MiB.
    ///
    /// The unit is required. Instead of --chunks. With af_packet and af_xdp, the kernel's ring comes on top of that.
    #[arg(short = 'B', long, value_name = "SIZE", value_parser = units::size_with_unit, allow_hyphen_values = true)]
    #[arg(conflicts_with = "chunks")]
    buffer_size: Option<u64>,

    /// Limit the packet memory of all interfaces and queues together, such as 512MiB.
    ///
    /// The unit is required. Default: an eighth of the available memory.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::size_with_unit, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["chunks", "buffer_size"])]
    memory: Option<u64>,

    /// Deliver packets once SIZE bytes are waiting.
    ///
    /// Default with --read-timeout: 16KiB. Without either option: 256KiB with -w, unless -U is given; otherwise
    /// delivery adapts to the load.
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = units::size_u32, allow_hyphen_values = true)]
    min_bytes: Option<u32>,

    /// Deliver packets no later than TIME after the first of them.
    ///
    /// Default with --min-bytes: 1s. Without either option: 200ms with -w, unless -U is given; otherwise delivery
    /// adapts to the load.
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = units::duration, allow_hyphen_values = true)]
    read_timeout: Option<Duration>,

    /// Poll without sleeping: lowest latency, but occupies a CPU core.
    #[arg(hide_short_help = true, long, conflicts_with_all = ["min_bytes", "read_timeout"])]
    active: bool,
}

impl PoolArgs {
    /// WinPcap's defaults if only one of the two is given: 16 KiB, one second.
    const MIN_BYTES: u32 = 16 << 10;
    const TIMEOUT: Duration = Duration::from_secs(1);

    /// Sets pool and delivery; `usual` is the delivery if the user requested none.
    pub(crate) fn apply(&self, mut builder: Builder, usual: Delivery) -> Builder {
        if let Some(bytes) = self.buffer_size {
            let (chunks, chunk_size) = weir::parts::pool_of(bytes, self.chunk_size);
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
    use super::*;
    use crate::cli::tests::capture;

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
            weir::parts::pool_of(pool.buffer_size.expect("-B"), pool.chunk_size)
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
