//! Which interface something is pinned for: its name, if that can be seen from here.

use weir_sys::link::{Link, links};
use weir_sys::netns;

use super::Key;
use crate::live::namespace;
use crate::live::namespace::context::inside;
use crate::live::request::Wanted;
use crate::{Error, Namespace};

/// An interface for which something is pinned.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) key: Key,
    pub(crate) label: String,
    pub(crate) found: Found,
}

/// Whether an interface was found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// In this namespace; `None`: that of the calling thread.
    #[cfg_attr(not(feature = "forward"), expect(dead_code, reason = "only forwarding asks where"))]
    There(Option<Namespace>),
    Gone,
    /// In a namespace that has no name or may not be entered.
    Elsewhere,
}

/// A namespace and its interfaces, used to name those of what is pinned.
pub(crate) struct Scope {
    namespace: Option<Namespace>,
    cookie: u64,
    links: Vec<Link>,
}

impl Named {
    /// Names an interface that is in one of these namespaces, or says why that has none.
    pub(crate) fn find(key: Key, contexts: &[Scope]) -> Self {
        let context = contexts.iter().find(|context| context.cookie == key.namespace);
        let link = context.and_then(|context| context.links.iter().find(|link| link.index == key.index));
        let (label, found) = match (context, link) {
            (Some(context), Some(link)) => {
                let namespace = context.namespace.as_ref().map(|one| format!("{}/", one.name()));
                let label = format!("{}{}", namespace.unwrap_or_default(), link.name);
                (label, Found::There(context.namespace.clone()))
            }
            (Some(_), None) => (format!("interface {}, which is gone", key.index), Found::Gone),
            (None, _) => (format!("interface {} in another namespace", key.index), Found::Elsewhere),
        };
        Self { key, label, found }
    }
}

impl Scope {
    /// Returns the namespace of the calling thread, and all named ones that may be entered.
    pub(crate) fn all() -> Result<Vec<Self>, Error> {
        let mut contexts = vec![Self::look(None)?];
        let named = namespace::names().into_iter().filter_map(|name| Namespace::find(&name).ok());
        contexts.extend(named.filter_map(|namespace| Self::look(Some(namespace)).ok()));
        Ok(contexts)
    }

    fn look(namespace: Option<Namespace>) -> Result<Self, Error> {
        let (cookie, links) = inside(namespace.as_ref(), || (netns::cookie(), links()))?;
        Ok(Self { namespace, cookie: cookie?, links: links? })
    }
}

/// Returns what identifies an interface, which is there.
pub(crate) fn key(wanted: &Wanted) -> Result<Key, Error> {
    let context = Scope::look(wanted.namespace.clone())?;
    let index = context.links.into_iter().find(|link| link.name == wanted.name).map(|link| link.index);
    let gone = || Error::NoSuchEndpoint { name: wanted.label() };
    Ok(Key { namespace: context.cookie, index: index.ok_or_else(gone)? })
}
