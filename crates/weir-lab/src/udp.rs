//! A socket that receives datagrams.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt;

use crate::{Error, Port};

/// A UDP socket in a port's namespace, read by its own thread.
#[derive(Debug)]
pub struct UdpSink {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<u64>>,
}

/// A sink that is told to stop is considered empty if nothing arrives for this long.
const SILENCE: Duration = Duration::from_millis(50);
/// Size of the receive buffer, including the kernel's overhead.
const BUFFER: usize = 64 << 20;
/// Longest datagram in bytes.
const LONGEST: usize = 65535;

impl UdpSink {
    /// Opens a socket on the port's IPv4 address (any address, if it has none) and passes each datagram's payload and
    /// sender to `handler`.
    ///
    /// # Errors
    ///
    /// The UDP port is in use.
    pub fn start(
        port: &Port,
        udp_port: u16,
        mut handler: impl FnMut(&[u8], SocketAddr) + Send + 'static,
    ) -> Result<Self, Error> {
        let address = SocketAddr::new(IpAddr::V4(port.ipv4.unwrap_or(Ipv4Addr::UNSPECIFIED)), udp_port);
        let socket =
            port.netns.run(|| open(address)).map_err(Error::io(format!("open a UDP sink on {address}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; LONGEST];
            let mut datagrams = 0;
            loop {
                match socket.recv_from(&mut buffer) {
                    Ok((length, sender)) => {
                        datagrams += 1;
                        handler(&buffer[..length], sender);
                    }
                    // Relaxed, because the threads share nothing but the flag itself.
                    Err(_) if stopping.load(Ordering::Relaxed) => return datagrams,
                    Err(_) => {}
                }
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Receives the remaining datagrams and returns the total number. A panic of the handler propagates.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take().expect("a sink is stopped once");
        thread.join().unwrap_or_else(|payload| std::panic::resume_unwind(payload))
    }
}

impl Drop for UdpSink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    sockopt::set_socket_recv_buffer_size_force(&socket, BUFFER)?;
    socket.set_read_timeout(Some(SILENCE))?;
    Ok(socket)
}
