//! What entries of debug information are called: functions, variables and types, with the scopes around them.

use super::units::{Debug, EntryAt, Value};
use portent_trace::short_function;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::rc::Rc;

/// A symbol's name as the source has it.
///
/// The same functions of libraries are in every unit, and taking a name to pieces takes longer than finding it.
pub(super) fn demangled(symbol: &str) -> Rc<str> {
    thread_local! {
        static KNOWN: RefCell<FxHashMap<String, Rc<str>>> = RefCell::default();
    }
    /// More than programs have, of those that are asked for.
    const MOST: usize = 1 << 16;
    KNOWN.with_borrow_mut(|known| {
        if let Some(name) = known.get(symbol) {
            return Rc::clone(name);
        }
        if known.len() >= MOST {
            known.clear();
        }
        let name: Rc<str> = addr2line::demangle_auto(symbol.into(), None).into();
        known.insert(symbol.to_owned(), Rc::clone(&name));
        name
    })
}

impl Debug {
    /// The name that an entry itself has.
    pub(super) fn name(&self, at: EntryAt) -> Option<String> {
        self.text(at.unit, self.entry(at)?.attr_value(gimli::DW_AT_name)?)
    }

    /// The name of an entry, or of the one that it is a copy of.
    pub(super) fn own_or_origin_name(&self, at: EntryAt) -> Option<String> {
        let (unit, name) = self.inherited(at, gimli::DW_AT_name)?;
        self.text(unit, name)
    }

    pub(super) fn text(&self, unit: u32, value: Value) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit(unit)?, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    /// What a function is called, by the symbol that its declaration names.
    pub(super) fn function_name(&self, at: EntryAt) -> Option<String> {
        match self.inherited(at, gimli::DW_AT_linkage_name).and_then(|(unit, name)| self.text(unit, name)) {
            Some(symbol) => Some(short_function(&demangled(&symbol))),
            None => self.own_or_origin_name(at),
        }
    }

    /// The name of a function, variable or type with the scopes around it, or around its declaration.
    pub(super) fn qualified_name(&self, at: EntryAt) -> Option<String> {
        self.qualified(at, 32)
    }

    fn qualified(&self, at: EntryAt, depth: u32) -> Option<String> {
        let entry = self.entry(at)?;
        let Some(name) = self.name(at) else {
            return self.qualified(self.origin(at.unit, &entry)?, depth.checked_sub(1)?);
        };
        let Some(scope) = self.scope_around(at) else { return Some(name) };
        let around = self.scope_name(scope, depth.checked_sub(1)?);
        Some(if around.is_empty() { name } else { format!("{around}::{name}") })
    }

    /// A scope as part of a name; empty if it adds nothing.
    fn scope_name(&self, at: EntryAt, depth: u32) -> String {
        let Some(entry) = self.entry(at) else { return String::new() };
        let around = || {
            let scope = depth.checked_sub(1).and_then(|depth| Some(self.scope_name(self.scope_around(at)?, depth)));
            scope.unwrap_or_default()
        };
        let own = match entry.tag() {
            // A function names itself with its scopes.
            gimli::DW_TAG_subprogram => {
                let name = depth.checked_sub(1).and_then(|depth| self.qualified(at, depth));
                return name.unwrap_or_else(|| "?".into()) + "()";
            }
            gimli::DW_TAG_namespace => self.name(at).unwrap_or_else(|| "(anonymous)".to_owned()),
            _ => self.name(at).unwrap_or_default(),
        };
        match (around(), own) {
            (around, own) if around.is_empty() => own,
            (around, own) if own.is_empty() => around,
            (around, own) => format!("{around}::{own}"),
        }
    }
}
