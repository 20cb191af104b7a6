//! Finds the interfaces to capture on.

use std::ops::RangeInclusive;
use std::path::Path;

use weir::filter::FileFilter;
use weir::guard::GuardBuilder;
use weir::link::{self, Link};
use weir::parts::split_name;
use weir::statistics::StatisticsBuilder;
use weir::{Builder, Capture, Change, Error, Event, Filter, Guard, Namespace, Statistics};

use crate::failure::Failure;
use crate::live::Live;
use crate::{alike, out, spelling, style, typed};

/// An interface to capture on, and its namespace; `None`: the current one.
#[derive(Debug)]
pub(crate) struct Chosen {
    namespace: Option<Namespace>,
    name: String,
    /// `None`: all receive queues.
    queues: Option<RangeInclusive<u32>>,
}

impl Chosen {
    /// Finds the interface `name` in `namespace`. The name may end with the queues to capture on, as in `eth0@0-3`, unless
    /// there is an interface called exactly so.
    fn find(namespace: Option<Namespace>, name: &str) -> Result<Self, Failure> {
        if let Some((short, queues)) = split_name(name)
            && links(namespace.as_ref())?.iter().all(|link| link.name != name)
        {
            return Ok(Self { namespace, name: short.to_owned(), queues: Some(queues) });
        }
        Ok(Self { namespace, name: name.to_owned(), queues: None })
    }

    /// Returns its namespace; `None`: the current one.
    pub(crate) fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }

    /// Returns its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `look` in its namespace.
    pub(crate) fn inside<R: Send>(&self, look: impl FnOnce() -> R + Send) -> Result<R, Failure> {
        match &self.namespace {
            Some(namespace) => Ok(namespace.inside(look)?),
            None => Ok(look()),
        }
    }

    /// Returns a builder for statistics of the interface.
    pub(crate) fn statistics(&self) -> StatisticsBuilder {
        let builder = Statistics::on(&self.name).namespace(self.namespace.as_ref());
        match &self.queues {
            Some(queues) => builder.queues(queues.clone()),
            None => builder,
        }
    }

    /// Returns a builder for a guard of the interface.
    pub(crate) fn guard(&self) -> Result<GuardBuilder, Failure> {
        match &self.queues {
            None => Ok(Guard::on(&self.name).namespace(self.namespace.as_ref())),
            Some(_) => Err(Failure::usage(
                "cannot guard some receive queues: rules are for all packets of an interface",
            )
            .hint(format!("-i {} guards all of them", self.name))),
        }
    }

    /// Adds the interface to a capture.
    pub(crate) fn add_to(&self, builder: Builder) -> Builder {
        let builder = match &self.namespace {
            Some(namespace) => builder.interface_in(namespace, &self.name),
            None => builder.interface(&self.name),
        };
        match &self.queues {
            Some(queues) => builder.queues(queues.clone()),
            None => builder,
        }
    }
}

/// Returns the interfaces with these `names`, in each of the namespaces that are `named`. If there are no names, chooses
/// defaults and prints them.
pub(crate) fn chosen(names: &[String], named: &[String]) -> Result<Vec<Chosen>, Failure> {
    let namespaces = namespaces(named)?;
    let mut chosen = Vec::new();
    if names.is_empty() {
        for namespace in namespaces {
            let name = first_up(namespace.as_ref())?;
            chosen.push(Chosen { namespace, name, queues: None });
        }
        return Ok(chosen);
    }
    for name in split(names, &namespaces)? {
        // An interface name has no slash.
        if let Some((namespace, name)) = name.rsplit_once('/') {
            chosen.push(Chosen::find(Some(Namespace::find(namespace)?), name)?);
            continue;
        }
        if let Some(listed) = numbered(name, &namespaces)? {
            chosen.push(listed);
            continue;
        }
        for namespace in &namespaces {
            chosen.push(Chosen::find(namespace.clone(), name)?);
        }
    }
    Ok(chosen)
}

/// Splits `a,b` into two names, unless an interface has this name in one of the namespaces.
fn split<'a>(names: &'a [String], namespaces: &[Option<Namespace>]) -> Result<Vec<&'a str>, Failure> {
    let mut all = Vec::new();
    for name in names {
        if name.contains(',') && !is_one(name, namespaces)? {
            all.extend(name.split(',').filter(|name| !name.is_empty()));
        } else {
            all.push(name.as_str());
        }
    }
    Ok(all)
}

fn is_one(name: &str, namespaces: &[Option<Namespace>]) -> Result<bool, Failure> {
    let has = |namespace: Option<&Namespace>, name: &str| {
        links(namespace).map(|links| links.iter().any(|link| link.name == name))
    };
    if let Some((namespace, name)) = name.rsplit_once('/') {
        // In `one/eth0,two/eth0`, what is before the last slash is no namespace.
        return Namespace::find(namespace).map_or(Ok(false), |namespace| has(Some(&namespace), name));
    }
    for namespace in namespaces {
        if has(namespace.as_ref(), name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Splits the namespace, if there is one, from the name of an interface.
pub(crate) fn place(name: &str) -> Result<(Option<Namespace>, String), Failure> {
    Ok(match name.rsplit_once('/') {
        Some((namespace, name)) => (Some(Namespace::find(namespace)?), name.to_owned()),
        None => (None, name.to_owned()),
    })
}

/// Returns the two names in `a,b`, unless an interface has this name. They are separate words for `weir forward`.
pub(crate) fn two(name: &str) -> Result<Option<(&str, &str)>, Failure> {
    let two = name.split_once(',').filter(|(one, other)| !one.is_empty() && !other.is_empty());
    Ok(if two.is_some() && is_one(name, &[None])? { None } else { two })
}

/// Returns the names of interfaces in this namespace, of which some may have been given as `a,b`.
pub(crate) fn separate<'a>(
    names: &'a [String],
    namespace: Option<&Namespace>,
) -> Result<Vec<&'a str>, Failure> {
    split(names, &[namespace.cloned()])
}

/// Returns the namespaces from `--netns`, or the current one.
fn namespaces(named: &[String]) -> Result<Vec<Option<Namespace>>, Failure> {
    if named.is_empty() {
        return Ok(vec![None]);
    }
    named.iter().map(|name| Ok(Some(Namespace::find(name)?))).collect()
}

/// Returns the first interface that is up and is not loopback.
fn first_up(namespace: Option<&Namespace>) -> Result<String, Failure> {
    let links = links(namespace)?;
    let place = namespace.map(|namespace| format!(" in {}", namespace.name())).unwrap_or_default();
    let Some(first) = links.iter().find(|link| link.is_up() && !link.is_loopback()) else {
        let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).collect();
        let hint = format!("name one with -i, or bring one up; available{place}: {}", names.join(", "));
        let what = format!("no interface{place} is up, except loopback");
        return Err(Failure::new(what).hint(hint));
    };
    style::say(format_args!("no -i given: using {}, the first interface{place} that is up", first.name));
    Ok(first.name.clone())
}

/// Fails if `filter`, which is only this word, is no filter but a file, or an interface or nearly one.
pub(crate) fn no_filter(word: &str, filter: &Filter, named: &[String]) -> Result<(), Failure> {
    let Err(error) = FileFilter::new(filter.clone()) else { return Ok(()) };
    if Path::new(word).is_file() {
        let hint =
            format!("{word} is a file: read it with weir read, weir flows -r, weir stat -r or weir top -r");
        return Err(Failure::from(Error::Filter(error)).hint(hint));
    }
    let (name, queues) = match word.split_once('@') {
        Some((name, queues)) => (name, format!("@{queues}")),
        None => (word, String::new()),
    };
    for namespace in namespaces(named)? {
        let links = links(namespace.as_ref())?;
        let is_it = |link: &&Link| link.name == name;
        let almost = |link: &&Link| spelling::is_close(name, &link.name);
        if let Some(link) = links.iter().find(is_it).or_else(|| links.iter().find(almost)) {
            let meant = format!("{}{queues}", link.name);
            let again = typed::with_words(word, &["-i", &meant]);
            let hint = format!("if the interface {} is meant: {again}", link.name);
            return Err(Failure::from(Error::Filter(error)).hint(hint));
        }
    }
    Ok(())
}

/// Prints events on the interfaces of `capture` since the last call. Returns whether there were any.
pub(crate) fn tell_events(capture: &mut Capture, live: Option<&Live>) -> bool {
    let events = capture.events();
    if let Some(live) = live.filter(|_| !events.is_empty()) {
        live.clear();
    }
    for same in events.chunk_by(|one, other| one.change == other.change) {
        let notice = |text: &str| style::say(format_args!("{}: {text}", style::stderr().yellow("notice")));
        match of_many(same) {
            Some(text) => notice(&text),
            None => same.iter().for_each(|event| notice(&event.to_string())),
        }
    }
    !events.is_empty()
}

/// Tells the same event of many interfaces.
fn of_many(events: &[Event]) -> Option<String> {
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    let what = match events.first()?.change {
        Change::Down => "are down: nothing arrives until they are up",
        Change::Up => "are up again",
        Change::NoCarrier => "have no carrier: nothing arrives until their cables are connected",
        Change::Carrier => "have carrier again",
        Change::Gone => "are gone; captured packets are kept",
        _ => return None,
    };
    Some(format!("{} {what}", alike::listed(&names)?))
}

/// Returns the interface with this number in the [list], unless an interface has that name.
fn numbered(name: &str, namespaces: &[Option<Namespace>]) -> Result<Option<Chosen>, Failure> {
    let Some(number) = name.parse::<usize>().ok().filter(|number| *number > 0) else { return Ok(None) };
    let mut listed = listed(namespaces)?;
    if listed.iter().any(|(chosen, _)| chosen.name == name) || number > listed.len() {
        return Ok(None);
    }
    Ok(Some(listed.swap_remove(number - 1).0))
}

/// Returns all interfaces of these namespaces, with descriptions.
fn listed(namespaces: &[Option<Namespace>]) -> Result<Vec<(Chosen, String)>, Failure> {
    let mut listed = Vec::new();
    for namespace in namespaces {
        let chosen =
            |name: &str| Chosen { namespace: namespace.clone(), name: name.to_owned(), queues: None };
        for link in links(namespace.as_ref())? {
            listed.push((chosen(&link.name), format!("[{}]", describe(&link))));
        }
        listed.push((chosen("any"), "(all interfaces together, including later ones)".to_owned()));
    }
    Ok(listed)
}

/// Prints all interfaces in the format of `tcpdump -D`.
pub(crate) fn list(named: &[String]) -> Result<(), Failure> {
    let line = |(Chosen { namespace, name, .. }, about): (Chosen, String)| {
        let prefix = namespace.map(|namespace| format!("{}/", namespace.name())).unwrap_or_default();
        format!("{prefix}{name} {about}")
    };
    let lines = (1..).zip(listed(&namespaces(named)?)?.into_iter().map(line));
    let text: String = lines.map(|(number, line)| format!("{number}.{}\n", style::visible(&line))).collect();
    out::print(text.as_bytes())
}

fn describe(link: &Link) -> String {
    let mut words = vec![if link.is_up() { "Up" } else { "Down" }.to_owned()];
    if link.is_loopback() {
        words.push("Loopback".to_owned());
    }
    if link.is_up() && !link.has_carrier() {
        words.push("No carrier".to_owned());
    }
    words.push(format!("MTU {}", link.mtu));
    if link.rx_queues > 1 {
        words.push(format!("{} receive queues", link.rx_queues));
    }
    if let Some(program) = link.xdp_program {
        words.push(format!("XDP program {program}"));
    }
    words.join(", ")
}

pub(crate) fn links(namespace: Option<&Namespace>) -> Result<Vec<Link>, Failure> {
    match namespace {
        Some(namespace) => Ok(namespace.links()?),
        None => link::links().map_err(|error| Failure::new(format_args!("cannot list interfaces: {error}"))),
    }
}
