//! Counts the packets of an interface, confined and open to requests: `served eth0 /run/weir/served.sock 1000`, then
//! `weir ctl status --target /run/weir/served.sock`. An empty line says that it is ready.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]
#![allow(clippy::print_stderr, reason = "it is what the program is for")]

use std::error::Error;
use std::time::{Duration, Instant};

use weir::Capture;
use weir_service::confine::Confinement;
use weir_service::control::{Change, Socket};
use weir_service::session::{Identity, Policy, Prepared, Settings};
use weir_service::summary::Summary;
use weir_service::{Budget, Stop};

/// What is done with packets: counting them.
struct Counting {
    capture: Capture,
    confinement: Option<Confinement>,
    budget: Budget,
    packets: u64,
}

impl Policy for Counting {
    type Summary = Summary;
    type Error = Box<dyn Error>;

    fn summary(&mut self) -> Result<Summary, Self::Error> {
        let mut summary = Summary::new(self.capture.interfaces(), &self.capture.stats()?, None);
        summary.confinement.clone_from(&self.confinement);
        Ok(summary)
    }

    fn report(&mut self) -> Result<(), Self::Error> {
        println!("{} packets so far", self.packets);
        Ok(())
    }

    fn changed(&mut self, changes: Vec<Change>) -> Result<(), Self::Error> {
        changes.iter().for_each(|change| println!("{change}"));
        Ok(())
    }

    fn tick(&mut self, _now: Instant) -> Result<Option<Stop>, Self::Error> {
        Ok(None)
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn receive(&mut self, longest: Duration) -> Result<(), Self::Error> {
        if let Some(chunk) = self.capture.next(longest)?.taken() {
            self.packets += self.budget.take(chunk.len()) as u64;
        }
        Ok(())
    }

    fn finish(
        mut self,
        end: Result<Stop, Self::Error>,
        _changes: impl FnOnce() -> Vec<Change>,
    ) -> Result<(), Self::Error> {
        self.capture.stop()?;
        println!("{} packets, stopped by {:?}", self.packets, end?);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [interface, socket, packets] = words.as_slice() else {
        return Err("usage: served INTERFACE SOCKET PACKETS".into());
    };
    let settings = Settings {
        command: "served",
        packets: Some(packets.parse()?),
        duration: None,
        confine: true,
        identity: Identity::Other(None),
        ready: Some(1),
        metrics: None,
        control: Some(Socket { path: Some(socket.into()), group: None }),
        names: false,
        reloads: false,
        warn: |warning| eprintln!("warning: {warning}"),
    };
    let prepared = Prepared::new(settings, None)?;
    let (capture, opened) = prepared.open(|_| -> Result<_, Box<dyn Error>> {
        Ok(Capture::builder().interface(interface.as_str()).open()?)
    })?;
    let (confinement, budget) = (opened.confinement().cloned(), opened.budget());
    opened.serve(Counting { capture, confinement, budget, packets: 0 })?.run()
}
