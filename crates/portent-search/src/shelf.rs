//! Things that stay where they are put: engines borrow the traces of all runs, and runs become more.

use std::cell::OnceCell;

/// A place for one thing, and for the next.
#[derive(Debug)]
pub(crate) struct Shelf<T> {
    thing: OnceCell<T>,
    next: OnceCell<Box<Shelf<T>>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { thing: OnceCell::new(), next: OnceCell::new() }
    }
}

impl<T> Shelf<T> {
    /// Puts a thing here, or at the first free place after; returns it with the place behind it.
    pub(crate) fn put(&self, thing: T) -> (&T, &Shelf<T>) {
        let mut at = self;
        while at.thing.get().is_some() {
            at = at.next.get_or_init(Box::default);
        }
        (at.thing.get_or_init(|| thing), at.next.get_or_init(Box::default))
    }
}

impl<T> Drop for Shelf<T> {
    /// Place by place: there may be too many of them for one call inside the other.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut place) = next {
            next = place.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_stay() {
        let shelf = Shelf::default();
        let mut at = &shelf;
        let mut all = Vec::new();
        for number in 0..100_000 {
            let (thing, next) = at.put(number);
            all.push(thing);
            at = next;
        }
        assert!(all.iter().enumerate().all(|(number, thing)| **thing == number));
        assert_eq!(*shelf.put(7).0, 7);
    }
}
