//! Rules in front of a capture's programs, in the place of a filter.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use weir_bpf::filter::{Filter, Gate, Hook};
use weir_bpf::rules::{Places, Received, Rules as Programs};
use weir_sys::CallError;

use super::{InForce, Loader, Placed, Site};
use crate::live::interface::Device;
use crate::live::rules::Rules;
use crate::{Error, Namespace, Unsupported};

/// Puts rules at the gates of an interface's programs, before those are attached; the last gate may be of another interface that
/// receives, too. `tags_lost`: the programs do not see VLAN tags.
pub(crate) fn put(
    device: &Device,
    namespace: Option<&Namespace>,
    rules: &Rules,
    gates: Vec<Arc<Gate>>,
    tags_lost: bool,
) -> Result<InForce, Error> {
    let name = &device.link.name;
    if !device.is_ethernet() {
        return Err(Error::Unsupported {
            name: name.clone(),
            cause: Unsupported::NoEthernet,
            sources: &[],
            otherwise: "capture with a filter",
        });
    }
    let mut received = gates.iter().flat_map(|gate| hooks(gate)).filter_map(|hook| match *hook {
        Hook::Xdp { fragments, interface } => Some(Received::Xdp { fragments, interface }),
        Hook::Ingress => Some(Received::Tc),
        Hook::Egress => None,
    });
    let (received, back) = (received.next(), received.next());
    let sent = gates.iter().flat_map(|gate| hooks(gate)).any(|hook| *hook == Hook::Egress);
    let loader = Loader {
        name: name.clone(),
        namespace: namespace.cloned(),
        receiver: device.receiver()?,
        keep_tags: tags_lost.then(|| device.leave_tags()),
        places: Places { received, sent, back },
        dry_run: false,
        log: None,
        exact: None,
        behind: gates.clone(),
    };
    let loaded = loader.load(rules, false)?;
    let site = Gates(gates);
    site.put(&loaded.programs)?;
    Ok(InForce::new(Placed { site: Box::new(site), loaded, loader }))
}

/// The gates of an interface's programs.
#[derive(Debug)]
struct Gates(Vec<Arc<Gate>>);

impl Site for Gates {
    fn put(&self, rules: &Programs) -> Result<(), CallError> {
        let mut received = [&rules.received, &rules.back].into_iter();
        for gate in &self.0 {
            let program = |hook: &Hook| match hook {
                Hook::Egress => rules.sent.as_ref(),
                Hook::Xdp { .. } | Hook::Ingress => received.next()?.as_ref(),
            };
            let programs: io::Result<_> =
                hooks(gate).iter().filter_map(program).map(OwnedFd::try_clone).collect();
            let programs = programs.map_err(|error| CallError::new("duplicate a descriptor", error))?;
            gate.set(Some(&Filter::from_programs(programs, Vec::new())))?;
        }
        Ok(())
    }

    /// They go with the capture's programs.
    fn end(&mut self, _gone: bool) -> Result<(), CallError> {
        Ok(())
    }
}

/// Returns the hooks of a gate. A program that is bound to its device has none: its filter is inside.
fn hooks(gate: &Gate) -> &[Hook] {
    match gate {
        Gate::Calls(calls) => calls.hooks(),
        Gate::Bound(_) => &[],
    }
}
