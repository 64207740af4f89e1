//! Properties and the names of a trace: which variables, locks, threads and places a property means, and what is known of
//! the values.
//!
//! A variable's value before its first write is what the file declares, else what a read of it saw, else 0, as globals
//! of C and fields of Java start; the last is an assumption, and [`Bound::assumed`] says so. A write without a value makes
//! the variable unknown until the next write, unless a read that saw it has one.

use crate::ast::{Body, EventAtom, Formula, InitialValue, NameIx, Property, PropertyFile, RefClass};
use crate::diagnostic::{Diagnostic, close_names, suggestion};
use portent_trace::{CondId, Event, EventId, LocId, LockId, Names, ObjectClass, Op, ThreadId, Trace, VarId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// What names are looked up in.
pub struct Scope<'t> {
    names: &'t Names,
    trace: Option<&'t Trace>,
    /// Other names of variables: `file.c:12`, where a variable is declared, to its name.
    pub declared: BTreeMap<String, String>,
}

impl<'t> Scope<'t> {
    /// The names of a trace.
    pub fn of(trace: &'t Trace) -> Self {
        Scope { names: trace.names(), trace: Some(trace), declared: BTreeMap::new() }
    }
    /// The names of a stream whose variables do not overlap.
    pub fn of_names(names: &'t Names) -> Self {
        Scope { names, trace: None, declared: BTreeMap::new() }
    }

    fn variables(&self, name: &str) -> Vec<VarId> {
        let by_name = |name: &str| match self.trace {
            Some(trace) => trace.variables_named(name),
            None => {
                let found = self.names.table(ObjectClass::Variable).lookup(name.as_bytes());
                found.map(|id| VarId::new(id as usize)).into_iter().collect()
            }
        };
        let found = by_name(name);
        match self.declared.get(name) {
            Some(declared) if found.is_empty() => by_name(declared),
            _ => found,
        }
    }

    fn unknown(&self, class: RefClass, text: &str, span: std::ops::Range<usize>) -> Diagnostic {
        let table = match class {
            RefClass::Variable => ObjectClass::Variable,
            RefClass::Lock => ObjectClass::Lock,
            RefClass::Condition => ObjectClass::Condition,
            _ => ObjectClass::Thread,
        };
        let table = self.names.table(table);
        let close = close_names(text, table.iter().chain(self.declared.keys().map(String::as_str)));
        let message = format!("the trace has no {} called `{text}`", class.what());
        let diagnostic = Diagnostic::new(span, message);
        match suggestion(&close) {
            Some(help) => diagnostic.help(help),
            None if table.is_empty() => diagnostic.help(format!("it has no {}s at all", class.what())),
            None => {
                let some: Vec<String> = table.iter().take(4).map(|name| format!("`{name}`")).collect();
                let more = if table.len() > 4 { ", …" } else { "" };
                diagnostic.help(format!("it has {}{more}", some.join(", ")))
            }
        }
    }

    fn locations(&self, text: &str, span: std::ops::Range<usize>) -> Result<Vec<LocId>, Diagnostic> {
        if let Some(number) = text.parse().ok().and_then(LocId::from_number) {
            return Ok(vec![number]);
        }
        let entries = (0..self.names.location_table().len()).filter_map(LocId::from_index);
        let is_it =
            |found: &str| found == text || found.strip_suffix(text).is_some_and(|directory| directory.ends_with('/'));
        let found: Vec<LocId> = entries
            .clone()
            .filter(|&loc| {
                let place = self.names.location(loc);
                place.text.is_some_and(is_it)
            })
            .collect();
        // A line that this run did not reach is no mistake; a file that nothing happened in is.
        let file = text.rsplit_once(':').map_or(text, |(file, _)| file);
        let mut files: Vec<&str> = entries
            .filter_map(|loc| self.names.location(loc).file)
            .map(|f| f.rsplit('/').next().unwrap_or(f))
            .collect();
        files.sort_unstable();
        files.dedup();
        if !found.is_empty() || files.iter().any(|known| *known == file.rsplit('/').next().unwrap_or(file)) {
            return Ok(found);
        }
        let diagnostic = Diagnostic::new(span, format!("nothing in the trace happened at `{text}`"));
        let close = close_names(file, files.into_iter());
        Err(match suggestion(&close) {
            Some(help) => diagnostic.help(help),
            None => diagnostic.help("expected a location of the trace, such as \"file.c:12\""),
        })
    }
}

/// What a name means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Variables(Vec<VarId>),
    Lock(LockId),
    Condition(CondId),
    Thread(ThreadId),
    Locations(Vec<LocId>),
}

/// Where an initial value is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialFrom {
    /// The property file declares it.
    Declared,
    /// A read saw it.
    Read,
    /// Nothing says otherwise.
    Assumed,
}

/// A variable whose value matters.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The variable.
    pub variable: VarId,
    /// What the property calls it.
    pub name: String,
    /// What it holds before its first write.
    pub initial: i64,
    /// How that is known.
    pub from: InitialFrom,
    /// The first write whose value is not known, if there is one.
    pub valueless: Option<EventId>,
}

/// A property about a certain trace.
#[derive(Clone, Debug)]
pub struct Bound {
    /// What it says.
    pub property: Property,
    /// The variables whose values matter.
    pub watched: Vec<Watched>,
    pub(crate) meanings: Vec<Meaning>,
    /// Written values that only reads tell.
    inferred: FxHashMap<EventId, i64>,
    slots: FxHashMap<VarId, usize>,
    sees_all: bool,
}

impl Bound {
    /// Binds every property of a file to the names of a trace or stream; all that is wrong, if anything is.
    pub fn all(file: &PropertyFile, scope: &Scope<'_>) -> Result<Vec<Bound>, Vec<Diagnostic>> {
        let mut bound = Vec::new();
        let mut wrong = Vec::new();
        for initial in &file.initial {
            if scope.variables(&initial.name.text).is_empty() {
                wrong.push(scope.unknown(RefClass::Variable, &initial.name.text, initial.name.span.clone()));
            }
        }
        for property in &file.properties {
            match Bound::new(property, &file.initial, scope) {
                Ok(property) => bound.push(property),
                Err(problems) => wrong.extend(problems),
            }
        }
        if wrong.is_empty() { Ok(bound) } else { Err(wrong) }
    }

    /// Binds one property.
    pub fn new(property: &Property, initial: &[InitialValue], scope: &Scope<'_>) -> Result<Bound, Vec<Diagnostic>> {
        let mut wrong = Vec::new();
        let mut meanings = Vec::new();
        for name in &property.names {
            let id = |class| scope.names.table(class).lookup(name.text.as_bytes()).map(|id| id as usize);
            let meaning = match name.class {
                RefClass::Variable => {
                    Some(scope.variables(&name.text)).filter(|v| !v.is_empty()).map(Meaning::Variables)
                }
                RefClass::Lock => id(ObjectClass::Lock).map(|id| Meaning::Lock(LockId::new(id))),
                RefClass::Condition => id(ObjectClass::Condition).map(|id| Meaning::Condition(CondId::new(id))),
                RefClass::Thread => id(ObjectClass::Thread).map(|id| Meaning::Thread(ThreadId::new(id))),
                RefClass::Location => match scope.locations(&name.text, name.span.clone()) {
                    Ok(found) => Some(Meaning::Locations(found)),
                    Err(problem) => {
                        wrong.push(problem);
                        continue;
                    }
                },
            };
            match meaning {
                Some(meaning) => meanings.push(meaning),
                None => wrong.push(scope.unknown(name.class, &name.text, name.span.clone())),
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let mut bound = Bound {
            property: property.clone(),
            watched: Vec::new(),
            meanings,
            inferred: FxHashMap::default(),
            slots: FxHashMap::default(),
            sees_all: false,
        };
        let mut used: Vec<NameIx> = Vec::new();
        property.visit(&mut |formula| match formula {
            Formula::Compare(a, _, b) => {
                a.variables(&mut used);
                b.variables(&mut used);
            }
            Formula::Event(EventAtom::Any | EventAtom::Race(_)) => bound.sees_all = true,
            _ => {}
        });
        used.sort_unstable();
        used.dedup();
        for name in used {
            let Meaning::Variables(parts) = &bound.meanings[name] else { continue };
            let (text, span) = (&property.names[name].text, &property.names[name].span);
            let [variable] = parts[..] else {
                let message = format!("`{text}` is accessed in {} parts, none of which is its value", parts.len());
                wrong.push(
                    Diagnostic::new(span.clone(), message)
                        .help("compare one of its parts, by its name in quotation marks"),
                );
                continue;
            };
            if bound.slots.contains_key(&variable) {
                continue;
            }
            let declared = initial.iter().rev().find(|one| scope.variables(&one.name.text) == [variable]);
            bound.slots.insert(variable, bound.watched.len());
            bound.watched.push(Watched {
                variable,
                name: text.clone(),
                initial: declared.map_or(0, |one| one.value),
                from: if declared.is_some() { InitialFrom::Declared } else { InitialFrom::Assumed },
                valueless: None,
            });
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        if let Some(trace) = scope.trace {
            bound.learn(trace);
        }
        Ok(bound)
    }

    /// Takes values from the reads of a trace.
    fn learn(&mut self, trace: &Trace) {
        if self.watched.is_empty() {
            return;
        }
        let mut last: Vec<Option<EventId>> = vec![None; self.watched.len()];
        let mut valueless: Vec<Vec<EventId>> = vec![Vec::new(); self.watched.len()];
        for event in trace.events() {
            let Some(&slot) = event.op.variable().and_then(|x| self.slots.get(&x)) else { continue };
            if event.op.writes() {
                last[slot] = Some(event.id);
                if event.value.is_none() {
                    valueless[slot].push(event.id);
                }
            } else if let Some(value) = event.value {
                match last[slot] {
                    Some(write) if trace.value(write).is_none() => drop(self.inferred.insert(write, value)),
                    None if self.watched[slot].from == InitialFrom::Assumed => {
                        self.watched[slot].initial = value;
                        self.watched[slot].from = InitialFrom::Read;
                    }
                    _ => {}
                }
            }
        }
        for (watched, writes) in self.watched.iter_mut().zip(valueless) {
            watched.valueless = writes.into_iter().find(|write| !self.inferred.contains_key(write));
        }
    }

    /// The variable that a watched write changes, by its number among the watched, and the value if it is known.
    pub(crate) fn change(&self, event: &Event) -> Option<(usize, Option<i64>)> {
        if !event.op.writes() {
            return None;
        }
        let slot = *self.slots.get(&event.op.variable()?)?;
        Some((slot, event.value.or_else(|| self.inferred.get(&event.id).copied())))
    }
    /// The same for a reading event that sees another write than in the trace: nobody knows what an update then writes.
    pub(crate) fn changed_change(&self, event: &Event) -> Option<(usize, Option<i64>)> {
        self.change(event).map(|(slot, _)| (slot, None))
    }
    /// The value that an event writes to a watched variable, if that is known.
    pub fn written(&self, event: &Event) -> Option<i64> {
        self.change(event).and_then(|(_, value)| value)
    }
    pub(crate) fn slot(&self, name: NameIx) -> Option<usize> {
        match &self.meanings[name] {
            Meaning::Variables(parts) => parts.first().and_then(|x| self.slots.get(x)).copied(),
            _ => None,
        }
    }

    /// Whether a condition on one event holds; races and [`EventAtom::Seen`] are not decided here.
    pub(crate) fn holds(&self, atom: EventAtom, event: &Event) -> bool {
        let variable = |name: NameIx, op: Op| match (&self.meanings[name], op.variable()) {
            (Meaning::Variables(parts), Some(x)) => parts.contains(&x),
            _ => false,
        };
        let lock = |name: NameIx, l: LockId| self.meanings[name] == Meaning::Lock(l);
        let condition = |name: NameIx, c: CondId| self.meanings[name] == Meaning::Condition(c);
        match (atom, event.op) {
            (EventAtom::Write(x), op) => op.writes() && variable(x, op),
            (EventAtom::Read(x), op) => op.reads() && variable(x, op),
            (EventAtom::Update(x), op) => op.reads() && op.writes() && variable(x, op),
            (EventAtom::Access(x) | EventAtom::Race(x), op) => variable(x, op),
            (EventAtom::Acquire(l), Op::Acquire(lock_id, _)) | (EventAtom::Release(l), Op::Release(lock_id, _)) => {
                lock(l, lock_id)
            }
            (EventAtom::Sleep(c), Op::Sleep(id))
            | (EventAtom::Notify(c), Op::Notify(id, _))
            | (EventAtom::Wake(c), Op::Wake(id)) => condition(c, id),
            (EventAtom::At(l), _) => matches!(&self.meanings[l], Meaning::Locations(all) if all.contains(&event.loc)),
            (EventAtom::By(t), _) => self.meanings[t] == Meaning::Thread(event.thread),
            (EventAtom::Any | EventAtom::Seen, _) => true,
            _ => false,
        }
    }

    /// Whether the property sees an event: it names it, or the event changes a value it compares.
    ///
    /// `by` and `_` ask about events, and do not name any.
    pub fn sees(&self, event: &Event) -> bool {
        if self.sees_all || self.change(event).is_some() {
            return true;
        }
        let mut seen = false;
        self.property.visit(&mut |formula| {
            if let Formula::Event(atom) = formula
                && !matches!(atom, EventAtom::By(_) | EventAtom::Seen)
            {
                seen |= self.holds(*atom, event);
            }
        });
        seen
    }

    /// Variables whose initial value is taken to be 0 because nothing says otherwise.
    pub fn assumed(&self) -> impl Iterator<Item = &Watched> {
        self.watched.iter().filter(|watched| watched.from == InitialFrom::Assumed)
    }
    /// Whether the end of a complete run means something to the property.
    pub fn cares_about_end(&self) -> bool {
        self.property.cares_about_end()
    }
    pub(crate) fn body(&self) -> &Body {
        &self.property.body
    }
}
