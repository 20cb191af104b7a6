//! DNS (RFC 1035) and multicast DNS (RFC 6762).

mod edns;

use weir_parse::dns::{HEADER, NAME, counts, result, skip_name, type_name};

use crate::Printer;
use crate::base::bytes::{Bytes, Cut};
use crate::base::text::put;

/// Most questions or answers in one line.
const SHOWN: usize = 32;

const INTERNET: u16 = 1;
const SOA: u16 = 6;
const A6: u16 = 38;
const OPT: u16 = 41;
const TSIG: u16 = 250;

impl Printer<'_> {
    /// Prints a message after its length. Only a message that fills a segment is read.
    pub(crate) fn dns_over_tcp(&mut self, payload: Bytes<'_>) -> Result<(), Cut> {
        self.protocol = "domain";
        self.text(" ");
        if payload.len < 2 {
            put!(self, "[DNS over TCP: length {} < 2] (invalid)", payload.len);
            return Ok(());
        }
        let len = usize::from(payload.u16(0)?);
        if len + 2 != payload.len {
            put!(self, "[prefix length({len}) != length({})] (invalid)", payload.len - 2);
            return Ok(());
        }
        self.dns(payload.from(2).first(len), false)
    }

    pub(crate) fn dns(&mut self, bytes: Bytes<'_>, multicast: bool) -> Result<(), Cut> {
        self.protocol = "domain";
        self.facts.protocol = Some(if multicast { "mdns" } else { "dns" });
        if bytes.len < HEADER {
            put!(self, "domain [length {} < 12] (invalid)", bytes.len);
            return Ok(());
        }
        bytes.get(0, HEADER)?;
        let (id, flags) = (bytes.u16(0)?, bytes.u16(2)?);
        self.number(id);
        self.operation(flags >> 11 & 15);
        let end = match flags & 0x8000 {
            0 => self.query(flags, bytes, multicast),
            _ => self.answer(flags, bytes, multicast),
        };
        end?;
        self.text(" (");
        self.size(bytes.len);
        self.text(")");
        Ok(())
    }

    fn operation(&mut self, code: u16) {
        const OPERATIONS: [&str; 7] = ["", " inv_q", " stat", " op3", " notify", " update", " op6"];
        match OPERATIONS.get(usize::from(code)) {
            Some(word) => self.text(word),
            None => put!(self, " op{code}"),
        }
    }

    fn query(&mut self, flags: u16, bytes: Bytes<'_>, multicast: bool) -> Result<(), Cut> {
        let [questions, answers, authorities, additional] = counts(bytes)?;
        if flags & 0x0100 != 0 {
            self.text("+");
        }
        if flags & 0x0010 != 0 {
            self.text("%");
        }
        // Only responses have these bits.
        if flags & 0x06cf != 0 {
            put!(self, " [b2&3=0x{flags:x}]");
        }
        let inverse = flags >> 11 & 15 == 1;
        let odd = |count: u16, usual: u16| count != usual;
        if inverse {
            self.count(questions, odd(questions, 0), "q");
            self.count(answers, odd(answers, 1), "a");
        } else {
            self.count(answers, odd(answers, 0), "a");
            self.count(questions, odd(questions, 1), "q");
        }
        self.count(authorities, odd(authorities, 0), "n");
        self.count(additional, odd(additional, 0), "au");
        let mut at = HEADER;
        for number in 0..usize::from(questions) {
            if number == SHOWN {
                self.text(", ...");
                return Ok(());
            }
            at = self.question(bytes, at, multicast)?;
        }
        if self.options.verbose > 1 {
            at = self.section("", answers, bytes, at, multicast)?;
            at = self.section(" ns:", authorities, bytes, at, multicast)?;
            self.section(" ar:", additional, bytes, at, multicast)?;
        }
        Ok(())
    }

    /// Prints the records of a section after its title, unless there are none; returns the position after them.
    fn section(
        &mut self,
        title: &str,
        count: u16,
        bytes: Bytes<'_>,
        mut at: usize,
        multicast: bool,
    ) -> Result<usize, Cut> {
        for number in 0..usize::from(count) {
            if number == SHOWN {
                self.text(", ...");
                return Ok(at);
            }
            // tcpdump looks for the first answer in any case.
            if at >= bytes.data.len() && (number > 0 || !title.is_empty()) {
                return Err(Cut);
            }
            self.text(if number > 0 { "," } else { title });
            match self.record(bytes, at, multicast)? {
                Some(end) => at = end,
                // tcpdump says nothing if it is the last record whose head is missing.
                None if number + 1 == usize::from(count) => return Ok(bytes.len),
                None => return Err(Cut),
            }
        }
        Ok(at)
    }

    fn count(&mut self, count: u16, shown: bool, letter: &str) {
        if shown {
            put!(self, " [{count}{letter}]");
        }
    }

    fn question(&mut self, bytes: Bytes<'_>, at: usize, multicast: bool) -> Result<usize, Cut> {
        let end = skip_name(bytes, at)?;
        let (kind, mut class) = (bytes.u16(end)?, bytes.u16(end + 2)?);
        self.text(" ");
        self.record_type(kind);
        let unicast = multicast && class & 0x8000 != 0;
        if multicast {
            class &= 0x7fff;
        }
        if class != INTERNET {
            self.text(" ");
            self.class(class);
        }
        if multicast {
            self.text(if unicast { " (QU)" } else { " (QM)" });
        }
        self.text("? ");
        self.domain(bytes, at)?;
        Ok(end + 4)
    }

    fn answer(&mut self, flags: u16, bytes: Bytes<'_>, multicast: bool) -> Result<(), Cut> {
        const RESULTS: [&str; 17] = [
            "",
            " FormErr",
            " ServFail",
            " NXDomain",
            " NotImp",
            " Refused",
            " YXDomain",
            " YXRRSet",
            " NXRRSet",
            " NotAuth",
            " NotZone",
            " Resp11",
            " Resp12",
            " Resp13",
            " Resp14",
            " NoChange",
            " BadVers",
        ];
        let [questions, answers, authorities, additional] = counts(bytes)?;
        match result(flags, bytes) {
            23 => self.text(" BadCookie"),
            result => match RESULTS.get(usize::from(result)) {
                Some(word) => self.text(word),
                None => put!(self, " Resp{result}"),
            },
        }
        for (set, mark) in [
            (flags & 0x0400 != 0, "*"),
            (flags & 0x0080 == 0, "-"),
            (flags & 0x0200 != 0, "|"),
            (flags & 0x0020 != 0, "$"),
        ] {
            if set {
                self.text(mark);
            }
        }
        self.count(questions, questions != 1, "q");
        let mut at = HEADER;
        for number in 0..usize::from(questions) {
            if self.options.verbose > 1 && number < SHOWN {
                self.text(if number == 0 { " q:" } else { "," });
                at = self.question(bytes, at, multicast)?;
            } else {
                at = skip_name(bytes, at)? + 4;
            }
        }
        put!(self, " {answers}/{authorities}/{additional}");
        at = self.section("", answers, bytes, at, multicast)?;
        if self.options.verbose > 1 {
            at = self.section(" ns:", authorities, bytes, at, multicast)?;
            self.section(" ar:", additional, bytes, at, multicast)?;
        }
        Ok(())
    }

    /// Prints a resource record; returns the position of the next one, or `None` if its head is incomplete.
    fn record(&mut self, bytes: Bytes<'_>, at: usize, multicast: bool) -> Result<Option<usize>, Cut> {
        if self.options.verbose > 0 {
            self.text(" ");
            self.domain(bytes, at)?;
        }
        let Ok(end) = skip_name(bytes, at) else { return Ok(None) };
        if bytes.get(end, 10).is_err() {
            return Ok(None);
        }
        let (kind, mut class, len) = (bytes.u16(end)?, bytes.u16(end + 2)?, usize::from(bytes.u16(end + 8)?));
        let data = end + 10;
        if multicast {
            if class & 0x8000 != 0 {
                self.text(" (Cache flush)");
            }
            class &= 0x7fff;
        }
        if class != INTERNET && kind != OPT {
            self.text(" ");
            self.class(class);
        }
        if self.options.verbose > 2 && kind != OPT {
            self.text(" [");
            self.duration(bytes.u32(end + 4)?);
            self.text("]");
        }
        self.text(" ");
        self.record_type(kind);
        bytes.get(data, len)?;
        match (kind, len) {
            (OPT, _) => {
                put!(self, " UDPsize={class}");
                if bytes.u16(end + 6)? & 0x8000 != 0 {
                    self.text(" DO");
                }
                if self.options.verbose > 1 {
                    self.edns_options(bytes.from(data).first(len))?;
                }
            }
            (SOA, _) if self.options.verbose > 0 => {
                self.text(" ");
                self.domain(bytes, data)?;
                self.text(" ");
                let second = skip_name(bytes, data)?;
                self.domain(bytes, second)?;
                let numbers = skip_name(bytes, second)?;
                for number in 0..5 {
                    put!(self, " {}", bytes.u32(numbers + number * 4)?);
                }
            }
            (A6, 1..) => self.prefixed_address(bytes, data)?,
            // As in tcpdump, which reads on after an address that is too short.
            (1, _) => {
                let address = bytes.ip4(data)?;
                self.text(" ");
                self.ip4_number(address);
            }
            (28, _) => {
                let address = bytes.ip6(data)?;
                self.text(" ");
                self.ip6_number(address);
            }
            (2 | 3 | 4 | 5 | 7 | 8 | 9 | 12 | 39, _) => {
                self.text(" ");
                self.domain(bytes, data)?;
            }
            (15, _) => {
                self.text(" ");
                self.domain(bytes, data + 2)?;
                put!(self, " {}", bytes.u16(data)?);
            }
            (16, _) => self.strings(bytes, data, len)?,
            (33, 6..) => {
                self.text(" ");
                self.domain(bytes, data + 6)?;
                put!(self, ":{} {} {}", bytes.u16(data + 4)?, bytes.u16(data)?, bytes.u16(data + 2)?);
            }
            (256, 4..) => {
                put!(self, " {} {} ", bytes.u16(data)?, bytes.u16(data + 2)?);
                self.harmless(bytes.get(data + 4, len - 4)?);
            }
            (TSIG, _) => self.signature(bytes, data, len)?,
            _ => {}
        }
        Ok(Some(data + len))
    }

    /// Prints seconds as `1y2w3d4h5m6s`, leaving out units that are 0.
    fn duration(&mut self, mut seconds: u32) {
        if seconds == 0 {
            return self.text("0s");
        }
        for (length, unit) in
            [(31_536_000, "y"), (604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")]
        {
            if seconds >= length {
                put!(self, "{}{unit}", seconds / length);
                seconds %= length;
            }
        }
    }

    /// Prints an address without the prefix that another name has (RFC 2874).
    fn prefixed_address(&mut self, bytes: Bytes<'_>, data: usize) -> Result<(), Cut> {
        let prefix = usize::from(bytes.u8(data)?);
        let mut address = [0; 16];
        let Some(tail) = address.get_mut(prefix / 8..) else { return Ok(()) };
        let len = tail.len();
        tail.copy_from_slice(bytes.get(data + 1, len)?);
        put!(self, " {prefix} ");
        self.ip6_address(address.into());
        if prefix > 0 {
            self.text(" ");
            self.domain(bytes, data + 1 + len)?;
        }
        Ok(())
    }

    /// Prints how a message is signed (RFC 8945), with `-v`.
    fn signature(&mut self, bytes: Bytes<'_>, data: usize, len: usize) -> Result<(), Cut> {
        if self.options.verbose == 0 {
            return Ok(());
        }
        self.text(" ");
        let at = self.domain_end(bytes, data)?.min(data + len) + 6;
        let signed = usize::from(bytes.u16(at + 2)?);
        put!(self, " fudge={} maclen={signed}", bytes.u16(at)?);
        let at = at + 4 + signed;
        let (id, error, other) = (bytes.u16(at)?, bytes.u16(at + 2)?, bytes.u16(at + 4)?);
        put!(self, " origid={id} error={error} otherlen={other}");
        Ok(())
    }

    fn strings(&mut self, bytes: Bytes<'_>, data: usize, len: usize) -> Result<(), Cut> {
        let mut at = data;
        while at < data + len {
            let size = usize::from(bytes.u8(at)?);
            let string = bytes.get(at + 1, size.min(data + len - at - 1))?;
            self.text(" \"");
            self.harmless(string);
            self.text("\"");
            at += 1 + size;
        }
        Ok(())
    }

    /// Prints a name with a dot after each label.
    fn domain(&mut self, bytes: Bytes<'_>, mut at: usize) -> Result<(), Cut> {
        if bytes.u8(at)? == 0 {
            self.text(".");
            return Ok(());
        }
        // A pointer must lead to before this, so that following them ends.
        let (mut limit, mut total) = (at, 0);
        loop {
            let first = bytes.u8(at)?;
            match first {
                0 => return Ok(()),
                1..0x40 => {
                    let label = bytes.from(at + 1).first(first.into());
                    if label.data.len() < usize::from(first) {
                        self.harmless(label.data);
                        return Err(Cut);
                    }
                    let label = label.data;
                    total += label.len() + 1;
                    if total > NAME {
                        self.text("<TOO LONG>");
                        return Ok(());
                    }
                    self.harmless(label);
                    self.text(".");
                    at += 1 + label.len();
                }
                0xc0.. => {
                    at = usize::from(bytes.u16(at)? & 0x3fff);
                    if at >= limit {
                        self.text("<BAD PTR>");
                        return Err(Cut);
                    }
                    limit = at;
                }
                _ => {
                    self.text("<BAD LABEL>");
                    return Ok(());
                }
            }
        }
    }

    /// Prints a name; returns the position after it.
    pub(crate) fn domain_end(&mut self, bytes: Bytes<'_>, at: usize) -> Result<usize, Cut> {
        self.domain(bytes, at)?;
        skip_name(bytes, at)
    }

    fn class(&mut self, class: u16) {
        match class {
            INTERNET => self.text("IN"),
            3 => self.text("CHAOS"),
            4 => self.text("HS"),
            255 => self.text("ANY"),
            _ => put!(self, "(Class {class})"),
        }
    }

    fn record_type(&mut self, kind: u16) {
        match type_name(kind) {
            Some(name) => self.text(name),
            None => put!(self, "Type{kind}"),
        }
    }
}
