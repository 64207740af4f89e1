//! The global variables of a module: where they are, what they are called, and what is inside them.
//!
//! The symbol table gives names and sizes; debug information, where there is any, gives better names (functions' statics,
//! namespaces) and types. Thread-local variables have no fixed address and are not here.

use super::entry_names::demangled;
use super::types::{Meaning, Part, TypeId};
use super::units::{Debug, EntryAt, Fixed};
use object::{Object as _, ObjectSymbol, SymbolKind};
use portent_trace::{Object, ObjectName};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The global variables of a module.
#[derive(Default)]
pub(super) struct Globals {
    /// By address; none overlaps the next.
    variables: Vec<Variable>,
    debug: Option<Rc<Debug>>,
    /// Which variables that debug information knows have the same name, apart from scopes.
    same: OnceCell<FxHashMap<String, Vec<u32>>>,
    /// Names of those that only symbols know, and how many have each.
    symbols: OnceCell<FxHashMap<String, u32>>,
}

/// A global variable.
#[derive(Debug)]
struct Variable {
    address: u64,
    size: u64,
    /// What the symbol table calls it.
    symbol: &'static str,
    /// Where debug information defines it.
    defined: Option<EntryAt>,
    /// Where in that it begins: compilers take some to pieces.
    inside: u64,
    /// What it is called, once somebody has asked.
    name: OnceCell<String>,
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
    /// What its bytes stand for.
    pub meaning: Meaning,
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
    /// The variables of a file.
    pub(super) fn of(file: &object::File<'static>, debug: Option<Rc<Debug>>) -> Globals {
        let mut found: BTreeMap<u64, Variable> = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() != SymbolKind::Data || symbol.is_undefined() || symbol.size() == 0 {
                continue;
            }
            let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else { continue };
            let (address, size) = (symbol.address(), symbol.size());
            if found.get(&address).is_none_or(|known| known.size < size) {
                found.insert(address, Variable { size, ..Variable::new(address, name, None) });
            }
        }
        if let Some(debug) = &debug {
            for fixed in debug.fixed_variables().into_iter().filter(|fixed| fixed.address != 0) {
                let Fixed { address, at, inside, size } = fixed;
                let slot = found.entry(address).or_insert_with(|| Variable::new(address, "", None));
                (slot.defined, slot.inside) = (Some(at), inside);
                slot.size = slot.size.max(size.unwrap_or(0));
                // A symbol knows best how much room there is; an array without bounds has no size of its own.
                if slot.size == 0 {
                    let mut reader = debug.types.borrow_mut();
                    slot.size = reader.of_variable(debug, at).map_or(0, |ty| reader.types.get(ty).size);
                }
            }
        }
        let mut variables: Vec<Variable> = found.into_values().filter(|variable| variable.size > 0).collect();
        variables.dedup_by(|next, before| next.address < before.address.saturating_add(before.size));
        Globals { variables, debug, ..Globals::default() }
    }

    /// What a variable is called. Those of one name, as statics of several files can be, get their file behind it.
    fn name<'a>(&'a self, variable: &'a Variable) -> &'a str {
        variable.name.get_or_init(|| {
            let plain = self.plain_name(variable);
            let Some(file) = variable.defined.and_then(|at| self.file(at)) else { return plain };
            if self.is_shared(variable, &plain) { format!("{plain}({file})") } else { plain }
        })
    }

    /// What a variable is called, whether or not others are called the same.
    fn plain_name(&self, variable: &Variable) -> String {
        let in_source = || self.debug.as_ref()?.qualified_name(variable.defined?);
        in_source().unwrap_or_else(|| variable_name(variable.symbol))
    }

    fn is_shared(&self, variable: &Variable, name: &str) -> bool {
        let by_symbol = self.symbols.get_or_init(|| {
            let mut counts = FxHashMap::default();
            for variable in self.variables.iter().filter(|variable| variable.defined.is_none()) {
                *counts.entry(variable_name(variable.symbol)).or_default() += 1;
            }
            counts
        });
        if by_symbol.contains_key(name) {
            return true;
        }
        let same = self.same.get_or_init(|| {
            let mut same: FxHashMap<String, Vec<u32>> = FxHashMap::default();
            for (number, variable) in self.variables.iter().enumerate() {
                if let Some(last) = self.last_name(variable) {
                    same.entry(last).or_default().push(number as u32);
                }
            }
            same
        });
        let others = self.last_name(variable).and_then(|last| same.get(&last)).map_or(&[][..], Vec::as_slice);
        let others = others.iter().map(|&number| &self.variables[number as usize]);
        let mut others = others.filter(|other| other.address != variable.address && other.defined != variable.defined);
        others.any(|other| self.plain_name(other) == name)
    }

    /// The name of a variable in debug information, without scopes.
    fn last_name(&self, variable: &Variable) -> Option<String> {
        self.debug.as_ref()?.own_or_origin_name(variable.defined?)
    }

    /// The source file of a unit, without its directory.
    fn file(&self, at: EntryAt) -> Option<String> {
        let path = self.debug.as_ref()?.unit(at.unit)?.name?.to_string_lossy().into_owned();
        Some(path.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// Where variables are declared, as `file.c:12`, and what they are called.
    pub(super) fn declarations(&self) -> BTreeMap<String, String> {
        let places = self.variables.iter().filter_map(|variable| {
            let at = variable.defined?;
            let line = self.debug.as_ref()?.entry(at)?.attr_value(gimli::DW_AT_decl_line)?.udata_value()?;
            Some((format!("{}:{line}", self.file(at)?), self.name(variable).to_owned()))
        });
        places.collect()
    }

    fn type_of(&self, variable: &Variable) -> Option<(&Rc<Debug>, TypeId)> {
        let debug = self.debug.as_ref()?;
        let ty = debug.types.borrow_mut().of_variable(debug, variable.defined?)?;
        Some((debug, ty))
    }

    fn containing(&self, address: u64) -> Option<&Variable> {
        let after = self.variables.partition_point(|variable| variable.address <= address);
        let variable = self.variables.get(after.checked_sub(1)?)?;
        (address - variable.address < variable.size).then_some(variable)
    }

    /// What `len` bytes from `address` (as the file counts) on are.
    pub(super) fn datum(&self, address: u64, len: u64) -> Option<Datum> {
        let variable = self.containing(address)?;
        let offset = address - variable.address + variable.inside;
        let Part { path, offset, meaning } = match self.type_of(variable) {
            Some((debug, ty)) => debug.types.borrow().types.part(ty, offset, len),
            None => Part { path: String::new(), offset, meaning: Meaning::Bits },
        };
        Some(Datum { whole: Whole::Variable(self.name(variable).to_owned()), path, offset, meaning })
    }

    /// What a lock or the like at `address` is.
    pub(super) fn object(&self, address: u64) -> Option<Datum> {
        let variable = self.containing(address)?;
        let offset = address - variable.address + variable.inside;
        let path = self.type_of(variable).and_then(|(debug, ty)| debug.types.borrow().types.object(ty, offset));
        let Some(path) = path else { return self.datum(address, 1) };
        Some(Datum { whole: Whole::Variable(self.name(variable).to_owned()), path, offset: 0, meaning: Meaning::Bits })
    }
}

impl Variable {
    fn new(address: u64, symbol: &'static str, defined: Option<EntryAt>) -> Variable {
        Variable { address, size: 0, symbol, defined, inside: 0, name: OnceCell::new() }
    }
}

/// A symbol's name as its source has it.
fn variable_name(name: &str) -> String {
    // Variables of libraries have a version behind them, which no source has: `stdin@GLIBC_2.2.5`.
    let name = name.split_once('@').map_or(name, |(source, _)| source);
    let name = demangled(name);
    // How the demangler shows it, and how everybody else does.
    match name.strip_prefix("{vtable(").and_then(|rest| rest.strip_suffix(")}")) {
        Some(class) => format!("vtable for {class}"),
        None => name.to_string(),
    }
}
