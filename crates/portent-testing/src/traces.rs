//! Random tiny traces by seed, and what a failing test says of one.

use portent_order::Model;
use portent_trace::Trace;
use portent_trace::format::{Dialect, StdReader, StdWriter};
use portent_trace::generate::{TinyShape, tiny, tiny_std};
use portent_trace::{InputBatch, InputEvent, InputSource, Layout, Names};
use std::fmt;
use std::ops::Range;

/// Shapes of tiny traces, which seeds take in turn.
#[derive(Clone, Debug)]
pub struct Shapes(Vec<TinyShape>);

impl Shapes {
    /// Every shape there is.
    pub fn all() -> Self {
        Self::that(|_| true)
    }
    /// Every shape with some property.
    pub fn that(fits: impl Fn(&TinyShape) -> bool) -> Self {
        TinyShape::all().filter(fits).collect()
    }
    /// Those of the shapes with another property as well.
    pub fn filter(&self, fits: impl Fn(&TinyShape) -> bool) -> Self {
        self.0.iter().filter(|shape| fits(shape)).cloned().collect()
    }
    /// The same shapes, changed.
    pub fn map(&self, change: impl Fn(TinyShape) -> TinyShape) -> Self {
        self.0.iter().cloned().map(change).collect()
    }
    /// The trace of a seed.
    pub fn tiny(&self, seed: u64) -> TinyTrace {
        let (turn, round) = (seed as usize % self.0.len(), seed as usize / self.0.len());
        let shape = self.0[turn].clone();
        TinyTrace { seed, round, trace: tiny(seed, &shape), shape }
    }
    /// The traces of seeds, one after the other.
    pub fn traces(&self, seeds: Range<u64>) -> impl Iterator<Item = TinyTrace> {
        seeds.map(|seed| self.tiny(seed))
    }
}

impl FromIterator<TinyShape> for Shapes {
    fn from_iter<I: IntoIterator<Item = TinyShape>>(shapes: I) -> Self {
        let shapes: Vec<TinyShape> = shapes.into_iter().collect();
        assert!(!shapes.is_empty(), "no shape is left");
        Self(shapes)
    }
}

/// A random tiny trace. Shown, it is all that is needed to make it again.
#[derive(Debug)]
pub struct TinyTrace {
    /// Its seed.
    pub seed: u64,
    /// How often every shape has had its turn before.
    pub round: usize,
    /// Its shape.
    pub shape: TinyShape,
    /// The trace.
    pub trace: Trace,
}

impl TinyTrace {
    /// A model for the seed: every shape meets all of them, in turn.
    pub fn model(&self) -> Model {
        Model::ALL[self.round % Model::ALL.len()]
    }
    /// The trace as STD text.
    pub fn text(&self) -> String {
        tiny_std(self.seed, &self.shape)
    }
}

impl fmt::Display for TinyTrace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "seed {}, {:?}\n{}", self.seed, self.shape, self.text())
    }
}

/// The events of STD text, with their names.
pub fn from_std(text: &str) -> (Names, Vec<InputEvent>) {
    let mut reader = StdReader::new(text.as_bytes());
    let (mut batch, mut events) = (InputBatch::default(), Vec::new());
    while reader.next_batch(&mut batch).unwrap_or_else(|error| panic!("{error}\n{text}")) {
        events.extend(batch.iter());
    }
    (reader.take_names(), events)
}

/// Everything of a source as STD text, without formulas.
pub fn to_std(source: &mut dyn InputSource) -> String {
    let mut text = Vec::new();
    let mut writer = StdWriter::new(&mut text, Dialect::Portent, Layout::default());
    let mut batch = InputBatch::default();
    while source.next_batch(&mut batch).expect("the source has no errors") {
        writer.write(source.names(), &batch).expect("writing to memory works");
    }
    writer.finish().expect("writing to memory works");
    String::from_utf8(text).expect("STD text is text")
}

/// STD text with another place for each event: the function gets the number of the event's line, from 0, and what stands
/// there now.
pub fn with_places(text: &str, place: impl Fn(usize, &str) -> String) -> String {
    let line = |(number, line): (usize, &str)| {
        let mut fields: Vec<String> = line.split('|').map(str::to_owned).collect();
        if let (Some(field), false) = (fields.get_mut(2), line.starts_with('#')) {
            *field = place(number, field);
        }
        fields.join("|") + "\n"
    };
    text.lines().enumerate().map(line).collect()
}

#[test]
fn every_shape_meets_every_model() {
    let shapes = Shapes::all();
    let met: std::collections::BTreeSet<_> =
        shapes.traces(0..3 * shapes.0.len() as u64).map(|tiny| (tiny.shape.name, tiny.model().name())).collect();
    assert_eq!(met.len(), 3 * shapes.0.len());
}

#[test]
fn places_are_changed_and_nothing_else() {
    let text = "T1|w(x)|1|7\n#!= 7\nT2|r(x)|2\n";
    assert_eq!(with_places(text, |line, old| format!("{line}.{old}")), "T1|w(x)|0.1|7\n#!= 7\nT2|r(x)|2.2\n");
    let (names, events) = from_std(text);
    assert_eq!((events.len(), names.thread(events[1].thread)), (2, "T2"));
}
