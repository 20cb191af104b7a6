//! A filter that another process can compile: the expression, and the values of its names.

use std::fmt;
use std::net::Ipv4Addr;
use std::sync::Arc;

use super::remembered::{Answers, Remembered};
use super::{Compiled, Dialect, Filter, FilterError, Receiver};

/// A [`Filter`] with resolved names, for another process that cannot or should not resolve them: compiling it reads no
/// files and sends no queries.
#[derive(Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PortableFilter {
    text: String,
    /// Whether it is in libpcap's dialect.
    pcap: bool,
    #[cfg_attr(feature = "serde", serde(default))]
    netmask: Option<Ipv4Addr>,
    names: Answers,
}

impl Filter {
    /// Resolves the names in the filter, for compiling it elsewhere for `receivers`. Also returns whether no packet of
    /// any receiver can match.
    ///
    /// # Errors
    ///
    /// The expression is invalid, or tests something that packets of one of the link types do not have.
    pub fn portable(&self, receivers: &[Receiver]) -> Result<(PortableFilter, bool), FilterError> {
        self.portable_by(|filter| {
            let filter = filter.among(receivers.iter().map(|receiver| receiver.link_type));
            let compiled = receivers.iter().map(|&receiver| filter.compile(receiver));
            let compiled = compiled.collect::<Result<Vec<_>, _>>()?;
            Ok(compiled.iter().all(Compiled::is_never))
        })
    }

    /// Does so for one receiver, with [`compile_behind_fields`](Self::compile_behind_fields).
    #[cfg(feature = "live")]
    pub(crate) fn portable_behind_fields(&self, receiver: Receiver) -> Result<PortableFilter, FilterError> {
        let portable = self.portable_by(|filter| filter.compile_behind_fields(receiver).map(|_| ()));
        portable.map(|(portable, ())| portable)
    }

    /// `compile` asks for all names.
    fn portable_by<T>(
        &self,
        compile: impl FnOnce(Self) -> Result<T, FilterError>,
    ) -> Result<(PortableFilter, T), FilterError> {
        let names = Arc::new(Remembered::new(Arc::clone(&self.names)));
        let found = compile(Self { names: Arc::clone(&names) as _, ..self.clone() })?;
        let portable = PortableFilter {
            text: self.text.clone(),
            pcap: self.dialect == Dialect::Pcap,
            netmask: self.netmask.map(Ipv4Addr::from),
            names: names.answers(),
        };
        Ok((portable, found))
    }
}

impl From<PortableFilter> for Filter {
    fn from(PortableFilter { text, pcap, netmask, names }: PortableFilter) -> Self {
        let dialect = if pcap { Dialect::Pcap } else { Dialect::Weir };
        Self::new(text).dialect(dialect).names(names).netmask(netmask)
    }
}

/// Omits the members of sets.
impl fmt::Debug for PortableFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortableFilter")
            .field("text", &self.text)
            .field("pcap", &self.pcap)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use weir_filter::names::Names;

    use super::*;

    const ETHERNET: Receiver =
        Receiver { link_type: 1, metadata: false, swapped: false, netmask: None, tags_lost: false };

    #[derive(Debug)]
    struct Known;

    impl Names for Known {
        fn set(&self, name: &str) -> Result<String, String> {
            if name == "bad" { Ok("10.0.0.1 10.0.0.7".to_owned()) } else { Err(format!("no @{name}")) }
        }
    }

    #[test]
    fn names_go_along_and_no_others_are_looked_up() {
        let filter = Filter::new("host in @bad and not broadcast").dialect(Dialect::Weir).names(Known);
        let (portable, never) = filter.portable(&[ETHERNET]).expect("it is right");
        assert!(!never);
        let text = serde_json::to_string(&portable).expect("text");
        let there = Filter::from(serde_json::from_str::<PortableFilter>(&text).expect("the same"));
        assert_eq!(there.label(), filter.label());
        let compiled = there.compile(ETHERNET).expect("all that it names is known");
        let here = filter.compile(ETHERNET).expect("it is right");
        assert_eq!(format!("{:?}", compiled.ast.sets), format!("{:?}", here.ast.sets));

        let forged = text.replace("host in @bad", "host in @/etc/passwd");
        let forged = Filter::from(serde_json::from_str::<PortableFilter>(&forged).expect("well formed"));
        let why = forged.compile(ETHERNET).expect_err("that was not read").to_string();
        assert!(why.contains("the set `@/etc/passwd` was not read"), "{why}");
    }

    #[test]
    fn what_is_wrong_is_said_where_it_is_written() {
        assert!(Filter::new("tcp prot 80").portable(&[ETHERNET]).is_err());
        assert!(Filter::new("host in @good").names(Known).portable(&[ETHERNET]).is_err());
        let (_, never) = Filter::new("tcp and udp").portable(&[ETHERNET]).expect("it is right");
        assert!(never);
    }
}
