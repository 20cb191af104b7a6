//! What the service around a capture is to do: confinement, the control socket, metrics, readiness.

use std::os::fd::RawFd;
use std::path::PathBuf;

use clap::Args;
use weir_service::confine::{self, Confinement, Needs};
use weir_service::control::Socket;
use weir_service::metrics::Address;
use weir_service::session::Identity;

use crate::failure::Failure;

#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Privileges")]
pub(crate) struct ConfineArgs {
    /// Do not drop privileges or sandbox (for troubleshooting).
    #[arg(hide_short_help = true, long)]
    no_confine: bool,
}

impl ConfineArgs {
    /// Confines the process to what the rest of the run needs, unless the user disabled it.
    pub(crate) fn confine(&self, needs: impl FnOnce() -> Needs) -> Result<Option<Confinement>, Failure> {
        if self.no_confine { Ok(None) } else { Ok(Some(confine::confine(&needs())?)) }
    }

    /// Returns whether the process is to be confined.
    pub(crate) fn is_on(&self) -> bool {
        !self.no_confine
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Privileges")]
pub(crate) struct UserArgs {
    /// Switch to USER once the interfaces are open.
    ///
    /// USER then creates and owns all files. Without -Z, weir started as root switches to the user
    /// `weir`, or to an otherwise unused user if there is none, and root owns the files. `-Z root`
    /// keeps weir running as root.
    #[arg(hide_short_help = true, short = 'Z', long, value_name = "USER")]
    relinquish_privileges: Option<String>,
}

impl UserArgs {
    /// Returns the user to run as.
    pub(crate) fn identity(&self) -> Identity {
        Identity::Other(self.relinquish_privileges.clone())
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Control socket")]
pub(crate) struct ControlArgs {
    /// Listen for `weir ctl` on this Unix socket.
    ///
    /// Default: /run/weir/PID.sock, or a socket below $XDG_RUNTIME_DIR, if either can be created.
    #[arg(hide_short_help = true, long, value_name = "PATH", conflicts_with = "no_control")]
    control: Option<PathBuf>,

    /// Let members of GROUP use `weir ctl` (except `stat on|off`), not only root and the user running weir.
    ///
    /// A separate process keeps the privilege to load eBPF programs and builds their filters.
    #[arg(hide_short_help = true, long, value_name = "GROUP", conflicts_with = "no_control")]
    control_group: Option<String>,

    /// Do not listen for `weir ctl`.
    #[arg(hide_short_help = true, long)]
    no_control: bool,
}

impl ControlArgs {
    /// Returns where to listen, and for whom; `None`: nowhere.
    pub(crate) fn socket(&self) -> Option<Socket> {
        let socket = || Socket { path: self.control.clone(), group: self.control_group.clone() };
        (!self.no_control).then(socket)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Serve Prometheus metrics at http://ADDR/metrics.
    ///
    /// ADDR is a port on 127.0.0.1 (such as 9464), an address and port (127.0.0.1:9464, `[::]:9464`) or the path of a
    /// Unix socket. Losses of captures are in weir_lost_packets_total, by stage; the package has alert
    /// rules for them (/usr/share/doc/weir/examples/prometheus.rules.yaml). Over TCP, clients must name this host by an IP address,
    /// localhost or its own name: others may lead here from web pages (DNS rebinding), and are answered with status 421.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<Address>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReadyArgs {
    /// When ready, write a newline to file descriptor N and close it.
    ///
    /// No packet that arrives later is missed. systemd needs no option: weir notifies it through
    /// $NOTIFY_SOCKET.
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(RawFd).range(0..))]
    pub(crate) ready_fd: Option<RawFd>,
}
