//! Dense, typed numbers for everything a trace names.
//!
//! Every id is an index into a table, starts at zero and has no gaps, so engines keep their state in plain vectors.
//! Constructors refuse numbers that do not fit instead of wrapping round.

/// Implemented by every id type: a dense index with a checked constructor.
pub trait Id: Copy + Eq + Ord {
    /// What the id counts, for error messages.
    const WHAT: &'static str;
    /// The largest index this id can hold.
    const MAX_INDEX: usize;
    /// The id of the `index`-th object, or `None` if there are more than fit.
    fn from_index(index: usize) -> Option<Self>;
    /// The index, for vectors.
    fn index(self) -> usize;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $max:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);

        impl Id for $name {
            const WHAT: &'static str = $what;
            const MAX_INDEX: usize = $max as usize;
            #[inline]
            fn from_index(index: usize) -> Option<Self> {
                if index <= Self::MAX_INDEX { Some(Self(index as u32)) } else { None }
            }
            #[inline]
            fn index(self) -> usize { self.0 as usize }
        }

        impl $name {
            /// The id of the `index`-th object.
            ///
            /// # Panics
            /// If `index` is larger than the type can hold; use [`Id::from_index`] for numbers from outside.
            #[inline]
            pub fn new(index: usize) -> Self {
                <Self as Id>::from_index(index).expect(concat!("too many ", $what, "s"))
            }
            /// The index, for vectors.
            #[inline]
            pub fn index(self) -> usize { self.0 as usize }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($what, " {}"), self.0)
            }
        }
    )*};
}

ids! {
    /// An event of the lowered (kernel) trace, numbered in observed order.
    EventId, "event", u32::MAX - 1;
    /// A thread.
    ThreadId, "thread", (1u32 << 22) - 1;
    /// A variable as engines see it: one byte range that no access cuts.
    VarId, "variable", u32::MAX - 1;
    /// A lock: mutex, monitor, read-write lock, spin lock, or the guard of a once.
    LockId, "lock", u32::MAX - 1;
    /// An ordering token (`snd`/`rcv`).
    TokenId, "token", u32::MAX - 1;
    /// A condition variable.
    CondId, "condition", u32::MAX - 1;
    /// A counting semaphore.
    SemId, "semaphore", u32::MAX - 1;
    /// The name of an atomic block.
    BlockId, "block", u32::MAX - 1;
    /// A wait that a notify ended: its sleep, its notify and its wake belong together.
    PairingId, "pairing", u32::MAX - 1;
    /// A call stack.
    StackId, "call stack", (1u32 << 22) - 1;
}

impl StackId {
    /// How many stacks a trace can have.
    pub(crate) const LIMIT: usize = <Self as Id>::MAX_INDEX + 1;

    /// The stack with this number in a column, where 0 means that none is known.
    #[inline]
    pub(crate) fn from_column(number: u32) -> Option<Self> {
        number.checked_sub(1).map(Self)
    }
    /// The number of a stack in a column.
    #[inline]
    pub(crate) fn to_column(stack: Option<Self>) -> u32 {
        stack.map_or(0, |stack| stack.0 + 1)
    }
}

/// Blocks with this bit are functions.
const FUNCTION: u32 = 1 << 31;

impl BlockId {
    /// A function as an atomic block.
    pub(crate) fn of_function(function: u32) -> Self {
        Self(function | FUNCTION)
    }
    /// The number of the function that the block is, if it is one.
    pub fn function(self) -> Option<u32> {
        (self.0 & FUNCTION != 0).then_some(self.0 & !FUNCTION)
    }
}

/// A place in the source: a plain number, or an entry of the location table.
///
/// Many traces locate events by number only (RAPID's do, and a missing location is the line number), so numbers are
/// held in the id itself and cost no table entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocId(pub(crate) u32);

impl LocId {
    const NUMBER: u32 = 1 << 31;
    /// The largest number, and the largest table index, a location can hold.
    pub const MAX: u32 = (1 << 31) - 1;

    /// The location written as the decimal number `n`, or `None` if `n` is too large to be held inline.
    #[inline]
    pub fn from_number(n: u64) -> Option<Self> {
        (n <= u64::from(Self::MAX)).then_some(Self(n as u32 | Self::NUMBER))
    }
    /// The location in entry `index` of the location table.
    #[inline]
    pub fn from_index(index: usize) -> Option<Self> {
        (index <= Self::MAX as usize).then_some(Self(index as u32))
    }
    /// The number this location stands for, if it is a plain number.
    #[inline]
    pub fn number(self) -> Option<u32> {
        (self.0 & Self::NUMBER != 0).then_some(self.0 & Self::MAX)
    }
    /// The entry of the location table, if it is not a plain number.
    #[inline]
    pub fn table_index(self) -> Option<usize> {
        (self.0 & Self::NUMBER == 0).then_some(self.0 as usize)
    }
    /// The id as formats store it.
    #[inline]
    pub fn to_bits(self) -> u32 {
        self.0
    }
    /// The id from its stored form; any number is one.
    #[inline]
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl std::fmt::Debug for LocId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number() {
            Some(n) => write!(f, "location #{n}"),
            None => write!(f, "location {}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_refuse_what_does_not_fit() {
        assert!(ThreadId::from_index(1 << 22).is_none());
        assert_eq!(ThreadId::from_index((1 << 22) - 1).map(ThreadId::index), Some((1 << 22) - 1));
        assert!(EventId::from_index(u32::MAX as usize).is_none());
        assert!(LocId::from_number(1 << 31).is_none());
        assert!(LocId::from_index(1 << 31).is_none());
    }

    #[test]
    fn number_locations_and_table_locations_do_not_meet() {
        let number = LocId::from_number(7).unwrap();
        let entry = LocId::from_index(7).unwrap();
        assert_ne!(number, entry);
        assert_eq!((number.number(), number.table_index()), (Some(7), None));
        assert_eq!((entry.number(), entry.table_index()), (None, Some(7)));
    }
}
