//! A card that a network has for a while.

use std::fs;
use std::os::fd::AsFd;
use std::sync::Arc;

use weir_sys::link::{Link, Links};
use weir_sys::netns::NetNs;

use crate::Error;

/// A network card in another namespace than its own, to which it returns when this is dropped.
#[derive(Debug)]
pub(crate) struct Borrowed {
    name: String,
    home: NetNs,
    away: Arc<NetNs>,
    /// As it was.
    link: Link,
    /// The value of `disable_ipv6`, which does not survive a move; none on kernels without IPv6.
    without_ipv6: Option<String>,
}

impl Borrowed {
    /// Moves the card `name` from the caller's namespace to `away`, where it is down.
    pub(crate) fn take(name: &str, away: &Arc<NetNs>) -> Result<Self, Error> {
        let (home, links) = (NetNs::current()?, Links::open()?);
        let link = links.get(name)?;
        let without_ipv6 = fs::read_to_string(disable_ipv6(name)).ok();
        links.move_to(away.as_fd(), name)?;
        Ok(Self { name: name.to_owned(), home, away: Arc::clone(away), link, without_ipv6 })
    }

    fn give_back(&self) -> Result<(), Error> {
        let name = &self.name;
        self.away.run(Links::open)?.move_to(self.home.as_fd(), name)?;
        self.home.run(|| {
            if let Some(value) = &self.without_ipv6 {
                let path = disable_ipv6(name);
                fs::write(&path, value.trim()).map_err(Error::io(format!("write {value} to {path}")))?;
            }
            Ok(Links::open()?.set_up(name, self.link.is_up(), self.link.resolves())?)
        })
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // Where it cannot return, because it is gone or its name is taken, the kernel takes care of it.
        let _gone = self.give_back();
    }
}

fn disable_ipv6(name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
}
