//! Which places in the kernel tell of sockets, and what is not known without each.

use std::borrow::Cow;

use weir_bpf::who::{Following, Hook};

/// A place in the kernel that tells of sockets or processes, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookState {
    /// What the kernel calls it: `cgroup/sock_create`.
    pub name: &'static str,
    /// Why it does not tell; `None`: it does.
    pub refused: Option<String>,
    /// What is not known, or takes longer, while it does not tell.
    pub costs: Cow<'static, str>,
}

/// Returns the state of all hooks. `is_whole`: they are attached for all processes of the system.
pub(super) fn states(following: &Following, is_whole: bool) -> Vec<HookState> {
    let state = |hook: Hook| {
        let refused = following.refused().iter().find(|refused| refused.hook == hook);
        HookState {
            name: hook.place(),
            refused: refused.map(|refused| refused.why.clone()),
            costs: costs(hook).into(),
        }
    };
    let part = (!is_whole).then(|| HookState {
        name: "cgroup2",
        refused: Some("its root is not mounted here".to_owned()),
        costs: "sockets of processes outside of this container or control group have no owner".into(),
    });
    Hook::ALL.into_iter().map(state).chain(part).collect()
}

fn costs(hook: Hook) -> &'static str {
    match hook {
        Hook::Create => "raw and ping sockets have no owner until a look at open files finds them",
        Hook::Release => "sockets are not known to be closed, and UDP's ports are known later",
        Hook::Bind4 => "servers of IPv4 are known only once they listen or send",
        Hook::Bind6 => "servers of IPv6 are known only once they listen or send",
        Hook::Connect4 => {
            "UDP that is connected by IPv4 has the owner that made it, once a look at open files finds it"
        }
        Hook::Connect6 => {
            "UDP that is connected by IPv6 has the owner that made it, once a look at open files finds it"
        }
        Hook::Send4 => "UDP that is not connected has no owner by IPv4, unless it was bound",
        Hook::Send6 => "UDP that is not connected has no owner by IPv6, unless it was bound",
        Hook::Tcp => {
            "connections of TCP have no port until a look at open files finds them, and those accepted no owner"
        }
        Hook::Executed => "a program that was started in place of another is known only by its next socket",
        Hook::Ended => "processes that have ended are kept until room is needed",
        Hook::Files => {
            "open sockets are looked for in /proc and in the kernel's tables: of this network namespace only, and slowly"
        }
    }
}
