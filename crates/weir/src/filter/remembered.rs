//! Names that are looked up only once, so that a filter compiled again has the same meaning, even if the system can no
//! longer be queried.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use weir_filter::names::{Names, Service};

/// Repeats the first answers of `names`.
#[derive(Debug)]
pub(crate) struct Remembered {
    names: Arc<dyn Names + Send + Sync>,
    answers: Mutex<Answers>,
}

/// Names and the answers for them.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Answers {
    hosts: HashMap<String, Vec<IpAddr>>,
    networks: HashMap<String, Option<u32>>,
    ethernets: HashMap<String, Option<[u8; 6]>>,
    services: HashMap<String, Ports>,
    protocols: HashMap<String, Option<u8>>,
    sets: HashMap<String, Result<String, String>>,
}

/// A [`Service`]: its ports over TCP, UDP and SCTP.
type Ports = [Option<u16>; 3];

fn ports(Service { tcp, udp, sctp }: Service) -> Ports {
    [tcp, udp, sctp]
}

fn service([tcp, udp, sctp]: Ports) -> Service {
    Service { tcp, udp, sctp }
}

impl Remembered {
    pub(crate) fn new(names: Arc<dyn Names + Send + Sync>) -> Self {
        Self { names, answers: Mutex::default() }
    }

    /// Returns the answers so far.
    pub(crate) fn answers(&self) -> Answers {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn ask<T: Clone>(
        &self,
        name: &str,
        table: impl FnOnce(&mut Answers) -> &mut HashMap<String, T>,
        look_up: impl FnOnce(&str) -> T,
    ) -> T {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        table(&mut answers).entry(name.to_owned()).or_insert_with(|| look_up(name)).clone()
    }
}

impl Names for Remembered {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        self.ask(name, |answers| &mut answers.hosts, |name| self.names.host(name))
    }

    fn network(&self, name: &str) -> Option<u32> {
        self.ask(name, |answers| &mut answers.networks, |name| self.names.network(name))
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        self.ask(name, |answers| &mut answers.ethernets, |name| self.names.ethernet(name))
    }

    fn service(&self, name: &str) -> Service {
        service(self.ask(name, |answers| &mut answers.services, |name| ports(self.names.service(name))))
    }

    fn services(&self) -> Vec<String> {
        self.names.services()
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        self.ask(name, |answers| &mut answers.protocols, |name| self.names.protocol(name))
    }

    fn set(&self, name: &str) -> Result<String, String> {
        self.ask(name, |answers| &mut answers.sets, |name| self.names.set(name))
    }
}

/// All other names are unknown.
impl Names for Answers {
    fn host(&self, name: &str) -> Vec<IpAddr> {
        self.hosts.get(name).cloned().unwrap_or_default()
    }

    fn network(&self, name: &str) -> Option<u32> {
        self.networks.get(name).copied().flatten()
    }

    fn ethernet(&self, name: &str) -> Option<[u8; 6]> {
        self.ethernets.get(name).copied().flatten()
    }

    fn service(&self, name: &str) -> Service {
        self.services.get(name).copied().map_or_else(Service::default, service)
    }

    fn protocol(&self, name: &str) -> Option<u8> {
        self.protocols.get(name).copied().flatten()
    }

    fn set(&self, name: &str) -> Result<String, String> {
        self.sets.get(name).cloned().unwrap_or_else(|| Err(format!("the set `@{name}` was not read")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU16, Ordering};

    use super::*;

    /// Gives a different answer each time.
    #[derive(Debug, Default)]
    struct Moody(AtomicU16);

    impl Names for Moody {
        fn host(&self, _: &str) -> Vec<IpAddr> {
            vec![IpAddr::from([10, 0, 0, self.0.fetch_add(1, Ordering::Relaxed).to_be_bytes()[1]])]
        }

        fn service(&self, _: &str) -> Service {
            Service { tcp: Some(self.0.fetch_add(1, Ordering::Relaxed)), ..Service::default() }
        }

        fn set(&self, _: &str) -> Result<String, String> {
            Ok(self.0.fetch_add(1, Ordering::Relaxed).to_string())
        }
    }

    #[test]
    fn the_first_answer_stays() {
        let names = Remembered::new(Arc::new(Moody::default()));
        assert_eq!(names.host("a"), names.host("a"));
        assert_ne!(names.host("a"), names.host("b"));
        assert_eq!(names.service("a"), names.service("a"));
        assert_eq!(names.set("a"), names.set("a"));
        assert_eq!(names.network("a"), None);
    }
}
