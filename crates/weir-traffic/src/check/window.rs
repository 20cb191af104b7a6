//! Which sequences of a stream have arrived: the last 2^20.

/// As many sequences are remembered, up to the highest one that arrived.
pub const WINDOW: u64 = 1 << 20;

const WORDS: usize = 1 << 14;

/// A bit for each sequence, at the sequence modulo [`WINDOW`]. It takes 256 KiB.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Of which a frame has arrived.
    arrived: Box<[u64]>,
    /// Of which an intact frame has arrived.
    intact: Box<[u64]>,
    highest: Option<u64>,
}

/// Where the sequence of a frame is among those that arrived before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// It is the first frame of this sequence.
    pub(super) first: bool,
    /// No intact frame of this sequence arrived before.
    pub(super) first_intact: bool,
    /// The highest sequence before it is as much higher.
    pub(super) behind: u64,
}

impl Window {
    pub(super) fn new() -> Self {
        let none = || vec![0; WORDS].into_boxed_slice();
        Self { arrived: none(), intact: none(), highest: None }
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// Adds a frame. `None`: its sequence is too old to be remembered.
    pub(super) fn add(&mut self, sequence: u64, intact: bool) -> Option<Arrival> {
        let highest = *self.highest.get_or_insert(sequence);
        let behind = highest.saturating_sub(sequence);
        if behind >= WINDOW {
            return None;
        }
        if sequence > highest {
            self.forget(highest + 1, sequence);
            self.highest = Some(sequence);
        }
        let (word, bit) = place(sequence);
        let arrival = Arrival {
            first: self.arrived[word] & bit == 0,
            first_intact: self.intact[word] & bit == 0,
            behind,
        };
        self.arrived[word] |= bit;
        self.intact[word] |= if intact { bit } else { 0 };
        Some(arrival)
    }

    /// Makes room for the sequences from `first` to `last`.
    fn forget(&mut self, first: u64, last: u64) {
        if last - first >= WINDOW {
            self.arrived.fill(0);
            self.intact.fill(0);
            return;
        }
        let mut sequence = first;
        while sequence <= last {
            let (word, bit) = place(sequence);
            let whole = bit == 1 && last - sequence >= 64;
            let kept = if whole { 0 } else { !bit };
            self.arrived[word] &= kept;
            self.intact[word] &= kept;
            sequence += if whole { 64 } else { 1 };
        }
    }
}

fn place(sequence: u64) -> (usize, u64) {
    let word = usize::try_from(sequence % WINDOW / 64).expect("less than WORDS");
    (word, 1 << (sequence % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn it_remembers_what_a_set_of_everything_does(
            steps in prop::collection::vec((prop_oneof![0..4_u64, 0..200_u64, WINDOW - 70..WINDOW + 70], any::<bool>(), any::<bool>()), 1..400)
        ) {
            let (mut arrived, mut intact) = (HashSet::new(), HashSet::new());
            let (mut window, mut sequence, mut highest) = (Window::new(), 5 * WINDOW, None);
            for (step, back, sound) in steps {
                sequence = if back { sequence - step } else { sequence + step };
                sequence = sequence.max(2 * WINDOW);
                let before = *highest.get_or_insert(sequence);
                let expected = (before.saturating_sub(sequence) < WINDOW).then(|| {
                    let first_intact = !intact.contains(&sequence);
                    if sound {
                        intact.insert(sequence);
                    }
                    Arrival { first: arrived.insert(sequence), first_intact, behind: before.saturating_sub(sequence) }
                });
                prop_assert_eq!(window.add(sequence, sound), expected);
                highest = Some(before.max(sequence));
                prop_assert_eq!(window.highest(), highest);
            }
        }
    }

    #[test]
    fn a_jump_forgets_what_falls_out_and_nothing_else() {
        let begin = 3 * WINDOW;
        for jump in 0..200 {
            let mut window = Window::new();
            // All that has the bits of the sequences jumped over, and the oldest that stays.
            for sequence in begin - WINDOW..=begin + jump + 1 - WINDOW {
                window.add(sequence, true);
            }
            window.add(begin - 1, true);
            window.add(begin + jump, true);
            let first =
                |window: &mut Window, sequence| window.add(sequence, true).map(|arrival| arrival.first);
            assert_eq!(first(&mut window, begin + jump + 1 - WINDOW), Some(false), "{jump}");
            assert_eq!(first(&mut window, begin + jump - WINDOW), None, "{jump}");
            for sequence in begin..begin + jump {
                assert_eq!(first(&mut window, sequence), Some(true), "{jump} {sequence}");
            }
        }
    }
}
