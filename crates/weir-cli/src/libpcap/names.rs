//! libpcap's names, by which programs ask for the library.

/// On Debian, elsewhere, and for the linker.
pub(super) const NAMES: [&str; 3] = ["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"];
