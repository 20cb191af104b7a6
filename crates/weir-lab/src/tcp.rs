//! TCP transfers between the two ends of a pair.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use crate::{Error, Pair};

/// The result of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct TcpReport {
    /// Bytes received.
    pub bytes: u64,
    /// Time from the first write to the end of the received stream.
    pub elapsed: Duration,
    /// Checksum (64-bit FNV-1a) of the data sent.
    pub sent_checksum: u64,
    /// Checksum of the data received.
    pub received_checksum: u64,
}

/// Size of each write and read in bytes.
const BLOCK: usize = 64 << 10;

/// Size of the receive buffer in bytes. TCP fills a super-frame to at most half of the window: with this size, frames
/// become as long as the interface allows, even on a busy machine.
const RECEIVE_BUFFER: usize = 8 << 20;

/// Sends `bytes` bytes over a new connection from the pair's `tx` to its `rx`, which must have addresses, and waits for
/// the end.
///
/// # Errors
///
/// The connection fails, or makes no progress for ten seconds.
///
/// # Panics
///
/// Panics if the pair has no addresses.
pub fn tcp_transfer(pair: &Pair, bytes: u64) -> Result<TcpReport, Error> {
    let address = pair.rx.ipv4.map(IpAddr::V4).or_else(|| pair.rx.ipv6.map(IpAddr::V6));
    let address = SocketAddr::new(address.expect("TCP needs a pair with addresses"), 0);
    let listener = pair.rx.netns.run(|| TcpListener::bind(address)).map_err(Error::io("listen"))?;
    // The kernel's automatic buffer size grows only as fast as the reader reads.
    sockopt::set_socket_recv_buffer_size_force(&listener, RECEIVE_BUFFER)
        .map_err(|errno| Error::io("give the listener a large receive buffer")(errno.into()))?;
    let address = listener.local_addr().map_err(Error::io("listen"))?;
    let patience = Duration::from_secs(10);
    let out = pair.tx.netns.run(|| TcpStream::connect_timeout(&address, patience));
    let mut out = out.map_err(Error::io(format!("connect to {address}")))?;
    let (mut back, _) = listener.accept().map_err(Error::io("accept"))?;
    out.set_write_timeout(Some(patience)).map_err(Error::io("set a timeout"))?;
    back.set_read_timeout(Some(patience)).map_err(Error::io("set a timeout"))?;

    let start = Instant::now();
    let (received, sent) = thread::scope(|scope| {
        let sender = scope.spawn(move || send(&mut out, bytes));
        (receive(&mut back), sender.join().expect("sending does not panic"))
    });
    let elapsed = start.elapsed();
    let sent_checksum = sent.map_err(Error::io(format!("send to {address}")))?;
    let (bytes, received_checksum) = received.map_err(Error::io(format!("receive on {address}")))?;
    Ok(TcpReport { bytes, elapsed, sent_checksum, received_checksum })
}

fn send(stream: &mut TcpStream, bytes: u64) -> io::Result<u64> {
    let mut checksum = Fnv::default();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0; BLOCK];
    let mut left = bytes;
    while left > 0 {
        // xorshift64: cheap, and no two blocks are alike.
        for word in block.chunks_exact_mut(8) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            word.copy_from_slice(&random.to_ne_bytes());
        }
        let length = usize::try_from(left).map_or(BLOCK, |left| left.min(BLOCK));
        stream.write_all(&block[..length])?;
        checksum.add(&block[..length]);
        left -= length as u64;
    }
    stream.shutdown(Shutdown::Write)?;
    Ok(checksum.0)
}

fn receive(stream: &mut TcpStream) -> io::Result<(u64, u64)> {
    let mut checksum = Fnv::default();
    let mut block = vec![0; BLOCK];
    let mut bytes = 0;
    loop {
        let length = stream.read(&mut block)?;
        if length == 0 {
            return Ok((bytes, checksum.0));
        }
        checksum.add(&block[..length]);
        bytes += length as u64;
    }
}

struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
