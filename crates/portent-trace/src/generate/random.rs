//! Random numbers that are the same on every machine and for ever.
//!
//! The algorithm is fixed by name (xoshiro256++, seeded through SplitMix64), and bounded numbers are made here rather than by
//! a library that may change how it does so: a seed in a bug report must still mean the same trace years later.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A probability as a threshold on 32 random bits: comparing integers is the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chance(u64);

impl Chance {
    /// The nearest threshold to a share between 0 and 1.
    pub(super) fn of(share: f64) -> Self {
        // A product with a power of two is exact, so this rounds alike everywhere.
        Self((share.clamp(0.0, 1.0) * 4_294_967_296.0) as u64)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 32 random bits: the upper ones, which are the better ones.
    #[inline]
    pub(super) fn bits(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }

    /// A number below `bound` (0 if `bound` is 0), by multiply-shift; the bias is below 2^-32 per unit of the bound.
    #[inline]
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.bits()) * u64::from(bound)) >> 32) as u32
    }

    /// A number below `bound` (0 if `bound` is 0).
    #[inline]
    pub(super) fn below_wide(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    #[inline]
    pub(super) fn chance(&mut self, chance: Chance) -> bool {
        u64::from(self.bits()) < chance.0
    }

    /// True once in `n` times.
    #[inline]
    pub(super) fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// A number around `mean`, between half of it and half as much again, at least 1.
    #[inline]
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        (mean / 2 + self.below_wide(mean + 1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(42);
        let first: Vec<u32> = (0..4).map(|_| random.bits()).collect();
        assert_eq!(first, PINNED);
    }

    const PINNED: [u32; 4] = [3497413967, 1369325940, 4225793275, 3011354464];

    #[test]
    fn bounded_numbers_stay_in_bounds_and_reach_them() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[random.below(7) as usize] = true;
            assert!((5..=15).contains(&random.around(10)));
            assert!(!random.chance(Chance::of(0.0)) && random.chance(Chance::of(1.0)));
        }
        assert!(seen.into_iter().all(|s| s));
        assert_eq!((random.below(0), random.below_wide(0)), (0, 0));
    }
}
