//! The types and constants of `pcap.h` and `bpf.h` (libpcap 1.10) that C programs share with this library.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{sockaddr, timeval};

/// Size of the error buffers of callers.
pub const PCAP_ERRBUF_SIZE: usize = 256;

/// Generic error; the text is in the handle or in the caller's buffer.
pub const PCAP_ERROR: c_int = -1;
/// `pcap_breakloop` ended the loop.
pub const PCAP_ERROR_BREAK: c_int = -2;
/// The handle must be activated first.
pub const PCAP_ERROR_NOT_ACTIVATED: c_int = -3;
/// The handle is already activated.
pub const PCAP_ERROR_ACTIVATED: c_int = -4;
/// There is no such device.
pub const PCAP_ERROR_NO_SUCH_DEVICE: c_int = -5;
/// The device has no monitor mode.
pub const PCAP_ERROR_RFMON_NOTSUP: c_int = -6;
/// The operation needs monitor mode.
pub const PCAP_ERROR_NOT_RFMON: c_int = -7;
/// The process may not open the device.
pub const PCAP_ERROR_PERM_DENIED: c_int = -8;
/// The interface is down.
pub const PCAP_ERROR_IFACE_NOT_UP: c_int = -9;
/// The device does not have this type of timestamp.
pub const PCAP_ERROR_CANTSET_TSTAMP_TYPE: c_int = -10;
/// The process may capture, but not in promiscuous mode.
pub const PCAP_ERROR_PROMISC_PERM_DENIED: c_int = -11;
/// The source does not have timestamps of this precision.
pub const PCAP_ERROR_TSTAMP_PRECISION_NOTSUP: c_int = -12;
/// This version of the library cannot capture on the device.
pub const PCAP_ERROR_CAPTURE_NOTSUP: c_int = -13;

/// Generic warning.
pub const PCAP_WARNING: c_int = 1;
/// The device has no promiscuous mode.
pub const PCAP_WARNING_PROMISC_NOTSUP: c_int = 2;
/// The device does not have the requested type of timestamp.
pub const PCAP_WARNING_TSTAMP_TYPE_NOTSUP: c_int = 3;

/// The device is a loopback device.
pub const PCAP_IF_LOOPBACK: BpfU32 = 0x1;
/// The device is up.
pub const PCAP_IF_UP: BpfU32 = 0x2;
/// The device is running.
pub const PCAP_IF_RUNNING: BpfU32 = 0x4;
/// The device is wireless.
pub const PCAP_IF_WIRELESS: BpfU32 = 0x8;
/// The bits for whether the device is connected.
pub const PCAP_IF_CONNECTION_STATUS: BpfU32 = 0x30;
/// The device is connected.
pub const PCAP_IF_CONNECTION_STATUS_CONNECTED: BpfU32 = 0x10;
/// The device is disconnected.
pub const PCAP_IF_CONNECTION_STATUS_DISCONNECTED: BpfU32 = 0x20;
/// The device cannot be connected to anything, or does not tell.
pub const PCAP_IF_CONNECTION_STATUS_NOT_APPLICABLE: BpfU32 = 0x30;

/// Timestamps in microseconds.
pub const PCAP_TSTAMP_PRECISION_MICRO: c_int = 0;
/// Timestamps in nanoseconds.
pub const PCAP_TSTAMP_PRECISION_NANO: c_int = 1;

/// Timestamps of the host, the type that every device has.
pub const PCAP_TSTAMP_HOST: c_int = 0;

/// The netmask given to `pcap_compile` is not known.
pub const PCAP_NETMASK_UNKNOWN: c_uint = 0xffff_ffff;

/// `bpf_u_int32`.
pub type BpfU32 = u32;

/// `struct pcap_pkthdr`: what is known of a packet beside its bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PcapPkthdr {
    /// When it was captured; `tv_usec` holds nanoseconds if the handle has that precision.
    pub ts: timeval,
    /// Bytes that are present.
    pub caplen: BpfU32,
    /// Bytes of the packet on the wire.
    pub len: BpfU32,
}

impl PcapPkthdr {
    /// The header before the first packet.
    pub const NONE: Self = Self { ts: timeval { tv_sec: 0, tv_usec: 0 }, caplen: 0, len: 0 };
}

/// `struct pcap_stat`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PcapStat {
    /// Packets received.
    pub ps_recv: c_uint,
    /// Packets lost for want of room.
    pub ps_drop: c_uint,
    /// Packets lost by the interface or its driver.
    pub ps_ifdrop: c_uint,
}

/// `struct weir_pcap_counts`: what became of the packets of a capture since it began. `seen` is the sum of `filtered`,
/// `lost`, `errors`, and `captured`; `captured` is the sum of `rejected`, `delivered`, and those not read yet.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lost by the device, or by the kernel before the capture.
    pub device_lost: u64,
    /// Packets that the capture saw. With a packet socket, the kernel does not count those that its filter rejects.
    pub seen: u64,
    /// Rejected by the filter in the kernel; with a packet socket 0.
    pub filtered: u64,
    /// Lost because the buffer was full.
    pub lost: u64,
    /// Could not be stored for another reason.
    pub errors: u64,
    /// Stored in the buffer.
    pub captured: u64,
    /// Rejected in this process, by its filter or for their direction.
    pub rejected: u64,
    /// Taken from the buffer for the program; sampling and statistics (WinPcap's) come after this.
    pub delivered: u64,
}

/// `struct pcap_samp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PcapSamp {
    /// `PCAP_SAMP_`; unknown methods take all packets.
    pub method: c_int,
    /// Packets or milliseconds.
    pub value: c_int,
}

impl PcapSamp {
    /// `PCAP_SAMP_NOSAMP`.
    pub(crate) const ALL: Self = Self { method: 0, value: 0 };
}

/// `struct weir_pcap_stat_ex`: WinPcap's `struct pcap_stat`, which begins as libpcap's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PcapStatEx {
    /// What `pcap_stats` counts.
    pub counts: PcapStat,
    /// Packets that the filter has accepted and that found room.
    pub ps_capt: c_uint,
    /// Always 0: packets that a remote host has sent.
    pub ps_sent: c_uint,
    /// Always 0: packets lost between a remote host and this one.
    pub ps_netdrop: c_uint,
}

impl PcapStatEx {
    pub(crate) const NONE: Self = Self::of(PcapStat { ps_recv: 0, ps_drop: 0, ps_ifdrop: 0 });

    pub(crate) const fn of(counts: PcapStat) -> Self {
        Self { counts, ps_capt: counts.ps_recv.saturating_sub(counts.ps_drop), ps_sent: 0, ps_netdrop: 0 }
    }
}

/// `struct pcap_if`: a device of `pcap_findalldevs`.
#[repr(C)]
#[derive(Debug)]
pub struct PcapIf {
    /// The next device, or null.
    pub next: *mut Self,
    /// What `pcap_open_live` takes.
    pub name: *mut c_char,
    /// A description, or null.
    pub description: *mut c_char,
    /// Its addresses.
    pub addresses: *mut PcapAddr,
    /// `PCAP_IF_` flags.
    pub flags: BpfU32,
}

/// `struct pcap_addr`: an address of a device. All pointers but `addr` may be null.
#[repr(C)]
#[derive(Debug)]
pub struct PcapAddr {
    /// The next address, or null.
    pub next: *mut Self,
    /// The address.
    pub addr: *mut sockaddr,
    /// Its netmask.
    pub netmask: *mut sockaddr,
    /// Its broadcast address.
    pub broadaddr: *mut sockaddr,
    /// Its peer on a point-to-point link.
    pub dstaddr: *mut sockaddr,
}

/// `struct bpf_insn`: an instruction of classic BPF.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BpfInsn {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if the comparison is true.
    pub jt: u8,
    /// Instructions to skip if it is false.
    pub jf: u8,
    /// Operand.
    pub k: BpfU32,
}

/// `struct bpf_program`: what `pcap_compile` fills and `pcap_freecode` releases.
#[repr(C)]
#[derive(Debug)]
pub struct BpfProgram {
    /// Number of instructions.
    pub bf_len: c_uint,
    /// The instructions, allocated with `malloc`.
    pub bf_insns: *mut BpfInsn,
}

/// `pcap_handler`: called for each packet. The callback may leave by `longjmp` or by a C++ exception.
pub type PcapHandler = Option<unsafe extern "C-unwind" fn(*mut u8, *const PcapPkthdr, *const u8)>;

/// `pcap_dumper_t`: a file to write packets to; the pointer is a `FILE *`, as in libpcap.
pub type PcapDumper = c_void;
