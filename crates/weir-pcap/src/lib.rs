//! The ABI of libpcap 1.10 on weir's engine: `libpcap.so.0.8`, for programs that are not changed or compiled again.
//!
//! Every function has the meaning of its manual page, and the return codes and error texts that programs show. What C
//! programs see is in [`abi`]. [`win32`] has WinPcap's extensions.
//!
//! # Engines
//!
//! Packets of devices come through a packet socket, unless the user asks for weir's pool:
//!
//! | environment | device | |
//! |---|---|---|
//! | `WEIR_SOURCE=auto` | `auto:eth0` | the source that weir would choose, in both directions; with immediate mode, the packet socket |
//! | `WEIR_SOURCE=xdp`, `tc`, `xdp+tc` | `xdp:eth0` | this source, or an error |
//! | `WEIR_MODE=exclusive` | `xdp!:eth0` | the host does not see the packets |
//! | `WEIR_FORCE=1` | | exclusive mode, even if that cuts off the host (its addresses, bridges and routes) |
//! | | `xdp:eth0@0-3`, `xdp!:eth0@2` | only these receive queues |
//! | `WEIR_CHUNKS=100` | | chunks per queue, in place of the buffer size in bytes |
//! | `WEIR_REPORT=1` | | prints a line on standard error when a capture is closed; `FD:DEV:INO`: on this descriptor, if it is this file |
//!
//! Programs with more privileges than their users (`privileged`) always use a packet socket.
//!
//! Filters run in the kernel. `any` always uses a packet socket. With a pool, packets captured before the filter
//! was changed need to match only the new one.
//!
//! Devices that are no interfaces are those of the system's libpcap, if it is there (`foreign`).
//!
//! # Invariants
//!
//! All unsafe code here is the boundary to C. A function relies on what its manual page demands of the caller, and on
//! nothing else; it checks what it can check.
//!
//! - **C1** A pointer argument is null or points to what the manual page says, for as long as it says. Null is
//!   answered with the documented error, or ignored where there is none.
//! - **C2** No panic leaves the library: every exported function runs inside `guard::guard`.
//! - **C3** What C receives stays where it is until the manual page lets it go: strings are static or belong to the
//!   handle; a packet belongs to the handle until the next is read; what a `pcap_free...` function releases was
//!   allocated with `malloc`, or is the system's library's.
//! - **C4** A handle belongs to one thread at a time. Only `pcap_breakloop` may run beside another function, in another
//!   thread or in a signal handler; it stores one atomic flag and wakes a sleeping reader. The thread of
//!   `pcap_live_dump` has only that flag of the handle, and `pcap_close` waits for its end.
//! - **C5** No reference to a handle is alive while a callback runs: a callback may call any function on its own handle
//!   but `pcap_close`.
//! - **C6** A thread of the program's may be cancelled (`pthread_cancel`) where libpcap's manual page lets it wait, and in a
//!   callback. Elsewhere it is held back: see `cancel`. What is cancelled leaves the handle as between two calls.

pub mod abi;
mod allocate;
mod append;
pub mod bpf;
mod cancel;
pub mod compile;
pub mod created;
pub mod datalinks;
pub mod devices;
pub mod dump;
pub mod ethers;
mod file_header;
mod filter;
mod foreign;
mod guard;
pub mod handle;
mod kept;
pub mod link_types;
mod lists;
mod live;
pub mod lookup;
pub mod loops;
pub mod names;
pub mod offline;
pub mod own;
mod privileged;
pub mod properties;
mod savefile;
mod settings;
mod stdio;
pub mod text;
pub mod version;
pub mod win32;
