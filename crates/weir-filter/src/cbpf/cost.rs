//! Cost of a program.

use super::Program;

/// The number of instructions executed for a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// On the longest path.
    pub longest: usize,
    /// On average, if both outcomes of each branch are equally likely.
    pub typical: f64,
}

impl Program {
    /// Returns the cost of a program whose jumps go forward and stay within it.
    pub fn cost(&self) -> Cost {
        let mut costs = vec![Cost { longest: 0, typical: 0.0 }; self.len()];
        for at in (0..self.len()).rev() {
            let ways: Vec<Cost> = self.successors(at).filter_map(|next| costs.get(next).copied()).collect();
            let longest = ways.iter().map(|cost| cost.longest).max().unwrap_or(0);
            let typical: f64 = ways.iter().map(|cost| cost.typical).sum();
            let ways = if ways.len() == 2 { 2.0 } else { 1.0 };
            costs[at] = Cost { longest: longest + 1, typical: typical / ways + 1.0 };
        }
        costs.first().copied().unwrap_or(Cost { longest: 0, typical: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_counts_by_half() {
        let program =
            Program::from_numbers("5\n40 0 0 12\n21 0 2 2048\n48 0 0 23\n6 0 0 1\n6 0 0 0\n").unwrap();
        assert_eq!(program.cost(), Cost { longest: 4, typical: 3.5 });
    }
}
