//! The frames that are sent: made from a description, or templates that others have made.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use weir::reader::Item;
use weir::send::{Destination, SendReason};
use weir_traffic::{Framing, Tables, Templates, hex};

use crate::failure::Failure;
use crate::read::{self, Input, Sort};
use crate::sending::{Snapped, fits};
use crate::{link_types, style, units};

const ETHERNET: u16 = 1;
/// The most templates, and their bytes.
const MOST: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 30;

/// What `--template` says. As text: a file, or `hex:` and digits.
#[derive(Clone, Debug)]
pub(super) enum Template {
    File(PathBuf),
    Hex(Vec<u8>),
}

impl FromStr for Template {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("hex:") {
            Some(digits) => hex(digits).map(Self::Hex),
            None if text.is_empty() => Err("allowed: a file, or hex: and digits".to_owned()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl Template {
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Hex(_) => None,
        }
    }
}

/// Frame `n` for every `n`.
#[derive(Debug)]
pub(super) enum Frames {
    Described(Tables),
    Templates { link_type: u16, templates: Templates },
}

impl Frames {
    /// Reads templates. `destination`: the interface that is to take them. `sign`: each gets a signature.
    pub(super) fn read(
        wanted: &[Template],
        destination: Option<&Destination>,
        sign: bool,
        framing: Option<Framing>,
        snapped: Snapped,
    ) -> Result<Self, Failure> {
        let link_type = destination.map(|to| to.link_type);
        let mut all = All { link_type, framing, snapped, frames: Vec::new(), bytes: 0 };
        for template in wanted {
            match template {
                // As the interface takes it.
                Template::Hex(bytes) => {
                    all.add("the templates", all.link_type.unwrap_or(ETHERNET), bytes.clone(), destination)?
                }
                Template::File(path) => all.read(path, destination)?,
            }
        }
        let link_type = all.link_type.unwrap_or(ETHERNET);
        let templates = Templates::new(all.frames);
        let templates = match sign {
            false => templates,
            true => templates.signed(link_type).map_err(|why| {
                Failure::new(format_args!("cannot sign any template: {why}")).hint("leave out --sign")
            })?,
        };
        if let Some((left_out, first)) = templates.unsigned() {
            let of = units::grouped((left_out + templates.frames().len()) as u64);
            style::say(format_args!(
                "{}: --sign leaves out {} of {of} templates without room for a signature: {first}",
                style::stderr().cyan("note"),
                units::grouped(left_out as u64)
            ));
        }
        Ok(Self::Templates { link_type, templates })
    }

    pub(super) fn link_type(&self) -> u16 {
        match self {
            Self::Described(_) => ETHERNET,
            Self::Templates { link_type, .. } => *link_type,
        }
    }

    /// Returns the number of templates that have no room for the signature that they were to get.
    pub(super) fn unsigned(&self) -> usize {
        match self {
            Self::Described(_) => 0,
            Self::Templates { templates, .. } => templates.unsigned().map_or(0, |(left_out, _)| left_out),
        }
    }

    /// Returns the number of templates.
    pub(super) fn templates(&self) -> Option<usize> {
        match self {
            Self::Described(_) => None,
            Self::Templates { templates, .. } => Some(templates.frames().len()),
        }
    }

    pub(super) fn size(&self, sequence: u64) -> u32 {
        match self {
            Self::Described(tables) => tables.size(sequence),
            Self::Templates { templates, .. } => templates.size(sequence),
        }
    }

    pub(super) fn write(&self, sequence: u64, time: u64, stream: u16, frame: &mut Vec<u8>) {
        match self {
            Self::Described(tables) => tables.write(sequence, time, stream, frame),
            Self::Templates { templates, .. } => templates.write(sequence, time, stream, frame),
        }
    }
}

/// The templates so far.
struct All {
    /// `None`: any will do.
    link_type: Option<u16>,
    framing: Option<Framing>,
    snapped: Snapped,
    frames: Vec<Vec<u8>>,
    bytes: usize,
}

impl All {
    /// Reads the packets of a file.
    fn read(&mut self, path: &PathBuf, destination: Option<&Destination>) -> Result<(), Failure> {
        let name = style::visible(&path.display().to_string());
        let refused = |why: &str, hint: &str| {
            Err(Failure::new(format_args!("cannot use {name} as templates: {why}")).hint(hint))
        };
        let before = self.frames.len();
        let (mut number, mut padded) = (0, Vec::new());
        let mut input = Input::open(std::slice::from_ref(path), Sort::Never, None)?;
        loop {
            let (interface, frame) = match input.next().map_err(read::failure)? {
                None => break,
                Some(Item::Packet(packet)) => {
                    number += 1;
                    let is_cut = packet.data.len() < packet.original_len as usize;
                    if is_cut && self.snapped == Snapped::Refuse {
                        let number = units::grouped(number);
                        let why = format!("the capture kept only the first bytes of packet {number}");
                        return refused(&why, "try --snapped skip, cut or pad");
                    }
                    match self.snapped.apply(packet.data, packet.original_len, &mut padded) {
                        Some(data) => (packet.interface as usize, data.to_vec()),
                        None => continue,
                    }
                }
                Some(_) => continue,
            };
            let link_type =
                input.interfaces().get(interface).map_or(ETHERNET, |interface| interface.link_type);
            self.add(&name, link_type, frame, destination)?;
            if self.frames.len() > MOST || self.bytes > MOST_BYTES {
                let why = format!(
                    "there are more than {} or {}",
                    units::packets(MOST as u64),
                    units::bytes(MOST_BYTES as u64)
                );
                return refused(&why, "try weir replay --preload");
            }
        }
        if self.frames.len() == before {
            return refused("there is no packet in it", "a file with packets");
        }
        Ok(())
    }

    fn add(
        &mut self,
        source: &str,
        link_type: u16,
        mut frame: Vec<u8>,
        destination: Option<&Destination>,
    ) -> Result<(), Failure> {
        let link_type = self.framing.map_or(link_type, |framing| framing.apply(link_type, &mut frame));
        let wanted = *self.link_type.get_or_insert(link_type);
        if !fits(link_type, wanted) {
            let [theirs, ours] = [link_type, wanted].map(link_types::name);
            let failure = match destination {
                Some(to) => format!(
                    "cannot send {source} on `{}`: they are {theirs}, the interface takes {ours}",
                    style::visible(&to.name)
                ),
                None => format!("cannot write {source}: they are {theirs}, those before are {ours}"),
            };
            let hint = match Framing::can_be(link_type) && wanted == ETHERNET {
                true => "--dst-mac MAC gives them Ethernet headers",
                false => "templates of one link type",
            };
            return Err(Failure::new(failure).hint(hint));
        }
        if let Some(to) = destination {
            let number = self.frames.len() + 1;
            let refused = |why: String| {
                let name = style::visible(&to.name);
                Failure::new(format_args!("cannot send template {number} on `{name}`: {why}"))
            };
            match to.check(&frame) {
                Err(SendReason::TooLong { bytes, most, mtu }) => {
                    let (inside, short) = weir::parts::command::place(&to.name);
                    let hint = format!("try {inside}ip link set {short} mtu {mtu}");
                    let why = format!("it has {bytes} bytes; the interface takes up to {most}");
                    return Err(refused(why).hint(hint));
                }
                Err(_) => {
                    let least = to.header().max(1);
                    let why = format!("it has {} bytes; the link-layer header has {least}", frame.len());
                    return Err(refused(why).hint("a whole frame"));
                }
                Ok(()) => {}
            }
        }
        self.bytes += frame.len();
        self.frames.push(frame);
        Ok(())
    }
}
