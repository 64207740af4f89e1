//! What lambdas are called: debug information gives the operator that calls one no more than that name.

use super::units::{Debug, EntryAt, Met, Next, Value, children, contains, is_class, walk};
use gimli::UnitOffset;
use rustc_hash::FxHashMap;

/// What the functions are called that were inlined at `pc`, the innermost first, as far as they are lambdas.
pub(super) fn inlined_at(debug: &Debug, pc: u64) -> Vec<Option<String>> {
    let mut chain = Vec::new();
    let Some(function) = debug.function(pc) else { return chain };
    let Some((unit, lambdas)) = debug.unit(function.unit).zip(debug.lambdas(function.unit)) else { return chain };
    walk(unit, Some(function.offset), |met| {
        if met.depth <= 0 && met.offset != function.offset {
            return Next::Stop;
        }
        if met.tag() == gimli::DW_TAG_inlined_subroutine
            && let Ok(entry) = unit.entry(UnitOffset(met.offset))
        {
            if !contains(&debug.code_of(unit, &entry), pc) {
                return Next::Behind;
            }
            chain.push(operator_of(debug, EntryAt { offset: met.offset, ..function }, lambdas));
        }
        Next::Inside
    });
    chain.reverse();
    chain
}

/// The lambda whose operator an inlined copy is.
fn operator_of(debug: &Debug, copy: EntryAt, lambdas: &FxHashMap<usize, String>) -> Option<String> {
    let mut at = copy;
    // The copy refers to the abstract function, and that to its declaration in the class.
    for _ in 0..4 {
        at = debug.origin(at.unit, &debug.entry(at)?)?;
        if let Some(name) = lambdas.get(&at.offset).filter(|_| at.unit == copy.unit) {
            return Some(name.clone());
        }
    }
    None
}

/// The operators of the classes that stand for lambdas, with the names that symbols give them: numbered in the order of the
/// source, those with the same parameters in one function from 1. Such a class has no name, and lies in a function.
pub(super) fn of_unit(debug: &Debug, number: u32) -> FxHashMap<usize, String> {
    let Some(unit) = debug.unit(number) else { return FxHashMap::default() };
    let at = |offset| EntryAt { unit: number, offset };
    // Functions and nameless classes around what is being read.
    let mut scopes: Vec<(isize, Option<usize>)> = Vec::new();
    let mut operators: Vec<(usize, usize)> = Vec::new();
    let is_operator = |met: &Met<'_>| debug.name(at(met.offset)).as_deref() == Some("operator()");
    walk(unit, None, |met| {
        while scopes.last().is_some_and(|(open, _)| *open >= met.depth) {
            scopes.pop();
        }
        if met.tag() == gimli::DW_TAG_subprogram {
            let in_lambda = matches!(scopes.last(), Some((open, None)) if *open == met.depth - 1);
            if in_lambda && is_operator(met) {
                operators.extend(scopes.iter().rev().find_map(|(_, function)| *function).map(|f| (f, met.offset)));
            } else {
                scopes.push((met.depth, Some(met.offset)));
            }
        } else if is_class(met.tag()) {
            if met.has(gimli::DW_AT_name) && scopes.is_empty() {
                return Next::Behind;
            }
            if !met.has(gimli::DW_AT_name) && !scopes.is_empty() {
                scopes.push((met.depth, None));
            }
        }
        Next::Inside
    });
    // Function, parameters, line and column, operator.
    let mut found: Vec<(String, String, (u64, u64), usize)> = Vec::new();
    for (function, operator) in operators {
        let Some(entry) = debug.entry(at(operator)) else { continue };
        let number = |at| entry.attr_value(at).and_then(|value| value.udata_value()).unwrap_or(0);
        let line = (number(gimli::DW_AT_decl_line), number(gimli::DW_AT_decl_column));
        let around = debug.function_name(at(function)).unwrap_or_default();
        found.push((around, parameters(debug, at(operator)), line, operator));
    }
    found.sort();
    let mut names = FxHashMap::default();
    for same in found.chunk_by(|a, b| (&a.0, &a.1) == (&b.0, &b.1)) {
        for (at, (function, parameters, _, operator)) in same.iter().enumerate() {
            let lambda = format!("{function}::{{lambda({parameters})#{}}}", at + 1);
            names.insert(*operator, format!("{lambda}::operator()({parameters}) const"));
        }
    }
    names
}

/// The types of a function's parameters, but for the object that it is called on.
fn parameters(debug: &Debug, function: EntryAt) -> String {
    let Some(unit) = debug.unit(function.unit) else { return String::new() };
    let given = children(unit, function.offset)
        .into_iter()
        .filter(|child| child.tag() == gimli::DW_TAG_formal_parameter && !child.has_attr(gimli::DW_AT_artificial));
    let types = given.map(|child| referred_text(debug, function.unit, child.attr_value(gimli::DW_AT_type), 8));
    types.collect::<Vec<_>>().join(", ")
}

fn referred_text(debug: &Debug, unit: u32, ty: Option<Value>, depth: u32) -> String {
    let at = ty.filter(|_| depth > 0).and_then(|ty| debug.referred(unit, ty));
    at.map_or_else(|| "void".to_owned(), |at| type_text(debug, at, depth))
}

/// What a type is called.
pub(super) fn type_text(debug: &Debug, at: EntryAt, depth: u32) -> String {
    let Some(entry) = debug.entry(at) else { return "void".to_owned() };
    let inner = || referred_text(debug, at.unit, entry.attr_value(gimli::DW_AT_type), depth - 1);
    match entry.tag() {
        gimli::DW_TAG_pointer_type => inner() + "*",
        gimli::DW_TAG_reference_type => inner() + "&",
        gimli::DW_TAG_rvalue_reference_type => inner() + "&&",
        gimli::DW_TAG_const_type => inner() + " const",
        _ => debug.name(at).unwrap_or_else(|| "?".to_owned()),
    }
}
