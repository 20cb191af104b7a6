//! Work on many interfaces, several at a time: most of it is waiting for the kernel.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use weir_sys::thread::deafly;

use crate::Error;

/// How many are worked on at a time. Linux 6.18 attaches tc programs one after the other, however many threads wait; a grace
/// period that sockets or XDP programs wait for serves all that wait at the time.
const AT_ONCE: usize = 16;

/// Does `work` on `all`, on threads of its own if there are several, and returns the results in the same order. `begin` is
/// called on this thread before each, with the number of those that are done.
///
/// # Errors
///
/// The first error in the order of `all`, or that of `begin`. No more is begun then, and what was done is dropped.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    all: &[T],
    mut begin: impl FnMut(&T, usize) -> Result<(), Error>,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Error> {
    let work = &work;
    let mut done = Vec::with_capacity(all.len());
    if let [one] = all {
        begin(one, 0)?;
        done.push(work(one)?);
        return Ok(done);
    }
    thread::scope(|scope| {
        let mut begun = VecDeque::with_capacity(AT_ONCE);
        for one in all {
            if begun.len() == AT_ONCE {
                done.extend(begun.pop_front().map(finish).transpose()?);
            }
            begin(one, done.len())?;
            // Signals are for this thread: they interrupt no call of the others, such as the verifier's.
            let thread = deafly(|| thread::Builder::new().spawn_scoped(scope, move || work(one)));
            begun.push_back(match thread {
                Ok(thread) => Begun::There(thread),
                // There is no room for another thread.
                Err(_) => Begun::Here(work(one)),
            });
        }
        for one in begun {
            done.push(finish(one)?);
        }
        Ok(done)
    })
}

/// Drops `all`, several at a time.
pub(crate) fn drop_side_by_side<T: Send>(all: Vec<T>) {
    let threads = all.len().min(AT_ONCE);
    let rest = Mutex::new(all.into_iter());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || while next().is_some() {};
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a thread, this one does its share.
            let _ = deafly(|| thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
}

/// Work that has begun on another thread, or was done on this one.
enum Begun<'scope, R> {
    There(thread::ScopedJoinHandle<'scope, Result<R, Error>>),
    Here(Result<R, Error>),
}

fn finish<R>(begun: Begun<'_, R>) -> Result<R, Error> {
    match begun {
        Begun::There(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
        Begun::Here(result) => result,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn gone(number: usize) -> Error {
        Error::InterfaceGone { name: number.to_string() }
    }

    /// Counts those that are there.
    struct Counted<'a>(&'a AtomicUsize, usize);

    impl<'a> Counted<'a> {
        fn new(there: &'a AtomicUsize, number: usize) -> Self {
            there.fetch_add(1, Ordering::Relaxed);
            Self(there, number)
        }
    }

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn results_have_the_order_of_the_work_which_is_done_several_at_a_time() {
        let all: Vec<usize> = (0..3 * AT_ONCE).collect();
        // Nobody goes on before all those that may run at a time do.
        let together = Barrier::new(AT_ONCE);
        let mut told = Vec::new();
        let begin = |&one: &usize, done| {
            told.push((one, done));
            Ok(())
        };
        let results = side_by_side(&all, begin, |&one| {
            together.wait();
            Ok(one)
        });
        assert_eq!(results.unwrap(), all);
        assert_eq!(told, all.iter().map(|&one| (one, (one + 1).saturating_sub(AT_ONCE))).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_is_told_and_nothing_that_was_done_stays() {
        let (all, there, begun): (Vec<usize>, _, _) =
            ((0..40).collect(), AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |&one: &usize| match one {
            17 | 19 => Err(gone(one)),
            _ => Ok(Counted::new(&there, one)),
        };
        let begin = |_: &usize, _| {
            begun.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let error = side_by_side(&all, begin, work).map(|all| all.len()).unwrap_err();
        assert_eq!(error.to_string(), gone(17).to_string(), "19 may have failed before");
        assert_eq!(there.load(Ordering::Relaxed), 0);
        assert_eq!(begun.load(Ordering::Relaxed), 17 + AT_ONCE, "no more are begun");
    }

    #[test]
    fn all_are_dropped_several_at_a_time() {
        struct Together<'a> {
            all: &'a Barrier,
            _counted: Counted<'a>,
        }
        impl Drop for Together<'_> {
            fn drop(&mut self) {
                self.all.wait();
            }
        }
        let (there, together) = (AtomicUsize::new(0), Barrier::new(AT_ONCE));
        let new = |number| Together { all: &together, _counted: Counted::new(&there, number) };
        drop_side_by_side((0..3 * AT_ONCE).map(new).collect());
        assert_eq!(there.load(Ordering::Relaxed), 0);
        drop_side_by_side(Vec::<Together<'_>>::new());
    }

    #[test]
    fn it_ends_between_two() {
        let (all, there): (Vec<usize>, _) = ((0..40).collect(), AtomicUsize::new(0));
        let begin = |&one: &usize, _| if one == 20 { Err(gone(one)) } else { Ok(()) };
        let done = side_by_side(&all, begin, |&one| Ok(Counted::new(&there, one)));
        assert_eq!(done.map(|all| all[0].1).unwrap_err().to_string(), gone(20).to_string());
        assert_eq!(there.load(Ordering::Relaxed), 0);
    }
}
