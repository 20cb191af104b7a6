//! The highest rate at which something still works.

/// Finds it between `lowest` and `highest` by bisection of their ratio. `works` gives what came of a rate that works; so does
/// this, for the highest one tried. `steps` halvings leave a factor of (highest / lowest)^(1 / 2^steps).
pub(crate) fn highest<T, E>(
    [lowest, highest]: [f64; 2],
    steps: u32,
    mut works: impl FnMut(f64) -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let mut best = works(highest)?;
    if best.is_some() {
        return Ok(best);
    }
    let (mut low, mut high) = (lowest, highest);
    for _ in 0..steps {
        let middle = (low * high).sqrt();
        match works(middle)? {
            None => high = middle,
            found => (best, low) = (found, middle),
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(limit: f64, steps: u32) -> (Option<f64>, u32) {
        let mut tries = 0;
        let found = highest([1000.0, 1e6], steps, |rate| {
            tries += 1;
            Ok::<_, ()>(Some(rate).filter(|rate| *rate <= limit))
        });
        (found.expect("no error"), tries)
    }

    #[test]
    fn a_limit_is_found_from_below() {
        for limit in [1100.0, 5000.0, 123_456.0, 999_999.0] {
            let (found, tries) = find(limit, 8);
            assert!(found.is_some_and(|rate| rate <= limit && rate > limit / 1.03), "{found:?} for {limit}");
            assert_eq!(tries, 9);
        }
    }

    #[test]
    fn the_ends_are_known() {
        assert_eq!(find(1e6, 3), (Some(1e6), 1));
        assert_eq!(find(1000.0, 3), (None, 4));
        assert_eq!(highest::<(), _>([1.0, 8.0], 3, |_| Err("broken")), Err("broken"));
    }
}
