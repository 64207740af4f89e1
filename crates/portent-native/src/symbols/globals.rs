//! The global variables of a module: where they are, what they are called, and what is inside them.
//!
//! The symbol table gives names and sizes; debug information, where there is any, gives better names (functions' statics,
//! namespaces) and types. Thread-local variables have no fixed address and are not here.

use super::dwarf;
use super::types::{TypeId, Types};
use addr2line::demangle_auto;
use object::{Object as _, ObjectSymbol, SymbolKind};
use portent_trace::{Object, ObjectName};
use std::collections::BTreeMap;
use std::path::Path;

/// The global variables of a module.
#[derive(Debug, Default)]
pub(super) struct Globals {
    /// By address; none overlaps the next.
    variables: Vec<Variable>,
    types: Types,
}

/// A global variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) name: String,
    /// The source file, to tell variables of one name apart.
    pub(super) file: Option<String>,
    /// The line that declares it.
    pub(super) line: Option<u64>,
    pub(super) ty: Option<TypeId>,
}

/// What an address range of a module is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// What it is part of.
    pub whole: Whole,
    /// Members and indices on the way to it, such as `[2].balance`.
    pub path: String,
    /// Bytes behind that: not 0 for bytes that are no member.
    pub offset: u64,
    /// Whether it is an integer with a sign.
    pub signed: bool,
}

/// What has a name in a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whole {
    /// A variable.
    Variable(String),
    /// Nothing: this is in the module of this name, so many bytes from its start.
    Module(String, u64),
}

impl Datum {
    /// What it is to the trace.
    pub fn name(&self) -> ObjectName<'_> {
        let object = match &self.whole {
            Whole::Variable(name) => Object::Global { name },
            Whole::Module(name, offset) => Object::Module { name, offset: *offset },
        };
        ObjectName { path: &self.path, ..ObjectName::at(object, self.offset) }
    }
}

impl Globals {
    /// The variables of a file; none if it cannot be read.
    pub(super) fn of(path: &Path) -> Globals {
        let Ok(bytes) = std::fs::read(path) else { return Globals::default() };
        let Ok(file) = object::File::parse(&*bytes) else { return Globals::default() };
        let (debug, types) = dwarf::variables(&file);
        let mut found: BTreeMap<u64, Variable> = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let is_data = symbol.kind() == SymbolKind::Data && !symbol.is_undefined();
            let Ok(name) = symbol.name() else { continue };
            if !is_data || symbol.size() == 0 || name.is_empty() {
                continue;
            }
            let known = found.get(&symbol.address());
            if known.is_none_or(|known| known.size < symbol.size()) {
                let (address, size) = (symbol.address(), symbol.size());
                let name = demangled(name);
                found.insert(address, Variable { address, size, name, file: None, line: None, ty: None });
            }
        }
        for variable in debug.into_iter().filter(|variable| variable.address != 0) {
            let slot = found.entry(variable.address).or_insert_with(|| variable.clone());
            // A symbol knows best how much room there is; an array without bounds has no size of its own.
            let size = slot.size.max(variable.size);
            *slot = Variable { size, ..variable };
        }
        let mut variables: Vec<Variable> = found.into_values().filter(|variable| variable.size > 0).collect();
        variables.dedup_by(|next, before| next.address < before.address.saturating_add(before.size));
        tell_apart(&mut variables);
        Globals { variables, types }
    }

    /// Where variables are declared, as `file.c:12`, and what they are called.
    pub(super) fn declarations(&self) -> BTreeMap<String, String> {
        let places = self.variables.iter().filter_map(|variable| {
            let (file, line) = (variable.file.as_ref()?, variable.line?);
            Some((format!("{file}:{line}"), variable.name.clone()))
        });
        places.collect()
    }

    fn containing(&self, address: u64) -> Option<&Variable> {
        let after = self.variables.partition_point(|variable| variable.address <= address);
        let variable = self.variables.get(after.checked_sub(1)?)?;
        (address - variable.address < variable.size).then_some(variable)
    }

    /// What `len` bytes from `address` (as the file counts) on are.
    pub(super) fn datum(&self, address: u64, len: u64) -> Option<Datum> {
        let variable = self.containing(address)?;
        let offset = address - variable.address;
        let (path, offset, signed) = match variable.ty {
            Some(ty) => {
                let part = self.types.part(ty, offset, len);
                (part.path, part.offset, part.signed)
            }
            None => (String::new(), offset, false),
        };
        Some(Datum { whole: Whole::Variable(variable.name.clone()), path, offset, signed })
    }

    /// What a lock or the like at `address` is.
    pub(super) fn object(&self, address: u64) -> Option<Datum> {
        let variable = self.containing(address)?;
        let path = variable.ty.and_then(|ty| self.types.object(ty, address - variable.address));
        match path {
            Some(path) => Some(Datum { whole: Whole::Variable(variable.name.clone()), path, offset: 0, signed: false }),
            None => self.datum(address, 1),
        }
    }
}

/// A symbol's name as its source has it.
fn demangled(name: &str) -> String {
    // Variables of libraries have a version behind them, which no source has: `stdin@GLIBC_2.2.5`.
    let name = name.split_once('@').map_or(name, |(source, _)| source);
    let name = demangle_auto(name.into(), None);
    // How the demangler shows it, and how everybody else does.
    match name.strip_prefix("{vtable(").and_then(|rest| rest.strip_suffix(")}")) {
        Some(class) => format!("vtable for {class}"),
        None => name.into_owned(),
    }
}

/// Variables of one name, as statics of several files can be, get their file behind it.
fn tell_apart(variables: &mut [Variable]) {
    let mut count: BTreeMap<String, u32> = BTreeMap::new();
    for variable in &*variables {
        *count.entry(variable.name.clone()).or_default() += 1;
    }
    for variable in variables {
        if count[&variable.name] > 1
            && let Some(file) = &variable.file
        {
            variable.name = format!("{}({file})", variable.name);
        }
    }
}
