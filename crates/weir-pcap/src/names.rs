//! Names of hosts, networks, services and protocols, from the system's databases (`pcap/namedb.h`).

use std::ffi::{CStr, CString, c_char, c_int};
use std::{mem, ptr};

use libc::{addrinfo, hostent, netent, protoent};

use crate::guard::{guard, word};

/// Neither of two protocols, or no such name.
const PROTO_UNDEF: c_int = -1;

/// Room for the texts of an entry.
const ROOM: usize = 4096;

unsafe extern "C" {
    fn gethostbyname(name: *const c_char) -> *mut hostent;
    fn getprotobyname_r(
        name: *const c_char,
        entry: *mut protoent,
        buffer: *mut c_char,
        length: usize,
        result: *mut *mut protoent,
    ) -> c_int;
}

/// Returns the IPv4 addresses of a host, in host byte order: a list that ends with null, in memory that C's next
/// lookup overwrites. Null if there are none.
///
/// # Safety
///
/// C1. No other thread looks up a host.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoaddr(name: *const c_char) -> *mut *mut u32 {
    guard(ptr::null_mut(), || {
        if name.is_null() {
            return ptr::null_mut();
        }
        // SAFETY: C1.
        let entry = unsafe { gethostbyname(name) };
        // SAFETY: the result is null, or an entry that lives until the next call.
        let Some(entry) = (unsafe { entry.as_ref() }) else { return ptr::null_mut() };
        let list: *mut *mut u32 = entry.h_addr_list.cast();
        for at in 0.. {
            // SAFETY: the list ends with null.
            let place = unsafe { list.add(at) };
            // SAFETY: as above.
            let address = unsafe { place.read() };
            if address.is_null() {
                break;
            }
            // SAFETY: an IPv4 address, which need not be aligned.
            let number = unsafe { address.read_unaligned() };
            // SAFETY: as above; the memory is ours until the next call.
            unsafe { address.write_unaligned(u32::from_be(number)) };
        }
        list
    })
}

/// Returns the addresses of a host, for `freeaddrinfo`; null if there are none.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoaddrinfo(name: *const c_char) -> *mut addrinfo {
    // SAFETY: C1.
    guard(ptr::null_mut(), || unsafe { look_up(name, ptr::null(), libc::SOCK_STREAM, libc::IPPROTO_TCP) })
}

/// Asks getaddrinfo(3).
///
/// # Safety
///
/// Both texts are null or end with a 0.
unsafe fn look_up(
    host: *const c_char,
    service: *const c_char,
    kind: c_int,
    protocol: c_int,
) -> *mut addrinfo {
    // SAFETY: all zeros are a valid `addrinfo`.
    let mut hints: addrinfo = unsafe { mem::zeroed() };
    hints.ai_socktype = kind;
    hints.ai_protocol = protocol;
    let mut found = ptr::null_mut();
    // SAFETY: the caller's promise; the other two live during the call.
    let status = unsafe { libc::getaddrinfo(host, service, &raw const hints, &raw mut found) };
    if status == 0 { found } else { ptr::null_mut() }
}

/// Returns the number of a network in host byte order; 0 if there is none.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametonetaddr(name: *const c_char) -> u32 {
    guard(0, || {
        if name.is_null() {
            return 0;
        }
        // SAFETY: all zeros are a valid `netent`.
        let mut entry: netent = unsafe { mem::zeroed() };
        let mut buffer: [c_char; ROOM] = [0; ROOM];
        let (mut result, mut error) = (ptr::null_mut(), 0);
        // SAFETY: C1; the rest lives during the call.
        unsafe {
            libc::getnetbyname_r(
                name,
                &raw mut entry,
                buffer.as_mut_ptr(),
                ROOM,
                &raw mut result,
                &raw mut error,
            )
        };
        if result.is_null() { 0 } else { entry.n_net }
    })
}

/// Finds the port of a service, or of a number, and whether it is one of TCP or UDP only (`PROTO_UNDEF` if not).
/// Returns 1 if there is one, otherwise 0.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoport(
    name: *const c_char,
    port: *mut c_int,
    protocol: *mut c_int,
) -> c_int {
    guard(0, || {
        // SAFETY: C1.
        let Some((number, over)) = (unsafe { word(name) }).and_then(service) else { return 0 };
        // SAFETY: C1.
        unsafe { store(port, number) };
        // SAFETY: C1.
        unsafe { store(protocol, over) };
        1
    })
}

/// Finds the ports of `NAME-NAME`, like [`pcap_nametoport`], or takes two numbers as they are. Returns 1 if there are
/// both, otherwise 0.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoportrange(
    name: *const c_char,
    first: *mut c_int,
    last: *mut c_int,
    protocol: *mut c_int,
) -> c_int {
    guard(0, || {
        // SAFETY: C1.
        let Some(name) = (unsafe { word(name) }) else { return 0 };
        let found = match two_numbers(name) {
            Some((from, to)) => Some([(first, from), (last, to), (protocol, PROTO_UNDEF)]),
            None => two_services(name).map(|((from, over), (to, too))| {
                [(first, from), (last, to), (protocol, if over == too { over } else { PROTO_UNDEF })]
            }),
        };
        for (to, value) in found.into_iter().flatten() {
            // SAFETY: C1.
            unsafe { store(to, value) };
        }
        found.is_some().into()
    })
}

/// # Safety
///
/// `to` is null or writable.
unsafe fn store(to: *mut c_int, value: c_int) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

fn two_numbers(name: &CStr) -> Option<(c_int, c_int)> {
    let (mut first, mut last) = (0, 0);
    // SAFETY: the text ends with a 0, and the form has places for both numbers.
    let found = unsafe { libc::sscanf(name.as_ptr(), c"%d-%d".as_ptr(), &raw mut first, &raw mut last) };
    (found == 2).then_some((first, last))
}

fn two_services(name: &CStr) -> Option<(Service, Service)> {
    let name = name.to_bytes();
    let dash = name.iter().position(|&byte| byte == b'-')?;
    let [first, last] = [&name[..dash], &name[dash + 1..]].map(|name| CString::new(name).ok());
    Some((service(&first?)?, service(&last?)?))
}

/// A port, and the only protocol that has it, or `PROTO_UNDEF`.
type Service = (c_int, c_int);

/// Returns a service's port and its only protocol. If TCP and UDP have it at different ports, TCP's counts.
fn service(name: &CStr) -> Option<Service> {
    let tcp = port(name, libc::SOCK_STREAM, libc::IPPROTO_TCP);
    let udp = port(name, libc::SOCK_DGRAM, libc::IPPROTO_UDP);
    match (tcp, udp) {
        (Some(tcp), Some(udp)) if tcp == udp => Some((tcp, PROTO_UNDEF)),
        (Some(tcp), _) => Some((tcp, libc::IPPROTO_TCP)),
        (None, udp) => Some((udp?, libc::IPPROTO_UDP)),
    }
}

fn port(name: &CStr, kind: c_int, protocol: c_int) -> Option<c_int> {
    // SAFETY: the name ends with a 0.
    let found = unsafe { look_up(ptr::null(), name.as_ptr(), kind, protocol) };
    // SAFETY: the result is null, or a list that lives until it is released.
    let first = unsafe { found.as_ref() }?;
    let address: *const libc::sockaddr_in = first.ai_addr.cast();
    // The port is at the same place for both families.
    // SAFETY: the address of one of both families.
    let port = unsafe { address.read_unaligned() }.sin_port;
    // SAFETY: the list is not used any more.
    unsafe { libc::freeaddrinfo(found) };
    Some(u16::from_be(port).into())
}

/// Returns the number of a protocol over IP, or `PROTO_UNDEF`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoproto(name: *const c_char) -> c_int {
    guard(PROTO_UNDEF, || {
        if name.is_null() {
            return PROTO_UNDEF;
        }
        // SAFETY: all zeros are a valid `protoent`.
        let mut entry: protoent = unsafe { mem::zeroed() };
        let mut buffer: [c_char; ROOM] = [0; ROOM];
        let mut result = ptr::null_mut();
        // SAFETY: C1; the rest lives during the call.
        unsafe { getprotobyname_r(name, &raw mut entry, buffer.as_mut_ptr(), ROOM, &raw mut result) };
        if result.is_null() { PROTO_UNDEF } else { entry.p_proto }
    })
}

/// An entry of [`eproto_db`].
#[repr(C)]
#[derive(Debug)]
pub struct Eproto {
    name: *const c_char,
    number: u16,
}

// SAFETY: the names are static and nothing is written.
unsafe impl Sync for Eproto {}

/// The EtherTypes that have names; the last entry has none.
#[unsafe(no_mangle)]
pub static eproto_db: [Eproto; 13] = [
    ethertype(c"aarp", 0x80f3),
    ethertype(c"arp", 0x0806),
    ethertype(c"atalk", 0x809b),
    ethertype(c"decnet", 0x6003),
    ethertype(c"ip", 0x0800),
    ethertype(c"ip6", 0x86dd),
    ethertype(c"lat", 0x6004),
    ethertype(c"loopback", 0x9000),
    ethertype(c"mopdl", 0x6001),
    ethertype(c"moprc", 0x6002),
    ethertype(c"rarp", 0x8035),
    ethertype(c"sca", 0x6007),
    Eproto { name: ptr::null(), number: 0 },
];

const fn ethertype(name: &'static CStr, number: u16) -> Eproto {
    Eproto { name: name.as_ptr(), number }
}

/// Returns the EtherType with this name, or `PROTO_UNDEF`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametoeproto(name: *const c_char) -> c_int {
    guard(PROTO_UNDEF, || {
        // SAFETY: C1.
        let Some(name) = (unsafe { word(name) }) else { return PROTO_UNDEF };
        let named = |entry: &&Eproto| {
            // SAFETY: the table's names are static.
            let known = unsafe { word(entry.name) };
            known == Some(name)
        };
        eproto_db.iter().find(named).map_or(PROTO_UNDEF, |entry| entry.number.into())
    })
}

/// Service access points of IEEE 802.2 (LLC).
const LLC: [(&CStr, c_int); 4] = [(c"iso", 0xfe), (c"stp", 0x42), (c"ipx", 0xe0), (c"netbeui", 0xf0)];

/// Returns the LLC service access point with this name, or `PROTO_UNDEF`.
///
/// # Safety
///
/// C1.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pcap_nametollc(name: *const c_char) -> c_int {
    guard(PROTO_UNDEF, || {
        // SAFETY: C1.
        let name = unsafe { word(name) };
        LLC.iter().find(|(known, _)| Some(*known) == name).map_or(PROTO_UNDEF, |(_, number)| *number)
    })
}
