//! Checks whether the kernel accepts a source's programs, by loading and releasing them without attaching.

use weir_bpf::writers::{Driven, Writers};
use weir_bpf::{LoadError, tc, xdp};
use weir_ring::Shape;
use weir_sys::cpu::Processors;

use super::programmed::pool_options;
use crate::Error;
use crate::live::error::NEEDS;
use crate::live::request::Settings;
use crate::live::settings::SourceChoice;

/// Bytes of a packet for which the pool has room.
const SNAP_LEN: u32 = 256;

/// Loads the programs of `source` with the smallest pool. Does nothing for sources without programs.
///
/// # Errors
///
/// Privileges or memory are missing, or the kernel or its verifier rejects a program.
pub fn load(source: SourceChoice) -> Result<(), Error> {
    match source {
        SourceChoice::Tc => {
            let (settings, shape) = smallest()?;
            let pool = pool_options(&shape, &settings, 0, SNAP_LEN, true);
            let processors = Processors::online()?;
            let options = tc::Options {
                pool,
                processors,
                steering: None,
                sampling: None,
                ingress: true,
                egress: true,
                rules: false,
                segments: None,
                left_out: None,
                left_out_mark: None,
            };
            tc::Programs::load(&options).map(drop).map_err(refused)
        }
        SourceChoice::Xdp => load_xdp(None),
        _ => Ok(()),
    }
}

/// Loads the `xdp` source's program in the form that asks the driver of interface `interface` (an index) for stripped
/// VLAN tags.
///
/// # Errors
///
/// As for [`load`]; also if the kernel (before Linux 6.8) or the driver cannot report tags.
pub fn load_bound(interface: u32) -> Result<(), Error> {
    load_xdp(Some(interface))
}

fn load_xdp(tags_of: Option<u32>) -> Result<(), Error> {
    let (settings, shape) = smallest()?;
    let options = xdp::Options {
        pool: pool_options(&shape, &settings, 0, SNAP_LEN, false),
        steering: None,
        sampling: None,
        exclusive: false,
        fragments: true,
        // The program is not attached, so it need not know the interface.
        writers: Writers::Queues(Driven { index: tags_of.unwrap_or(1), hands_on: true }),
        chosen: None,
        tags_of,
        rules: false,
        counting: None,
    };
    xdp::Program::load(&options).map(drop).map_err(refused)
}

fn smallest() -> Result<(Settings, Shape), Error> {
    const CHUNK_SIZE: u32 = 64 << 10;
    Ok((Settings::default(), Shape::new(1, 2, CHUNK_SIZE, SNAP_LEN)?))
}

fn refused(source: LoadError) -> Error {
    if source.is_permission() {
        return Error::Privilege { operation: "load its eBPF program".to_owned(), needs: NEEDS };
    }
    Error::Load { name: None, source }
}
