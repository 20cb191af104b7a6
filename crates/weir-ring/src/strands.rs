//! Strands: parallel work that stays in order where it must.
//!
//! Work comes in pieces, and each place in a piece belongs to a strand. The places of one strand are done in order, by
//! one worker at a time; places of different strands are done in parallel, by any workers. A worker owns a strand only
//! while it does the work it took. An idle worker takes places from the oldest piece that has a free strand. Workers
//! are therefore idle only if all waiting work depends on work in progress, however different their speeds.

use std::collections::VecDeque;
use std::sync::PoisonError;

use crate::sync::{Arc, Mutex, MutexGuard};

/// Number of strands: as many as a `u8` can distinguish.
const STRANDS: usize = 256;

/// A distributor of work in strands. Clones share their state.
#[derive(Debug)]
pub struct Strands<T>(Arc<Mutex<State<T>>>);

impl<T> Clone for Strands<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct State<T> {
    /// Pieces with waiting work, the oldest first.
    pieces: VecDeque<Piece<T>>,
    /// Strands that are in progress.
    in_hand: Set,
    /// Leases for work that was never laid out.
    apart: usize,
    /// By strand: the worker that had it last.
    last: Box<[usize; STRANDS]>,
}

/// A unit of work to lay out.
#[derive(Debug)]
pub struct Piece<T> {
    what: T,
    /// `None`: the piece is not divided.
    parts: Option<Parts>,
}

#[derive(Debug)]
struct Parts {
    /// All places, grouped by strand, in order within each strand.
    places: Box<[u32]>,
    /// By strand: where its places end in `places`. They begin where those of the previous strand end.
    ends: Box<[u32; STRANDS]>,
    /// Strands with waiting places.
    waiting: Set,
}

/// Work taken by a worker.
#[derive(Debug)]
pub struct Taken<T> {
    /// The piece.
    pub what: T,
    /// The places to do, ascending; `None`: all of an undivided piece.
    pub places: Option<Vec<u32>>,
    /// Until this is dropped, no other worker gets work that must come later.
    pub lease: Lease<T>,
}

/// A mark that work is in progress, until dropped.
#[derive(Debug)]
pub struct Lease<T> {
    strands: Strands<T>,
    of: Leased,
}

#[derive(Clone, Copy, Debug)]
enum Leased {
    /// Work that was never laid out.
    Apart,
    Strands(Set),
}

impl<T> Piece<T> {
    /// Creates a piece from places, in order, each with its strand.
    pub fn new(what: T, strand_of: &[(u32, u8)]) -> Self {
        let (mut ends, mut waiting) = (Box::new([0; STRANDS]), Set::default());
        for &(_, strand) in strand_of {
            ends[usize::from(strand)] += 1;
            waiting.0[usize::from(strand) / 64] |= 1 << (strand % 64);
        }
        let mut begin = 0;
        for end in ends.iter_mut() {
            (*end, begin) = (begin, begin + *end);
        }
        let mut places = vec![0; strand_of.len()].into_boxed_slice();
        for &(place, strand) in strand_of {
            let next = &mut ends[usize::from(strand)];
            places[*next as usize] = place;
            *next += 1;
        }
        Self { what, parts: Some(Parts { places, ends, waiting }) }
    }

    /// Creates an undivided piece: one worker does it, after all earlier work and before all later work.
    pub fn whole(what: T) -> Self {
        Self { what, parts: None }
    }
}

impl Parts {
    fn of(&self, strand: usize) -> &[u32] {
        let begin = strand.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[begin as usize..self.ends[strand] as usize]
    }
}

impl<T> Strands<T> {
    /// Creates a distributor without any work.
    pub fn new() -> Self {
        let (pieces, last) = (VecDeque::new(), Box::new([usize::MAX; STRANDS]));
        Self(Arc::new(Mutex::new(State { pieces, in_hand: Set::NONE, apart: 0, last })))
    }

    /// Returns a lease for work that is not laid out; work laid out later comes after it. Several such leases may exist
    /// at a time. `None`: some of the work laid out is not done yet.
    pub fn lease(&self) -> Option<Lease<T>> {
        let mut state = self.state();
        state.is_done().then(|| {
            state.apart += 1;
            Lease { strands: self.clone(), of: Leased::Apart }
        })
    }

    /// Lays out a piece, after all earlier ones.
    pub fn lay_out(&self, piece: Piece<T>) {
        // An empty piece would wait forever.
        if piece.parts.as_ref().is_none_or(|parts| !parts.places.is_empty()) {
            self.state().pieces.push_back(piece);
        }
    }

    /// Returns the number of pieces with waiting work.
    pub fn waiting(&self) -> usize {
        self.state().pieces.len()
    }

    /// Returns whether all work laid out is done.
    pub fn is_done(&self) -> bool {
        self.state().is_done()
    }

    /// Takes back all waiting work. Returns each piece with the number of its waiting places, or `None` if it is
    /// undivided.
    pub fn clear(&self) -> Vec<(T, Option<usize>)> {
        let pieces = std::mem::take(&mut self.state().pieces);
        let waiting = |parts: Parts| parts.waiting.iter().map(|strand| parts.of(strand).len()).sum();
        pieces.into_iter().map(|piece| (piece.what, piece.parts.map(waiting))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        // A thread that panics has changed either nothing or everything.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone> Strands<T> {
    /// Gives `who` about one of `parts` parts of a piece, preferably strands that it had last. `None`: all waiting work
    /// must come after work in progress.
    pub fn take(&self, who: usize, parts: usize) -> Option<Taken<T>> {
        let mut state = self.state();
        let (what, places, held) = state.take(who, parts)?;
        drop(state);
        let places = places.map(|mut places| {
            places.sort_unstable();
            places
        });
        Some(Taken { what, places, lease: Lease { strands: self.clone(), of: Leased::Strands(held) } })
    }
}

impl<T> Default for Strands<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> State<T> {
    fn is_done(&self) -> bool {
        self.pieces.is_empty() && self.in_hand.is_empty()
    }
}

impl<T: Clone> State<T> {
    fn take(&mut self, who: usize, parts: usize) -> Option<(T, Option<Vec<u32>>, Set)> {
        if self.apart > 0 {
            return None;
        }
        let in_hand = self.in_hand;
        let free = |piece: &Piece<T>| piece.parts.as_ref().map(|parts| parts.waiting.without(in_hand));
        // The first piece with a free strand has that strand's first places. No work is given past an undivided piece.
        let at = self.pieces.iter().position(|piece| free(piece).is_none_or(|free| !free.is_empty()))?;
        let piece = &mut self.pieces[at];
        let Some(free) = free(piece) else {
            if !in_hand.is_empty() {
                return None;
            }
            self.in_hand = Set::ALL;
            let piece = self.pieces.pop_front()?;
            return Some((piece.what, None, Set::ALL));
        };
        let given = piece.parts.as_mut()?;
        let most = given.places.len().div_ceil(parts.max(1));
        let (mut places, mut held) = (Vec::with_capacity(most), Set::NONE);
        for again in [true, false] {
            for strand in free.iter().filter(|&strand| (self.last[strand] == who) == again) {
                if places.len() < most {
                    places.extend_from_slice(given.of(strand));
                    held.insert(strand);
                }
            }
        }
        held.iter().for_each(|strand| self.last[strand] = who);
        given.waiting = given.waiting.without(held);
        self.in_hand = in_hand.with(held);
        let what = match given.waiting.is_empty() {
            true => self.pieces.remove(at)?.what,
            false => piece.what.clone(),
        };
        Some((what, Some(places), held))
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        let mut state = self.strands.state();
        match self.of {
            Leased::Apart => state.apart -= 1,
            Leased::Strands(held) => state.in_hand = state.in_hand.without(held),
        }
    }
}

/// A set of strands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Set([u64; STRANDS / 64]);

impl Set {
    const NONE: Self = Self([0; STRANDS / 64]);
    const ALL: Self = Self([u64::MAX; STRANDS / 64]);

    fn insert(&mut self, strand: usize) {
        self.0[strand / 64] |= 1 << (strand % 64);
    }

    fn with(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn without(self, other: Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & !other.0[word]))
    }

    fn is_empty(self) -> bool {
        self == Self::NONE
    }

    /// Iterates over the strands in ascending order.
    fn iter(self) -> impl Iterator<Item = usize> {
        (0..).zip(self.0).flat_map(|(word, mut bits)| {
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// Makes a piece of places 0 to `places`, spread over the strands.
    fn piece(what: u32, places: u32, strands: u32) -> Piece<u32> {
        let strand = |place: u32| u8::try_from(place * 7 % strands).expect("few strands");
        Piece::new(what, &(0..places).map(|place| (place, strand(place))).collect::<Vec<_>>())
    }

    #[test]
    fn each_place_is_given_once_and_in_its_order() {
        let strands = Strands::new();
        strands.lay_out(piece(0, 100, 10));
        let taken = strands.take(0, 2).expect("all waits");
        assert_eq!(taken.places.as_ref().map(Vec::len), Some(50));
        assert!(taken.places.as_ref().is_some_and(|places| places.is_sorted()));
        strands.lay_out(piece(1, 100, 10));
        let rest = strands.take(1, 1).expect("the other half waits");
        assert_eq!((rest.what, rest.places.as_ref().map(Vec::len)), (0, Some(50)));
        assert!(strands.take(2, 1).is_none(), "of the second all has to wait");
        let had = taken.places.clone();
        drop(taken);
        let again = strands.take(0, 1).expect("half may be done");
        assert_eq!((again.what, &again.places), (1, &had), "the strands that came back");
        drop((rest, again));
        assert_eq!(strands.clear(), [(1, Some(50))]);
        assert!(strands.is_done());
    }

    #[test]
    fn what_is_whole_is_alone() {
        let strands = Strands::new();
        let apart = strands.lease().expect("nothing is laid out");
        let beside = strands.lease().expect("nothing is laid out");
        strands.lay_out(piece(0, 10, 10));
        strands.lay_out(Piece::whole(1));
        strands.lay_out(piece(2, 10, 20));
        strands.lay_out(piece(3, 0, 1));
        assert!(strands.lease().is_none());
        drop(apart);
        assert!(strands.take(0, 1).is_none());
        drop(beside);
        let first = strands.take(0, 1).expect("all of the first");
        assert!(strands.take(1, 1).is_none(), "strands behind what is whole wait too");
        drop(first);
        let whole = strands.take(1, 1).expect("what is whole");
        assert_eq!((whole.what, &whole.places), (1, &None));
        assert!(strands.take(0, 1).is_none());
        drop(whole);
        assert_eq!(strands.take(0, 1).map(|taken| taken.what), Some(2));
        assert!(strands.is_done());
    }

    #[test]
    fn a_worker_gets_the_strands_that_it_had_before() {
        let strands = Strands::new();
        strands.lay_out(piece(0, 4, 4));
        let all = [0, 1].map(|who| strands.take(who, 2).expect("half of it waits"));
        let had = all.map(|taken| taken.places.expect("it is divided"));
        strands.lay_out(piece(1, 4, 4));
        let all = [1, 0].map(|who| strands.take(who, 2).expect("half of it waits"));
        assert_eq!(all.map(|taken| taken.places.expect("it is divided")), [had[1].clone(), had[0].clone()]);
        strands.lay_out(piece(2, 4, 4));
        let taken = strands.take(0, 0).expect("all of it waits");
        assert_eq!(taken.places, Some(vec![0, 1, 2, 3]), "no part is less than all");
    }

    #[test]
    fn hands_of_unlike_speeds_are_idle_only_at_the_end() {
        // Time per place, by worker; and when each finishes its current work.
        const TIMES: [u64; 3] = [10, 17, 40];
        const PIECES: u32 = 50;
        let strands = Strands::new();
        (0..PIECES).for_each(|what| strands.lay_out(piece(what, 360, 64)));
        let mut hands: Vec<(u64, Option<Taken<u32>>)> = TIMES.iter().map(|_| (0, None)).collect();
        let mut done = [0_usize; TIMES.len()];
        while !strands.is_done() {
            let (who, _) = hands.iter().enumerate().min_by_key(|(_, (at, _))| *at).expect("three hands");
            let now = hands[who].0;
            hands[who].1 = None;
            hands[who].1 = strands.take(who, 4 * TIMES.len());
            let places = hands[who].1.as_ref().and_then(|taken| taken.places.as_ref()).map_or(0, Vec::len);
            done[who] += places;
            hands[who].0 = now + (places as u64 * TIMES[who]).max(1);
        }
        assert_eq!(done.iter().sum::<usize>(), 360 * PIECES as usize);
        let ends: Vec<u64> = hands.iter().map(|(at, _)| *at).collect();
        let ideal =
            done.iter().sum::<usize>() as f64 / TIMES.iter().map(|&time| 1.0 / time as f64).sum::<f64>();
        let longest = *ends.iter().max().expect("three hands") as f64;
        assert!(longest < ideal * 1.03, "{longest} instead of {ideal}: {done:?}");
    }
}
