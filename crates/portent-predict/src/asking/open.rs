//! What is still worth asking, and which groups are settled.

use super::key::Key;
use crate::bug::BugKind;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Mutex;

/// Groups that have a witness, with the first window that found it.
#[derive(Default)]
pub(crate) struct Settled(Mutex<FxHashMap<Key, usize>>);

impl Settled {
    /// Whether `window` should make a witness of the group: no earlier one has.
    pub(crate) fn claim(&self, key: &Key, window: usize) -> bool {
        let mut settled = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match settled.get_mut(key) {
            Some(first) if *first < window => false,
            Some(first) => {
                *first = window;
                true
            }
            None => {
                settled.insert(key.clone(), window);
                true
            }
        }
    }
}

/// Which candidates are worth asking about.
#[derive(Default)]
pub(crate) struct Open {
    /// Groups that have no finding yet; `None` for everything.
    groups: Option<FxHashSet<Key>>,
    kinds: [bool; BugKind::ALL.len()],
}

impl Open {
    /// Everything.
    pub(crate) fn all() -> Self {
        Open { groups: None, kinds: [true; BugKind::ALL.len()] }
    }
    /// These groups.
    pub(crate) fn groups(keys: impl Iterator<Item = (BugKind, Key)>) -> Self {
        let mut open = Open { groups: Some(FxHashSet::default()), kinds: [false; BugKind::ALL.len()] };
        for (kind, key) in keys {
            open.kinds[kind as usize] = true;
            open.groups.get_or_insert_default().insert(key);
        }
        open
    }
    /// Whether anything of a kind is.
    pub(crate) fn wants_kind(&self, kind: BugKind) -> bool {
        self.kinds[kind as usize]
    }
    /// Whether a candidate is; its key is only asked for where that depends on it.
    #[inline]
    pub(crate) fn wants(&self, key: impl FnOnce() -> Key) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.contains(&key()))
    }
}
