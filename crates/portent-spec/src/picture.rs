//! The monitor of a property as a picture: its states, and which events lead from one to the other.
//!
//! A monitor has letters for events of a trace; here there is no trace. So it is driven with an event of every kind that the property
//! could tell apart: each operation on each object that it names, by each thread and at each place that it names and by others, with values around
//! the numbers that stand in it. Values that this does not try are drawn as none: the picture is an illustration, not a proof.

use crate::ast::{PropertyFile, RefClass};
use crate::bind::{Bound, Scope};
use crate::compile::Compiled;
use crate::diagnostic::Diagnostic;
use crate::monitor::{Judgement, Letter, Monitor};
use portent_trace::{
    CondId, Event, EventId, LocId, LockId, Mode, Names, ObjectClass, Op, Problem, Reach, ReadOrder, ThreadId,
    UpdateOrder, VarId, WriteOrder,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// States of a picture, at most: more cannot be read.
const MOST: usize = 60;
/// Events at an arrow, at most.
const LABELS: usize = 4;

/// A monitor, to be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// What the property is called, and what it says.
    pub name: String,
    text: String,
    states: Vec<State>,
    /// From one state to another: what leads there.
    arrows: BTreeMap<(usize, usize), Vec<String>>,
    /// Whether there are more states than are drawn.
    is_cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// A run that ends here breaks the property.
    BadAtEnd,
    Broken,
}

impl Picture {
    /// The monitors of all properties of a file; what is wrong with it, if something is.
    pub fn all(file: &PropertyFile) -> Result<Vec<Picture>, Vec<Diagnostic>> {
        let whole = |why: String| vec![Diagnostic::new(0..0, why)];
        let mut names = names_in(file).map_err(|problem| whole(problem.to_string()))?;
        let others = others(&mut names).map_err(|problem| whole(problem.to_string()))?;
        let bound = Bound::all(file, &Scope::of_names(&names))?;
        let draw = |bound: &Bound| {
            let span = bound.property.span.clone();
            let monitor = Compiled::new(bound).map_err(|why| vec![Diagnostic::new(span, why.to_string())])?;
            Ok(Picture::of(bound, monitor, &events(bound, &names, &others)))
        };
        bound.iter().map(draw).collect()
    }

    fn of(bound: &Bound, mut monitor: Compiled, events: &[(Event, String)]) -> Picture {
        let mut letters: Vec<(Letter, &str)> = Vec::new();
        for (event, label) in events {
            if let Some(letter) = monitor.letter(event)
                && !letters.iter().any(|(known, _)| *known == letter)
            {
                letters.push((letter, label));
            }
        }
        let mut start = vec![0; monitor.words()];
        monitor.start(&mut start);
        let mut picture = Picture {
            name: bound.property.name.clone(),
            text: bound.property.text.clone(),
            states: Vec::new(),
            arrows: BTreeMap::new(),
            is_cut: false,
        };
        // A broken property stays so, whatever follows.
        let mut known: Vec<Option<Vec<u64>>> = vec![Some(start)];
        let mut next = 0;
        while let Some(here) = known.get(next).cloned() {
            let is_bad = |state: &Vec<u64>| monitor.cares_about_end() && monitor.finish(state) == Judgement::Bad;
            picture.states.push(match &here {
                None => State::Broken,
                Some(state) if is_bad(state) => State::BadAtEnd,
                Some(_) => State::Good,
            });
            for &(letter, label) in here.iter().flat_map(|_| &letters) {
                let mut state = here.clone().unwrap_or_default();
                let broken = monitor.step(&mut state, letter) == Judgement::Bad;
                let to = if broken { None } else { Some(state) };
                let at = known.iter().position(|one| *one == to).unwrap_or(known.len());
                if at == known.len() {
                    if known.len() == MOST {
                        picture.is_cut = true;
                        continue;
                    }
                    known.push(to);
                }
                picture.arrows.entry((next, at)).or_default().push(label.to_owned());
            }
            next += 1;
        }
        picture
    }

    /// How many states it has.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    fn title(&self) -> String {
        let more = if self.is_cut { format!(" (the first {MOST} states)") } else { String::new() };
        format!("{}: {}{more}", self.name, self.text)
    }

    fn label(events: &[String]) -> String {
        let mut label = events[..events.len().min(LABELS)].join(", ");
        if events.len() > LABELS {
            let _ = write!(label, ", … ({} more)", events.len() - LABELS);
        }
        label
    }

    fn state_name(&self, state: usize) -> String {
        match self.states[state] {
            State::Broken => "broken".to_owned(),
            _ => state.to_string(),
        }
    }

    /// As DOT, for Graphviz.
    pub fn dot(&self) -> String {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let mut dot =
            format!("digraph \"{}\" {{\n  rankdir=LR;\n  label=\"{}\";\n", quoted(&self.name), quoted(&self.title()));
        dot.push_str("  begin [shape=point];\n  begin -> 0;\n");
        for (at, state) in self.states.iter().enumerate() {
            let look = match state {
                State::Good => "circle",
                State::BadAtEnd => "circle, style=dashed, color=red",
                State::Broken => "doublecircle, color=red",
            };
            let _ = writeln!(dot, "  {at} [shape={look}, label=\"{}\"];", self.state_name(at));
        }
        for ((from, to), events) in &self.arrows {
            let _ = writeln!(dot, "  {from} -> {to} [label=\"{}\"];", quoted(&Self::label(events)));
        }
        dot + "}\n"
    }

    /// As SVG: states on a circle, arrows bent to the left.
    pub fn svg(&self) -> String {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let count = self.states.len();
        let radius = (45.0 * count as f64).max(150.0);
        let size = 2.0 * radius + 260.0;
        let place = |state: usize| {
            let angle = std::f64::consts::TAU * state as f64 / count as f64 + std::f64::consts::PI;
            (size / 2.0 + radius * angle.cos(), size / 2.0 + radius * angle.sin())
        };
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size:.0} {size:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\">\
             <path d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n<text x=\"10\" y=\"20\" font-size=\"14\">{}</text>\n",
            escaped(&self.title())
        );
        for (&(from, to), events) in &self.arrows {
            let ((x, y), (u, v)) = (place(from), place(to));
            let label = escaped(&Self::label(events));
            let (path, at) = if from == to {
                // Outwards, away from the middle.
                let (dx, dy) = ((x - size / 2.0) / radius, (y - size / 2.0) / radius);
                let (px, py) = (x + 60.0 * dx, y + 60.0 * dy);
                let (ax, ay) = (px - 25.0 * dy, py + 25.0 * dx);
                let (bx, by) = (px + 25.0 * dy, py - 25.0 * dx);
                let (sx, sy) = (x + 18.0 * dx, y + 18.0 * dy);
                (format!("M{sx:.0} {sy:.0} C{ax:.0} {ay:.0} {bx:.0} {by:.0} {sx:.0} {sy:.0}"), (px, py))
            } else {
                let length = ((u - x).powi(2) + (v - y).powi(2)).sqrt().max(1.0);
                let (dx, dy) = ((u - x) / length, (v - y) / length);
                let (mx, my) = ((x + u) / 2.0 + 30.0 * dy, (y + v) / 2.0 - 30.0 * dx);
                let (sx, sy, ex, ey) = (x + 18.0 * dx, y + 18.0 * dy, u - 20.0 * dx, v - 20.0 * dy);
                (format!("M{sx:.0} {sy:.0} Q{mx:.0} {my:.0} {ex:.0} {ey:.0}"), (mx, my))
            };
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"black\" marker-end=\"url(#tip)\"/>\n\
                 <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>",
                at.0, at.1
            );
        }
        for (at, state) in self.states.iter().enumerate() {
            let (x, y) = place(at);
            let look = match state {
                State::Good => "stroke=\"black\"",
                State::BadAtEnd => "stroke=\"red\" stroke-dasharray=\"3\"",
                State::Broken => "stroke=\"red\" stroke-width=\"3\"",
            };
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.0}\" cy=\"{y:.0}\" r=\"18\" fill=\"white\" {look}/>\n\
                 <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                y + 4.0,
                self.state_name(at)
            );
        }
        svg + "</svg>\n"
    }
}

/// The names that a file uses, as if a trace had them.
fn names_in(file: &PropertyFile) -> Result<Names, Problem> {
    let mut names = Names::default();
    let used = file.properties.iter().flat_map(|property| &property.names);
    for name in used.chain(file.initial.iter().map(|initial| &initial.name)) {
        let text = name.text.as_bytes();
        match name.class {
            RefClass::Variable => drop(names.intern(ObjectClass::Variable, text)?),
            RefClass::Lock => drop(names.intern(ObjectClass::Lock, text)?),
            RefClass::Condition => drop(names.intern(ObjectClass::Condition, text)?),
            RefClass::Thread => drop(names.intern(ObjectClass::Thread, text)?),
            RefClass::Location => drop(names.intern_location(text)?),
        }
    }
    Ok(names)
}

/// Threads and a place that no property names.
struct Others {
    threads: [ThreadId; 2],
    place: LocId,
}

fn others(names: &mut Names) -> Result<Others, Problem> {
    let one = names.intern(ObjectClass::Thread, b"another thread")?;
    let two = names.intern(ObjectClass::Thread, b"a third thread")?;
    let threads = [one, two].map(|thread| ThreadId::new(thread as usize));
    Ok(Others { threads, place: names.intern_location(b"elsewhere")? })
}

/// Events of every kind that a property could tell apart, in words.
fn events(bound: &Bound, names: &Names, others: &Others) -> Vec<(Event, String)> {
    let used = |class: RefClass| bound.property.names.iter().filter(move |name| name.class == class);
    let id = |class, text: &str| names.table(class).lookup(text.as_bytes()).map(|id| id as usize);
    let mut operations: Vec<(Op, Option<i64>, String)> = Vec::new();
    let values = values_in(&bound.property.text);
    for name in used(RefClass::Variable) {
        let Some(x) = id(ObjectClass::Variable, &name.text).map(VarId::new) else { continue };
        operations.push((Op::Read(x, ReadOrder::Plain), None, format!("read {}", name.text)));
        let write = |value: &i64| (Op::Write(x, WriteOrder::Plain), Some(*value), format!("{} = {value}", name.text));
        operations.extend(values.iter().map(write));
        let update = Op::Update(x, UpdateOrder::SeqCst);
        operations.push((update, values.first().copied(), format!("update {}", name.text)));
    }
    for name in used(RefClass::Lock) {
        let Some(l) = id(ObjectClass::Lock, &name.text).map(LockId::new) else { continue };
        operations.push((Op::Acquire(l, Mode::Exclusive), None, format!("acquire {}", name.text)));
        operations.push((Op::Release(l, Mode::Exclusive), None, format!("release {}", name.text)));
    }
    for name in used(RefClass::Condition) {
        let Some(c) = id(ObjectClass::Condition, &name.text).map(CondId::new) else { continue };
        operations.push((Op::Sleep(c), None, format!("sleep {}", name.text)));
        operations.push((Op::Notify(c, Reach::One), None, format!("notify {}", name.text)));
        operations.push((Op::Wake(c), None, format!("wake {}", name.text)));
    }
    operations.push((Op::Branch, None, "another event".to_owned()));
    let threads = used(RefClass::Thread).filter_map(|name| id(ObjectClass::Thread, &name.text).map(ThreadId::new));
    let threads: Vec<ThreadId> = others.threads.into_iter().chain(threads).collect();
    let named: BTreeSet<&str> = used(RefClass::Location).map(|name| name.text.as_str()).collect();
    let places = (0..names.location_table().len()).filter_map(LocId::from_index);
    let places = places.filter(|&place| names.location(place).text.is_some_and(|text| named.contains(text)));
    let places: Vec<LocId> = std::iter::once(others.place).chain(places).collect();
    let mut all = Vec::new();
    for (op, value, label) in &operations {
        for &thread in &threads {
            for &loc in &places {
                let mut label = label.clone();
                if thread != others.threads[0] {
                    let _ = write!(label, " by {}", names.thread(thread));
                }
                if loc != others.place {
                    let _ = write!(label, " at {}", names.location(loc));
                }
                let event = Event { id: EventId::new(0), thread, op: *op, value: *value, loc, tries: false };
                all.push((event, label));
            }
        }
    }
    all
}

/// Values that comparisons with the numbers of a text tell apart.
fn values_in(text: &str) -> Vec<i64> {
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<i64>().ok());
    let around = numbers.chain([0]).flat_map(|number| [number.saturating_sub(1), number, number.saturating_add(1)]);
    around.collect::<BTreeSet<i64>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn picture(text: &str) -> Picture {
        Picture::all(&parse(text).unwrap()).unwrap().remove(0)
    }

    #[test]
    fn an_invariant_has_states_for_what_it_tells_apart_and_one_where_it_is_broken() {
        let drawn = picture("property small: always x < 2");
        assert_eq!(drawn.states(), 2, "{drawn:?}");
        assert_eq!(drawn.arrows[&(0, 0)], ["x = -1"]);
        assert_eq!(drawn.arrows[&(0, 1)], ["x = 2"]);
        assert!(drawn.dot().contains("1 [shape=doublecircle, color=red, label=\"broken\"];"), "{}", drawn.dot());
        assert!(drawn.svg().contains(">broken</text>") && drawn.svg().contains("x &lt; 2"), "{}", drawn.svg());
    }

    #[test]
    fn what_was_before_makes_states() {
        let drawn = picture("property order: always (landing == 1 -> prev permit == 1)");
        let broken = drawn.states.iter().position(|state| *state == State::Broken).unwrap();
        let into: Vec<&String> =
            drawn.arrows.iter().filter(|((_, to), _)| *to == broken).flat_map(|(_, e)| e).collect();
        assert!(into.iter().any(|label| *label == "landing = 1"), "{into:?}");
        assert!(drawn.states() > 3 && !drawn.is_cut);
    }
}
