//! Hand-written capture files: nothing here shares code with the reader.

use weir::reader::ByteOrder;

/// Puts numbers down in one byte order.
#[derive(Clone)]
pub(crate) struct Bytes {
    pub(crate) order: ByteOrder,
    pub(crate) bytes: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { order, bytes: Vec::new() }
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.bytes.extend(match self.order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        });
        self
    }

    /// High half first, as pcapng has its timestamps.
    pub(crate) fn time(self, value: u64) -> Self {
        let low = u32::try_from(value & 0xffff_ffff).unwrap();
        self.u32(u32::try_from(value >> 32).unwrap()).u32(low)
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// With zeros up to a multiple of four.
    pub(crate) fn padded(self, bytes: &[u8]) -> Self {
        let zeros = bytes.len().next_multiple_of(4) - bytes.len();
        self.raw(bytes).raw(&[0; 3][..zeros])
    }

    pub(crate) fn option(self, code: u16, value: &[u8]) -> Self {
        self.u16(code).u16(u16::try_from(value.len()).unwrap()).padded(value)
    }

    pub(crate) fn end(self) -> Self {
        self.u32(0)
    }

    pub(crate) fn block(self, kind: u32, body: impl FnOnce(Self) -> Self) -> Self {
        let body = body(Self::new(self.order)).bytes;
        let length = u32::try_from(body.len()).unwrap() + 12;
        self.u32(kind).u32(length).raw(&body).u32(length)
    }

    pub(crate) fn section(self) -> Self {
        self.block(0x0a0d_0d0a, |body| body.u32(0x1a2b_3c4d).u16(1).u16(0).u64(u64::MAX))
    }

    /// Ethernet, with the resolution of timestamps, if it is not to be left to the default.
    pub(crate) fn interface(self, resolution: Option<u8>) -> Self {
        self.block(1, |body| {
            let body = body.u16(1).u16(0).u32(65_535);
            match resolution {
                Some(resolution) => body.option(9, &[resolution]).end(),
                None => body,
            }
        })
    }

    /// An Enhanced Packet Block without options.
    pub(crate) fn packet(self, interface: u32, ticks: u64, data: &[u8]) -> Self {
        let length = u32::try_from(data.len()).unwrap();
        self.block(6, |body| body.u32(interface).time(ticks).u32(length).u32(length).padded(data))
    }

    /// The header of a pcap file, version 2.4, Ethernet.
    pub(crate) fn pcap(self, magic: u32) -> Self {
        self.u32(magic).u16(2).u16(4).u64(0).u32(65_535).u32(1)
    }

    /// A record of a pcap file.
    pub(crate) fn record(self, seconds: u32, fraction: u32, data: &[u8]) -> Self {
        let length = u32::try_from(data.len()).unwrap();
        self.u32(seconds).u32(fraction).u32(length).u32(length).raw(data)
    }
}
