//! Parser for ATM and SS7 terms.

use super::Parser;
use crate::Error;
use crate::ast::{AtmKind, Comparison, MtpField, MtpKind, Primitive};
use crate::lex::Kind;

impl Parser<'_, '_> {
    /// Parses the ATM or SS7 term that `word`, the current token, begins, if it does.
    pub(super) fn signalling(&mut self, word: &str) -> Result<Option<Primitive>, Error> {
        let atm = |kind| Some(Primitive::Atm(kind));
        let alone = match word {
            "lane" => atm(AtmKind::Lane),
            "metac" => atm(AtmKind::Metac),
            "bcc" => atm(AtmKind::Bcc),
            "oam" => atm(AtmKind::Oam),
            "oamf4" => atm(AtmKind::Oamf4),
            "oamf4sc" => atm(AtmKind::Oamf4sc),
            "oamf4ec" => atm(AtmKind::Oamf4ec),
            "sc" => atm(AtmKind::Sc),
            "ilmic" => atm(AtmKind::Ilmic),
            "connectmsg" => atm(AtmKind::Connectmsg),
            "metaconnect" => atm(AtmKind::Metaconnect),
            _ => None,
        };
        if let Some(primitive) = alone {
            return Ok(Some(self.alone(primitive)?));
        }
        // The forms for high-speed links begin with `h`.
        let high_speed = word.starts_with('h');
        let field = match word.trim_start_matches('h') {
            "vpi" | "vci" => {
                let values = self.values(u32::MAX)?;
                let kind = if word == "vpi" { AtmKind::Vpi(values) } else { AtmKind::Vci(values) };
                return Ok(Some(Primitive::Atm(kind)));
            }
            "fisu" => return Ok(Some(self.alone(Primitive::Mtp(MtpKind::Fisu { high_speed }))?)),
            "lssu" | "lsu" => return Ok(Some(self.alone(Primitive::Mtp(MtpKind::Lssu { high_speed }))?)),
            "msu" => return Ok(Some(self.alone(Primitive::Mtp(MtpKind::Msu { high_speed }))?)),
            "sio" => MtpField::Sio,
            "opc" => MtpField::Opc,
            "dpc" => MtpField::Dpc,
            "sls" => MtpField::Sls,
            _ => return Ok(None),
        };
        let most = match field {
            MtpField::Sio => 255,
            MtpField::Opc | MtpField::Dpc => 0x3fff,
            MtpField::Sls => 15,
        };
        let values = self.values(most)?;
        Ok(Some(Primitive::Mtp(MtpKind::Field { field, high_speed, values })))
    }

    /// Parses the values of a field: `5`, `> 5`, `(5 or 6)`.
    fn values(&mut self, most: u32) -> Result<Vec<(Comparison, u32)>, Error> {
        self.take()?;
        if let Some(comparison) = self.comparison() {
            self.take()?;
            return Ok(vec![(comparison, self.value(most)?)]);
        }
        if !self.taken("(")? {
            return Ok(vec![(Comparison::Equal, self.value(most)?)]);
        }
        let mut values = vec![(Comparison::Equal, self.value(most)?)];
        while matches!(self.token.kind, Kind::Word("or")) {
            self.take()?;
            values.push((Comparison::Equal, self.value(most)?));
        }
        if !self.at_sign(")") {
            return Err(self.expected("`or` or `)`"));
        }
        self.take()?;
        Ok(values)
    }

    fn value(&mut self, most: u32) -> Result<u32, Error> {
        let token = self.token;
        let number = self.demand_number("a number")?;
        if number > most {
            return Err(Error::new(format!("the field's maximum is {most}"), token.span()));
        }
        Ok(number)
    }
}
