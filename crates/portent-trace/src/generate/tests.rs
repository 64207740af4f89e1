//! What the generators promise.

use super::*;
use crate::trace::Trace;

#[test]
fn tiny_traces_are_well_formed_small_and_repeatable() {
    for shape in TinyShape::all() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            let trace = tiny(seed, &shape);
            lengths.insert(trace.len());
            assert!(trace.len() <= shape.events as usize, "{} {seed}: {}", shape.name, trace.len());
            if seed < 200 {
                let text = tiny_std(seed, &shape);
                assert_eq!(text, tiny_std(seed, &shape));
                assert_eq!(Trace::from_std(&text).unwrap().len(), trace.len());
            }
        }
        assert!(lengths.len() > 3, "{}: lengths {lengths:?}", shape.name);
    }
}

#[test]
fn the_shape_with_everything_has_every_tiny_operation() {
    let mut text = String::new();
    for seed in 0..3000 {
        text.push_str(&tiny_std(seed, &TinyShape::EVERYTHING));
    }
    for op in
        "r w u acq rel acqs rels busy busys fork join snd rcv slp ntf nta wak tmo begin end r.rlx w.rel".split(' ')
    {
        assert!(text.contains(&format!("|{op}(")), "{op}");
    }
    assert!(text.contains("|branch|"));
}
