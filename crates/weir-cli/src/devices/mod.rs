//! `weir devices`: lists interfaces and the capabilities of each and its driver.

mod device;
mod page;
mod programs;
mod table;

use clap::Args;
use serde::Serialize;

use weir::Namespace;

use device::Survey;
pub(crate) use device::{Auto, Device};

use crate::failure::Failure;
use crate::{interfaces, out, style};

const EXAMPLES: &str = "\
Examples:
  weir devices
        Print a line for each interface: state, speed, queues, driver, XDP support,
        and the source that `--source auto` chooses.
  weir devices eth0
        Show everything the kernel and the driver report about eth0.
  weir devices --netns web
        List the interfaces in network namespace `web`.
  weir devices --json | jq -r '.devices[] | select(.xdp.zero_copy) | .name'
        List interfaces whose driver supports zero-copy AF_XDP.

No privileges are required; the output marks what only root can see.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevicesArgs {
    /// Interfaces to show in full; default: one line for every interface.
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Network namespace: a name known to `ip netns` or Docker, the PID of a process in it, or a
    /// path.
    #[arg(long, value_name = "NS")]
    netns: Option<String>,

    /// Print everything as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`. Scripts rely on field names: they may be added to, not changed.
#[derive(Debug, Serialize)]
struct Listing<'a> {
    /// Always `devices`.
    r#type: &'static str,
    version: &'static str,
    devices: &'a [Device],
}

/// Returns the named interfaces, or all if there are no names, in the given or this thread's namespace.
pub(crate) fn find(netns: Option<&str>, names: &[String]) -> Result<Vec<Device>, Failure> {
    let Some(netns) = netns else { return Survey::take(None)?.devices(&interfaces::separate(names, None)?) };
    let netns = Namespace::find(netns)?;
    let names = interfaces::separate(names, Some(&netns))?;
    netns.inside(|| Survey::take(Some(&netns))?.devices(&names))?
}

pub(crate) fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let devices = find(args.netns.as_deref(), &args.names)?;
    let text = if args.json {
        let listing = Listing { r#type: "devices", version: env!("CARGO_PKG_VERSION"), devices: &devices };
        let json = serde_json::to_string(&listing).map_err(Failure::new)?;
        format!("{json}\n")
    } else if args.names.is_empty() {
        table::table(&devices, style::columns(), style::stdout())
    } else {
        let pages: Vec<String> =
            devices.iter().map(|device| page::page(device, style::columns(), style::stdout())).collect();
        pages.join("\n")
    };
    out::print(style::lines(&text).as_bytes())
}
