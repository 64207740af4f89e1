//! Sets of runs, as bits.

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn insert(&mut self, number: usize) {
        let word = number / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }
    pub(crate) fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(at, &word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_in_order() {
        let mut bits = Bits::default();
        [130, 3, 64, 3, 63].into_iter().for_each(|number| bits.insert(number));
        assert_eq!(bits.iter().collect::<Vec<_>>(), [3, 63, 64, 130]);
        assert!(bits.contains(130) && !bits.contains(129) && !bits.contains(1000));
    }
}
