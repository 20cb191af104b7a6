//! What a command that has ended may not leave behind.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use weir_lab::Network;
use weir_sys::bpf::query;

/// The kernel frees programs and maps after a grace period.
const PATIENCE: Duration = Duration::from_secs(10);

/// Programs and maps in the kernel.
type Objects = BTreeSet<(&'static str, u32)>;

/// One at a time looks, and makes what others would see.
static ALONE: Mutex<()> = Mutex::new(());

/// The system before.
pub(crate) struct Before {
    _alone: MutexGuard<'static, ()>,
    objects: Objects,
    links: String,
}

impl Before {
    pub(crate) fn of(network: &Network) -> Self {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let links = links(network);
        assert!(!links.contains("xdp") && !links.contains("clsact"), "{links}");
        Self { _alone: alone, objects: objects(), links }
    }

    /// What is still there after all patience that was not there before.
    pub(crate) fn left(&self, network: &Network) -> Option<String> {
        let patience = Instant::now() + PATIENCE;
        let mut left: Objects = objects().difference(&self.objects).copied().collect();
        loop {
            let links = links(network);
            if left.is_empty() && links == self.links {
                return None;
            }
            if Instant::now() >= patience {
                let program = |id| query::program(id).ok().flatten().map(|program| program.name);
                let names: Vec<_> = left
                    .iter()
                    .filter(|(kind, _)| *kind == "program")
                    .filter_map(|(_, id)| program(*id))
                    .collect();
                return Some(format!("{left:?} {names:?}, {links}"));
            }
            thread::sleep(Duration::from_millis(20));
            // Whoever else is busy on this machine makes new ones.
            left = left.intersection(&objects()).copied().collect();
        }
    }
}

fn objects() -> Objects {
    let programs = query::programs().expect("root may ask").into_iter().map(|id| ("program", id));
    let maps = query::maps().expect("root may ask").into_iter().map(|id| ("map", id));
    programs.chain(maps).collect()
}

/// What `ip` and `tc` tell of the receiving interfaces.
fn links(network: &Network) -> String {
    let say = |line: String| {
        let words: Vec<&str> = line.split(' ').collect();
        let (tool, args) = words.split_first().expect("a command");
        let output = network.rx().run(|| Command::new(tool).args(args).output().expect("it is installed"));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let of = |name: &String| {
        ["ip -d link show", "tc qdisc show dev", "tc filter show ingress dev", "tc filter show egress dev"]
            .map(|line| say(format!("{line} {name}")))
            .concat()
    };
    network.pairs().iter().map(|pair| of(&pair.rx.name)).collect()
}
