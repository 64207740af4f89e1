//! What a window has, numbered: one type per kind of thing, dense from 0, and the vectors that they index.
//!
//! Here, and in [`super::rows`], is the only place where such a number is a `usize`. "None of them" is an `Option`; "what
//! the variable held before the window", a [`Source`].

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut, Range};

/// A number that indexes vectors.
pub(crate) trait Id: Copy {
    fn index(self) -> usize;
}

/// A number that can be made of its index.
pub(crate) trait Dense: Id {
    fn new(index: usize) -> Self;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $name(u32);

        impl Id for $name {
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Dense for $name {
            #[inline]
            fn new(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok(), "nothing in a window is more than the trace has events");
                $name(index as u32)
            }
        }
    )*};
}

ids! {
    /// An event of the window, numbered in observed order. The search has one more, behind them all: the cut.
    Node;
    /// A thread's events, numbered like the threads of the trace. The search has one more, for the cut.
    Chain;
    /// A place in a chain; or the first place that is not in a set: how many of the chain's events are.
    Place;
    /// A variable of the window.
    Variable;
    /// A lock of the window.
    Lock;
    /// A critical section.
    ScopeId;
    /// A wait on a condition.
    WaitId;
    /// A condition of the window.
    Condition;
    /// A semaphore of the window.
    Semaphore;
    /// A set of scopes that are open at the same time.
    OpenSet;
    /// An edge of the search: a literal that holds.
    EdgeId;
}

impl Node {
    pub(crate) const FIRST: Node = Node(0);
}

impl OpenSet {
    /// No scope at all: the first of the window's sets.
    pub(crate) const EMPTY: OpenSet = OpenSet(0);
}

impl Place {
    pub(crate) const START: Place = Place(0);

    /// The place behind this one.
    #[inline]
    pub(crate) fn next(self) -> Place {
        Place(self.0 + 1)
    }
    /// The place before this one.
    #[inline]
    pub(crate) fn previous(self) -> Option<Place> {
        self.0.checked_sub(1).map(Place)
    }
}

impl Id for batsat::Var {
    #[inline]
    fn index(self) -> usize {
        self.idx() as usize
    }
}

/// Where the value comes from that a variable holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// From before the window: it is what the variable holds when the window starts.
    Base,
    /// From a write of the window.
    Write(Node),
}

impl Source {
    /// The write, if it is in the window.
    #[inline]
    pub(crate) fn node(self) -> Option<Node> {
        match self {
            Source::Base => None,
            Source::Write(node) => Some(node),
        }
    }
}

/// Ids one after the other.
#[inline]
pub(crate) fn ids<I: Dense>(range: Range<usize>) -> impl DoubleEndedIterator<Item = I> + Clone {
    range.map(I::new)
}

/// A vector indexed by ids.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IndexVec<I, T> {
    items: Vec<T>,
    of: PhantomData<fn(I)>,
}

impl<I, T> IndexVec<I, T> {
    pub(crate) fn with_capacity(len: usize) -> Self {
        Vec::with_capacity(len).into()
    }
    /// `len` times the same.
    pub(crate) fn repeat(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        vec![item; len].into()
    }
    /// Makes it `len` times the same.
    pub(crate) fn refill(&mut self, item: T, len: usize)
    where
        T: Clone,
    {
        self.items.clear();
        self.items.resize(len, item);
    }
    /// Makes it a copy of these.
    #[inline]
    pub(crate) fn copy_from(&mut self, items: &[T])
    where
        T: Clone,
    {
        self.items.clear();
        self.items.extend_from_slice(items);
    }
    /// Takes the last away.
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }
    /// Makes it shorter or longer.
    pub(crate) fn resize(&mut self, len: usize, item: T)
    where
        T: Clone,
    {
        self.items.resize(len, item);
    }
}

impl<I: Id, T> IndexVec<I, T> {
    /// Makes it at least so long that `id` is in it.
    pub(crate) fn reach(&mut self, id: I, item: T)
    where
        T: Clone,
    {
        if self.items.len() <= id.index() {
            self.items.resize(id.index() + 1, item);
        }
    }
    #[inline]
    pub(crate) fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }
    /// What lies from one id up to another.
    #[inline]
    pub(crate) fn between(&self, ids: Range<I>) -> &[T] {
        &self.items[ids.start.index()..ids.end.index()]
    }
    /// What lies before an id.
    #[inline]
    pub(crate) fn before(&self, id: I) -> &[T] {
        &self.items[..id.index()]
    }
    /// What lies from an id on.
    #[inline]
    pub(crate) fn from(&self, id: I) -> &[T] {
        &self.items[id.index()..]
    }
}

impl<I: Dense, T> IndexVec<I, T> {
    /// Appends; the number of what was appended.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::new(self.items.len() - 1)
    }
    /// Every id, in order.
    #[inline]
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = I> + Clone + use<I, T> {
        ids(0..self.items.len())
    }
    /// Every id with what it stands for, in order.
    #[inline]
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(at, item)| (I::new(at), item))
    }
    /// One behind the last.
    #[inline]
    pub(crate) fn end(&self) -> I {
        I::new(self.items.len())
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<I, T> Deref for IndexVec<I, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<I, T> DerefMut for IndexVec<I, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<I, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<I, T: Clone> Clone for IndexVec<I, T> {
    fn clone(&self) -> Self {
        self.items.clone().into()
    }
    fn clone_from(&mut self, other: &Self) {
        self.items.clone_from(&other.items);
    }
}

impl<I, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(items: Vec<T>) -> Self {
        IndexVec { items, of: PhantomData }
    }
}

impl<I, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<It: IntoIterator<Item = T>>(items: It) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}
