//! Whose a packet is, as lines, comments and objects say it.

use std::fmt::{self, Display};

use serde::Serialize;
use weir::who::{Certainty, Owner, Process, Whose};

use crate::harmless::is_order;

/// Processes that a line names; of more it has the number.
const MOST: usize = 4;

/// Writes owners as lines end with them: `nginx[4711]`, or `curl[812] > nginx[4711]` of a packet that stays on this host.
#[derive(Clone, Copy, Debug)]
pub struct OwnersLine<'a>(pub &'a Whose);

impl Display for OwnersLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Whose { sender, receiver } = self.0;
        let both = if sender.is_some() && receiver.is_some() { " > " } else { "" };
        sender.iter().try_for_each(|owner| one(owner, f))?;
        f.write_str(both)?;
        receiver.iter().try_for_each(|owner| one(owner, f))
    }
}

fn one(owner: &Owner, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match owner.certainty {
        Certainty::Kernel => return f.write_str("kernel"),
        Certainty::Forwarded => return f.write_str("forwarded"),
        Certainty::Unknown => return f.write_str("-"),
        _ => {}
    }
    let mut last: Option<&str> = None;
    for process in owner.processes.iter().take(MOST) {
        match last {
            // Workers of one program.
            Some(name) if name == process.name => write!(f, "|{}", process.id.number)?,
            last => {
                f.write_str(if last.is_some() { "]|" } else { "" })?;
                write!(f, "{}[{}", name(&process.name), process.id.number)?;
            }
        }
        last = Some(&process.name);
    }
    f.write_str("]")?;
    if owner.processes.len() > MOST {
        write!(f, "|+{}", owner.processes.len() - MOST)?;
    }
    match owner.certainty {
        Certainty::Listener => f.write_str("?listener"),
        Certainty::Before => f.write_str("?before"),
        _ => Ok(()),
    }
}

/// Makes a name safe to print, and tells it from what is around it: characters that have a meaning there are escaped, too.
fn name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            _ if is_order(letter) => shown.extend(letter.escape_default()),
            '[' | ']' | '|' | '>' | '?' | '\\' => shown.extend(['\\', letter]),
            _ => shown.push(letter),
        }
    }
    shown
}

/// Writes owners as a comment on the packet, for programs that know nothing else: `nginx[4711] user 33 container web certain`.
#[derive(Clone, Copy, Debug)]
pub struct OwnersComment<'a>(pub &'a Whose);

impl Display for OwnersComment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Whose { sender, receiver } = self.0;
        let mut between = "";
        for (side, owner) in [("sender", sender), ("receiver", receiver)] {
            let Some(owner) = owner else { continue };
            write!(f, "{between}{side} ")?;
            between = "; ";
            let mut or = "";
            for process in owner.processes.iter().take(MOST) {
                write!(f, "{or}{}[{}] user {}", name(&process.name), process.id.number, process.user)?;
                if let Some(container) = &process.container {
                    write!(f, " container {}", name(container.name.as_ref().unwrap_or(&container.id)))?;
                }
                or = " or ";
            }
            if owner.processes.len() > MOST {
                write!(f, " or {} more", owner.processes.len() - MOST)?;
            }
            f.write_str(if owner.processes.is_empty() { "" } else { " " })?;
            f.write_str(found(owner.certainty))?;
        }
        Ok(())
    }
}

/// The word for how an owner was found.
fn found(certainty: Certainty) -> &'static str {
    match certainty {
        Certainty::Certain => "certain",
        Certainty::Listener => "listener",
        Certainty::Several => "several",
        Certainty::Before => "before",
        Certainty::Kernel => "kernel",
        Certainty::Forwarded => "forwarded",
        Certainty::Unknown => "unknown",
    }
}

/// An owner in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct OwnerObject<'a> {
    /// `certain`, `listener`, `several`, `before`, `kernel`, `forwarded` or `unknown`.
    found: &'static str,
    #[serde(flatten)]
    process: Option<ProcessObject<'a>>,
    /// With `several`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    one_of: Vec<ProcessObject<'a>>,
}

/// A process in JSON.
#[derive(Debug, Serialize)]
struct ProcessObject<'a> {
    pid: u32,
    name: &'a str,
    /// User ID.
    user: u32,
    /// Process ID.
    #[serde(skip_serializing_if = "is_unknown")]
    parent: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<ContainerObject<'a>>,
}

/// A container in JSON.
#[derive(Debug, Serialize)]
struct ContainerObject<'a> {
    id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    engine: &'a str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_unknown(process: &u32) -> bool {
    *process == 0
}

impl<'a> OwnerObject<'a> {
    pub(crate) fn new(owner: &'a Owner) -> Self {
        let (process, one_of) = match &*owner.processes {
            [one] => (Some(ProcessObject::new(one)), Vec::new()),
            all => (None, all.iter().map(|process| ProcessObject::new(process)).collect()),
        };
        Self { found: found(owner.certainty), process, one_of }
    }
}

impl<'a> ProcessObject<'a> {
    fn new(process: &'a Process) -> Self {
        Self {
            pid: process.id.number,
            name: &process.name,
            user: process.user,
            parent: process.parent,
            program: process.program.as_deref(),
            arguments: process.arguments.as_deref(),
            cgroup: process.cgroup.as_deref(),
            unit: process.unit.as_deref(),
            container: process.container.as_ref().map(|container| ContainerObject {
                id: &container.id,
                name: container.name.as_deref(),
                engine: &container.engine,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use weir::who::{Container, ProcessId};

    use super::*;

    fn process(number: u32, name: &str) -> Arc<Process> {
        Arc::new(Process {
            id: ProcessId { number, started: 1 },
            parent: 0,
            user: 33,
            name: name.to_owned(),
            program: None,
            arguments: None,
            cgroup: None,
            container: None,
            unit: None,
        })
    }

    fn of(certainty: Certainty, processes: &[Arc<Process>]) -> Option<Owner> {
        Some(Owner { certainty, processes: processes.to_vec().into() })
    }

    #[test]
    fn owners_are_short_and_say_how_sure_they_are() {
        let all = [process(4711, "nginx"), process(4712, "nginx"), process(812, "curl")];
        let some = |places: &[usize]| places.iter().map(|&place| Arc::clone(&all[place])).collect::<Vec<_>>();
        let (one, two, mixed) = (some(&[0]), some(&[0, 1]), some(&[0, 2, 1]));
        let many: Vec<_> = (1..=9).map(|number| process(number, "w")).collect();
        for (certainty, processes, line, comment) in [
            (Certainty::Certain, &one[..], "nginx[4711]", "sender nginx[4711] user 33 certain"),
            (Certainty::Listener, &one, "nginx[4711]?listener", "sender nginx[4711] user 33 listener"),
            (Certainty::Before, &one, "nginx[4711]?before", "sender nginx[4711] user 33 before"),
            (
                Certainty::Several,
                &two,
                "nginx[4711|4712]",
                "sender nginx[4711] user 33 or nginx[4712] user 33 several",
            ),
            (
                Certainty::Several,
                &mixed,
                "nginx[4711]|curl[812]|nginx[4712]",
                "sender nginx[4711] user 33 or curl[812] user 33 or nginx[4712] user 33 several",
            ),
            (
                Certainty::Several,
                &many,
                "w[1|2|3|4]|+5",
                "sender w[1] user 33 or w[2] user 33 or w[3] user 33 or w[4] user 33 or 5 more several",
            ),
            (Certainty::Kernel, &[], "kernel", "sender kernel"),
            (Certainty::Forwarded, &[], "forwarded", "sender forwarded"),
            (Certainty::Unknown, &[], "-", "sender unknown"),
        ] {
            let whose = Whose { sender: of(certainty, processes), receiver: None };
            assert_eq!(OwnersLine(&whose).to_string(), line);
            assert_eq!(OwnersComment(&whose).to_string(), comment);
        }
        let container =
            Container { id: "4f".repeat(32), name: Some("web".to_owned()), engine: "docker".to_owned() };
        let inside = Arc::new(Process { container: Some(container), ..(*all[0]).clone() });
        let both = Whose {
            sender: of(Certainty::Certain, &some(&[2])),
            receiver: of(Certainty::Listener, &[inside]),
        };
        assert_eq!(OwnersLine(&both).to_string(), "curl[812] > nginx[4711]?listener");
        assert_eq!(
            OwnersComment(&both).to_string(),
            "sender curl[812] user 33 certain; receiver nginx[4711] user 33 container web listener"
        );
    }

    #[test]
    fn names_are_told_from_what_is_around_them() {
        let odd = [process(7, "a[1] > b\u{1b}[2J|?")];
        let whose = Whose { sender: None, receiver: of(Certainty::Certain, &odd) };
        assert_eq!(OwnersLine(&whose).to_string(), "a\\[1\\] \\> b\\u{1b}\\[2J\\|\\?[7]");
        let comment = OwnersComment(&whose).to_string();
        assert!(!comment.contains(is_order), "{comment}");
    }

    #[test]
    fn objects_have_what_is_known() {
        let json =
            |owner: Option<Owner>| serde_json::to_string(&owner.as_ref().map(OwnerObject::new)).unwrap();
        let nginx = process(4711, "nginx");
        let expected = r#"{"found":"certain","pid":4711,"name":"nginx","user":33}"#;
        assert_eq!(json(of(Certainty::Certain, &[Arc::clone(&nginx)])), expected);
        let full = Arc::new(Process {
            parent: 1,
            program: Some("/usr/sbin/nginx".to_owned()),
            arguments: Some(vec!["-g".to_owned()]),
            cgroup: Some("/a".to_owned()),
            unit: Some("nginx.service".to_owned()),
            container: Some(Container { id: "4f".to_owned(), name: None, engine: String::new() }),
            ..(*nginx).clone()
        });
        let of_full = r#""pid":4711,"name":"nginx","user":33,"parent":1,"program":"/usr/sbin/nginx","arguments":["-g"],"cgroup":"/a","unit":"nginx.service","container":{"id":"4f"}"#;
        assert_eq!(json(of(Certainty::Before, &[full])), format!(r#"{{"found":"before",{of_full}}}"#));
        let two = [nginx, process(4712, "nginx")];
        let expected = r#"{"found":"several","one_of":[{"pid":4711,"name":"nginx","user":33},{"pid":4712,"name":"nginx","user":33}]}"#;
        assert_eq!(json(of(Certainty::Several, &two)), expected);
        assert_eq!(json(of(Certainty::Kernel, &[])), r#"{"found":"kernel"}"#);
    }
}
