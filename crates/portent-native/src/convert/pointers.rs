//! What variables that hold addresses point to, by the names that the program's author gave it.
//!
//! Only for variables that debug information says are pointers, and that are not on a stack: those are many, and rarely
//! anybody else's. Iterators and the other insides of library classes point behind things as often as to them, and are left
//! out.

use super::areas::Owner;
use super::{Converter, Problem};
use crate::symbols::Symbols;
use portent_trace::{Names, ObjectClass, ObjectName, own_path, short_function};

/// A trace has room for so many addresses with names, and for one more every few events.
const POINTEES: u64 = 1 << 10;
const EVENTS_PER_POINTEE: u64 = 128;

impl Converter {
    /// A variable was seen to hold an address.
    #[inline]
    pub(super) fn points(&mut self, index: u64, variable: u32, value: i64) -> Result<(), Problem> {
        let region = if value == 0 { 0 } else { self.memory.areas.at(value as u64).region };
        match self.pointed.get(&(variable, value)) {
            Some(&known) if known == region => Ok(()),
            _ => self.newly_points(index, variable, value, region),
        }
    }

    #[cold]
    fn newly_points(&mut self, index: u64, variable: u32, value: i64, region: u32) -> Result<(), Problem> {
        if self.pointed.len() as u64 >= POINTEES + index / EVENTS_PER_POINTEE {
            return Ok(());
        }
        self.pointed.insert((variable, value), region);
        let path = self.names.object(ObjectClass::Variable, variable).path;
        // Indices are no part of a path that is the author's own.
        let is_own = own_path(path).matches('.').count() == path.matches('.').count();
        if !is_own {
            return Ok(());
        }
        let text = if value == 0 { Some("nullptr".to_owned()) } else { self.pointee(value as u64)? };
        let text = text.unwrap_or_else(|| "memory that is not known".to_owned());
        self.names.points(variable, value, &text)
    }

    /// What is at an address; nothing if that is not known.
    fn pointee(&mut self, address: u64) -> Result<Option<String>, Problem> {
        let area = self.settled(address);
        let tell =
            |names: &mut Names, sign: &str, name: &ObjectName<'_>| Ok(Some(format!("{sign}{}", names.describe(name))));
        let Converter { memory, symbols, names, .. } = self;
        match area.owner {
            Owner::Module => match symbols.named_object(address) {
                Some(datum) => tell(names, "&", &datum.name()),
                None => Ok(function_at(symbols, address)),
            },
            // A block is called what it is, a part of it by its address.
            Owner::Allocation { .. } => {
                let sign = if address == area.base { "" } else { "&" };
                let is_whole = address == area.base;
                memory.named(address, symbols, names, |names, name| match is_whole {
                    true => tell(names, sign, &ObjectName { path: "", offset: 0, ..name }),
                    false => tell(names, sign, &name),
                })
            }
            Owner::Local { .. } | Owner::Library { .. } => {
                memory.named(address, symbols, names, |names, name| tell(names, "&", &name))
            }
            Owner::Stack { thread } => {
                Ok(Some(format!("memory on the stack of {}", self.survey.thread_name(thread as usize))))
            }
            Owner::Unknown => Ok(None),
        }
    }
}

/// The function that begins at an address.
fn function_at(symbols: &Symbols, address: u64) -> Option<String> {
    let function = symbols.place(address.wrapping_add(1)).outer.clone()?;
    Some(format!("&{}", short_function(&function)))
}
