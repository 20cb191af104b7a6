//! Both ends of a packet.

use crate::addresses::Here;
use crate::{Certainty, Owner, Question, Register, Side};

/// Whose packet it is, at both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Who has sent it; `None`: somebody on another host.
    pub sender: Option<Owner>,
    /// Who gets it; `None`: somebody on another host.
    pub receiver: Option<Owner>,
}

impl Whose {
    /// Returns the answer where nothing can be found out, for a packet that this host has sent, received, or either.
    pub fn unknown(outbound: Option<bool>) -> Self {
        let unknown = Some(Owner::nobody(Certainty::Unknown));
        match outbound {
            Some(false) => Self { sender: None, receiver: unknown },
            _ => Self { sender: unknown, receiver: None },
        }
    }

    /// Returns the owners.
    pub fn owners(&self) -> impl Iterator<Item = &Owner> {
        self.sender.iter().chain(&self.receiver)
    }

    /// Returns the one process that a record can name: the sender's if this host has sent the packet, the receiver's if it has
    /// received it; if either is possible, the sender's first. Only a certain one is.
    pub fn process(&self, outbound: Option<bool>) -> Option<u32> {
        let of = |owner: &Option<Owner>| {
            let owner = owner.as_ref().filter(|owner| owner.certainty == Certainty::Certain)?;
            owner.processes.first().map(|process| process.id.number)
        };
        match outbound {
            Some(true) => of(&self.sender),
            Some(false) => of(&self.receiver),
            None => of(&self.sender).or_else(|| of(&self.receiver)),
        }
    }
}

impl Register {
    /// Returns whose packet it is. `outbound`: whether this host has sent it or received it, if that is known: the other end then
    /// only has an owner if it is here, too, as on the loopback.
    pub fn whose(&self, question: &Question<'_>, outbound: Option<bool>) -> Whose {
        let [sender, receiver] = self.known.ends_here(question);
        if [sender, receiver] == [Here::Yes; 2] {
            let [sender, receiver] =
                [Side::Sender, Side::Receiver].map(|side| Some(self.owner(question, side)));
            return Whose { sender, receiver };
        }
        let owner = |side, here, is_own| match here {
            // A socket for any address may have its port.
            Here::No if (sender, receiver) == (Here::No, Here::No) => Owner::nobody(Certainty::Forwarded),
            Here::Yes => self.owner(question, side),
            Here::Untold if is_own => self.owner(question, side),
            Here::No | Here::Untold => Owner::nobody(Certainty::Unknown),
        };
        let sender = owner(Side::Sender, sender, outbound != Some(false));
        let receiver = owner(Side::Receiver, receiver, outbound != Some(true));
        both(sender, receiver, outbound)
    }
}

fn both(sender: Owner, receiver: Owner, outbound: Option<bool>) -> Whose {
    let of_process = |owner: &Owner| !owner.processes.is_empty();
    let is_unknown = |owner: &Owner| owner.certainty == Certainty::Unknown;
    let has_sender = match outbound {
        Some(outbound) => outbound,
        // Neither end is a process: the one of which more is known.
        None => !of_process(&receiver) && (!is_unknown(&sender) || is_unknown(&receiver)),
    };
    let has_receiver = match outbound {
        Some(outbound) => !outbound,
        None => !of_process(&sender) && !has_sender,
    };
    Whose {
        sender: Some(sender).filter(|sender| has_sender || of_process(sender)),
        receiver: Some(receiver).filter(|receiver| has_receiver || of_process(receiver)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Process, ProcessId};

    fn owner(certainty: Certainty, number: u32) -> Owner {
        let process = Process {
            id: ProcessId { number, started: 1 },
            parent: 0,
            user: 0,
            name: String::new(),
            program: None,
            arguments: None,
            cgroup: None,
            container: None,
            unit: None,
        };
        Owner { certainty, processes: Arc::new(process).into() }
    }

    #[test]
    fn ends_on_other_hosts_have_no_owner_and_each_packet_has_one() {
        let [unknown, kernel, forwarded] =
            [Certainty::Unknown, Certainty::Kernel, Certainty::Forwarded].map(Owner::nobody);
        let [certain, listener] = [owner(Certainty::Certain, 812), owner(Certainty::Listener, 4711)];
        let (out, received, either) = (Some(true), Some(false), None);
        for (sender, receiver, outbound, has_sender, has_receiver, process) in [
            (&certain, &unknown, out, true, false, Some(812)),
            (&unknown, &certain, received, false, true, Some(812)),
            (&certain, &unknown, either, true, false, Some(812)),
            (&unknown, &certain, either, false, true, Some(812)),
            // On the loopback.
            (&certain, &listener, out, true, true, Some(812)),
            (&certain, &listener, received, true, true, None),
            (&certain, &listener, either, true, true, Some(812)),
            (&listener, &certain, either, true, true, Some(812)),
            // Nobody's.
            (&kernel, &unknown, out, true, false, None),
            (&unknown, &kernel, either, false, true, None),
            (&unknown, &unknown, received, false, true, None),
            (&unknown, &unknown, either, true, false, None),
            (&forwarded, &forwarded, either, true, false, None),
            (&kernel, &certain, either, false, true, Some(812)),
        ] {
            let whose = both(sender.clone(), receiver.clone(), outbound);
            let expected = Whose {
                sender: Some(sender.clone()).filter(|_| has_sender),
                receiver: Some(receiver.clone()).filter(|_| has_receiver),
            };
            assert_eq!(whose, expected, "{sender:?} {receiver:?} {outbound:?}");
            assert_eq!(whose.process(outbound), process);
        }
    }
}
