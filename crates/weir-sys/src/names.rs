//! Names of hosts, networks, services and protocols, from the system's databases (nsswitch.conf(5)).

use std::ffi::{CStr, CString, c_char, c_int};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Mutex, PoisonError};

/// `struct ether_addr` (net/ethernet.h).
#[repr(C)]
struct EtherAddr {
    octets: [u8; 6],
}

unsafe extern "C" {
    /// ether_hostton(3), which the libc crate lacks.
    fn ether_hostton(name: *const c_char, address: *mut EtherAddr) -> c_int;
}

/// Serializes calls: getservbyname(3) and similar functions return memory that the next call overwrites.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Returns the addresses of a host, each once, in the order of getaddrinfo(3).
pub fn host(name: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    for address in (name, 0).to_socket_addrs().into_iter().flatten() {
        if !found.contains(&address.ip()) {
            found.push(address.ip());
        }
    }
    found
}

/// Returns the number of a network (networks(5)) in host byte order: 0x7f000000 for `127.0.0.0`.
pub fn network(name: &str) -> Option<u32> {
    ask(name, |name| {
        // SAFETY: the name ends with a zero, and the lock excludes other such calls.
        let entry = unsafe { libc::getnetbyname(name.as_ptr()) };
        // SAFETY: the result is null, or an entry that lives until the next call.
        unsafe { entry.as_ref() }.map(|entry| entry.n_net)
    })
}

/// Returns the MAC address of a host (ethers(5)).
pub fn ethernet(name: &str) -> Option<[u8; 6]> {
    ask(name, |name| {
        let mut address = EtherAddr { octets: [0; 6] };
        // SAFETY: the name ends with a zero, `address` is writable, and the lock excludes other such calls.
        let status = unsafe { ether_hostton(name.as_ptr(), &raw mut address) };
        (status == 0).then_some(address.octets)
    })
}

/// Returns the port of a service over `protocol`, such as `tcp` (services(5)).
pub fn service(name: &str, protocol: &CStr) -> Option<u16> {
    ask(name, |name| {
        // SAFETY: both end with a zero, and the lock excludes other such calls.
        let entry = unsafe { libc::getservbyname(name.as_ptr(), protocol.as_ptr()) };
        // SAFETY: the result is null, or an entry that lives until the next call.
        unsafe { entry.as_ref() }.map(port)
    })
}

/// A service, without its aliases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// The protocol below it, such as `tcp`.
    pub protocol: String,
}

/// Returns the names of all services, without aliases.
pub fn services() -> Vec<String> {
    every_service().into_iter().map(|service| service.name).collect()
}

/// Returns all services, in the order of services(5).
pub fn every_service() -> Vec<Service> {
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the lock excludes other such calls.
    unsafe { libc::setservent(0) };
    // SAFETY: an entry's texts end with a zero, and live as long as the entry.
    let text = |text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    let next = || {
        // SAFETY: as above.
        let entry = unsafe { libc::getservent() };
        // SAFETY: the result is null, or an entry that lives until the next call.
        let entry = unsafe { entry.as_ref() }?;
        Some(Service { name: text(entry.s_name), port: port(entry), protocol: text(entry.s_proto) })
    };
    let services = std::iter::from_fn(next).collect();
    // SAFETY: as above.
    unsafe { libc::endservent() };
    services
}

/// Returns the port, which is in network byte order, in the first two bytes of the number.
fn port(entry: &libc::servent) -> u16 {
    let [first, second, ..] = entry.s_port.to_ne_bytes();
    u16::from_be_bytes([first, second])
}

/// Returns the number of a protocol over IP (protocols(5)).
pub fn protocol(name: &str) -> Option<u8> {
    ask(name, |name| {
        // SAFETY: the name ends with a zero, and the lock excludes other such calls.
        let entry = unsafe { libc::getprotobyname(name.as_ptr()) };
        // SAFETY: the result is null, or an entry that lives until the next call.
        let number = unsafe { entry.as_ref() }?.p_proto;
        u8::try_from(number).ok()
    })
}

/// Makes a lookup with the lock held. A name that contains a zero byte is never found.
fn ask<T>(name: &str, question: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
    let name = CString::new(name).ok()?;
    let _lock = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    question(&name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    use super::*;

    #[test]
    fn localhost_is_this_machine_and_nobody_has_an_unknown_name() {
        let found = host("localhost");
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
        assert_eq!(host("127.0.0.1"), [IpAddr::from([127, 0, 0, 1])]);
        assert_eq!(network("no-such-network"), None);
        assert_eq!(ethernet("no-such-host"), None);
        assert_eq!(service("no-such-service", c"tcp"), None);
        assert_eq!(protocol("no-such-protocol"), None);
        assert_eq!(protocol("a\0b"), None);
    }

    #[test]
    fn root_files_of_the_system_are_read() {
        // Uses a thread with an /etc of its own.
        let told = thread::spawn(|| {
            let etc = tempfile::tempdir().expect("a directory can be made");
            let write = |name, text| fs::write(etc.path().join(name), text).expect("a file can be written");
            write("networks", "inside 10.1.0.0\n");
            write("ethers", "02:00:00:00:00:0a printer\n");
            write("services", "web 8080/tcp www\nweb 8081/udp\nsignals 2905/sctp\n");
            write("protocols", "tcp 6 TCP\n");
            // SAFETY: CLONE_NEWNS does not unshare file descriptors or memory, on which safe code relies.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            mount_bind(etc.path(), "/etc")?;
            let service = |name| [c"tcp", c"udp", c"sctp"].map(|over| service(name, over));
            let services = [service("web"), service("www"), service("signals")];
            Ok::<_, rustix::io::Errno>((network("inside"), ethernet("printer"), services, protocol("TCP")))
        });
        match told.join().expect("the thread ends") {
            Ok((network, mac, services, protocol)) => {
                assert_eq!(network, Some(0x0a01_0000));
                assert_eq!(mac, Some([2, 0, 0, 0, 0, 10]));
                assert_eq!(services[0], [Some(8080), Some(8081), None]);
                assert_eq!(services[1], [Some(8080), None, None]);
                assert_eq!(services[2], [None, None, Some(2905)]);
                assert_eq!(protocol, Some(6));
            }
            Err(error) => weir_skip::this_test(error),
        }
    }
}
