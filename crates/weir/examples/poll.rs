//! Counts the packets of several interfaces in one thread with poll(2), and prints the counts when they are quiet for a
//! second: `cargo run --release --example poll eth0 eth1`. Ends at the end of standard input.
#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;
use std::io::{Read, stdin};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use weir::{Capture, Next};

fn main() -> Result<(), Box<dyn Error>> {
    let open = |interface| Capture::builder().interface(interface).open();
    let mut captures = std::env::args().skip(1).map(open).collect::<Result<Vec<_>, _>>()?;
    let mut packets = vec![0; captures.len()];
    let second = Timespec { tv_sec: 1, tv_nsec: 0 };
    loop {
        let mut ready: Vec<PollFd<'_>> = captures.iter().map(|one| PollFd::new(one, PollFlags::IN)).collect();
        let stdin_fd = stdin();
        ready.push(PollFd::new(&stdin_fd, PollFlags::IN));
        let quiet = poll(&mut ready, Some(&second))? == 0;
        let ready: Vec<bool> = ready.iter().map(|fd| !fd.revents().is_empty()).collect();

        for (number, capture) in captures.iter_mut().enumerate().filter(|&(number, _)| ready[number]) {
            while let Next::Taken(chunk) = capture.try_next()? {
                packets[number] += chunk.len();
            }
            capture.events().iter().for_each(|event| println!("{event}"));
        }
        if quiet {
            println!("{packets:?}");
        }
        if ready[captures.len()] && stdin().read(&mut [0; 64])? == 0 {
            break;
        }
    }
    for capture in &mut captures {
        capture.stop()?;
        println!("{:?}", capture.stats()?.total());
    }
    Ok(())
}
