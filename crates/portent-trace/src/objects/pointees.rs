//! What pointers pointed to: for variables that hold addresses, what was at each address that they held.
//!
//! An address is a number that says nothing, and is another one in the next run. Memory that was used again is not named: which
//! of its objects was meant, the number does not say.

use crate::error::Problem;
use crate::names::Names;
use rustc_hash::FxHashMap;

/// One address that a variable held, and the word of what was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointee {
    pub(crate) variable: u32,
    pub(crate) value: i64,
    pub(crate) word: u32,
}

/// All of them, in the order in which they were met.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointees {
    all: Vec<Pointee>,
    /// None where there were several.
    known: FxHashMap<(u32, i64), Option<u32>>,
}

impl Pointees {
    pub(crate) fn all(&self) -> &[Pointee] {
        &self.all
    }

    pub(crate) fn add(&mut self, pointee: Pointee) {
        let Pointee { variable, value, word } = pointee;
        let known = self.known.entry((variable, value)).or_insert(Some(word));
        if *known != Some(word) {
            *known = None;
        }
        self.all.push(pointee);
    }
}

impl Names {
    /// A variable holds the address of something, which is called so.
    pub fn points(&mut self, variable: u32, value: i64, to: &str) -> Result<(), Problem> {
        let word = self.objects_mut().word(to.as_bytes())?;
        self.objects_mut().pointees.add(Pointee { variable, value, word });
        Ok(())
    }

    /// What a value of a variable that holds addresses pointed to.
    pub fn pointee(&self, variable: u32, value: i64) -> Option<&str> {
        let known = self.objects().pointees.known.get(&(variable, value))?;
        Some(known.map_or("memory that was used again", |word| self.objects().words().get(word as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::ObjectClass;

    #[test]
    fn an_address_that_was_two_things_is_named_after_neither() {
        let mut names = Names::default();
        let head = names.intern(ObjectClass::Variable, b"head").unwrap();
        names.points(head, 0, "nullptr").unwrap();
        names.points(head, 64, "Node from list.cpp:3").unwrap();
        assert_eq!((names.pointee(head, 0), names.pointee(head, 64)), (Some("nullptr"), Some("Node from list.cpp:3")));
        assert_eq!((names.pointee(head, 1), names.pointee(head + 1, 0)), (None, None));
        names.points(head, 64, "Node from list.cpp:3 (second)").unwrap();
        assert_eq!(names.pointee(head, 64), Some("memory that was used again"));
    }
}
