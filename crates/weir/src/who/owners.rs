//! Packets joined with what files keep of sockets.

use weir_savefile::pcapng::{WHO, WhoBlock};
use weir_who::{News, Question, Register, Settings, Whose, decode, encode};

use crate::{Direction, Packet};

/// Runs of systems that are told from each other; a file of more is damaged, or somebody plays a trick.
const MOST_RUNS: usize = 64;

/// Tells whose the packets of files are. Blocks and packets are those of one [`Reader`](crate::reader::Reader), or of one
/// [`Merge`](crate::reader::Merge), which number interfaces alike.
///
/// Files of several hosts, or of the same one before and after it has started anew, do not mix: packets are joined with the
/// sockets of the host that knows their interface. A packet is unknown if that is not clear.
#[derive(Debug, Default)]
pub struct Owners {
    settings: Settings,
    /// By the run of the system.
    registers: Vec<([u8; 16], Register)>,
    /// By number.
    interfaces: Vec<Place>,
    blocks: u64,
    unreadable: u64,
}

/// Where packets of an interface belong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// No news has told.
    #[default]
    Untold,
    /// The place of the register, and the namespace.
    In(usize, u64),
    /// Two hosts have an interface that looks the same.
    Unclear,
}

impl Owners {
    /// Returns an empty one that remembers so much of each host.
    pub fn new(settings: &Settings) -> Self {
        Self { settings: *settings, ..Self::default() }
    }

    /// Takes in a block ([`Item::Block`](crate::reader::Item::Block)). Returns whether it is about sockets.
    pub fn learn(&mut self, kind: u32, body: &[u8]) -> bool {
        let Some(block) = WhoBlock::read(body).filter(|_| kind == WHO) else { return false };
        self.blocks += 1;
        match decode(block.news) {
            Ok(news) => self.learn_all(block.boot, &news),
            Err(_) => self.unreadable += 1,
        }
        true
    }

    /// Takes news in. `boot`: the run of the system whose sockets these are.
    pub fn learn_all(&mut self, boot: [u8; 16], news: &[News]) {
        let known = self.registers.iter().position(|(other, _)| *other == boot);
        if known.is_none() && self.registers.len() == MOST_RUNS {
            self.unreadable += 1;
            return;
        }
        let place = known.unwrap_or_else(|| {
            self.registers.push((boot, Register::new(&self.settings)));
            self.registers.len() - 1
        });
        for news in news {
            if let &News::Interface { interface, namespace } = news {
                self.locate(interface as usize, place, namespace);
            }
            self.registers[place].1.learn(news);
        }
    }

    fn locate(&mut self, interface: usize, place: usize, namespace: u64) {
        // Files have no more interfaces; a damaged one may say otherwise.
        if interface >= weir_savefile::decode::MOST_INTERFACES as usize {
            return;
        }
        if self.interfaces.len() <= interface {
            self.interfaces.resize(interface + 1, Place::default());
        }
        self.interfaces[interface] = match self.interfaces[interface] {
            Place::In(other, _) if other != place => Place::Unclear,
            Place::Unclear => Place::Unclear,
            Place::In(..) | Place::Untold => Place::In(place, namespace),
        };
    }

    /// Returns whose packet it is. `link_type`: that of its interface (`LINKTYPE_*`).
    pub fn whose(&self, packet: &Packet<'_>, link_type: u16) -> Whose {
        let outbound = outbound(packet);
        let told = self.interfaces.get(packet.interface as usize).copied().unwrap_or_default();
        let (place, namespace) = match told {
            Place::In(place, namespace) => (place, Some(namespace)),
            // Without any interface the blocks are of a copy that has left them out. An interface that others are told beside is of a file
            // without owners.
            Place::Untold if self.registers.len() == 1 && self.interfaces.is_empty() => (0, None),
            Place::Untold | Place::Unclear => return Whose::unknown(outbound),
        };
        let question = Question { at: packet.timestamp, namespace, link_type, frame: packet.data };
        self.registers[place].1.whose(&question, outbound)
    }

    /// Returns the number of blocks about sockets so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns how many of them could not be read, so that owners may be missing, or be those of an earlier socket.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }
}

/// Returns whether this host has sent a packet or received it; `None`: nothing says.
pub fn outbound(packet: &Packet<'_>) -> Option<bool> {
    match packet.direction {
        Some(Direction::Out) => Some(true),
        Some(Direction::In) => Some(false),
        Some(Direction::Both) | None => None,
    }
}

/// Returns the body of a block about sockets with other numbers of interfaces; those that get none are left out. `None`: the
/// block is not about sockets, is damaged, or says nothing of interfaces whose numbers change.
pub fn renumbered(kind: u32, body: &[u8], number: impl Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
    let block = WhoBlock::read(body).filter(|_| kind == WHO)?;
    let mut news = decode(block.news).ok()?;
    let mut changes = false;
    news.retain_mut(|news| {
        let News::Interface { interface, .. } = news else { return true };
        let new = number(*interface);
        changes |= new != Some(*interface);
        *interface = new.unwrap_or_default();
        new.is_some()
    });
    if !changes {
        return None;
    }
    let mut bytes = Vec::new();
    encode(&news, &mut bytes);
    WhoBlock { boot: block.boot, news: &bytes }.body()
}
