//! Random tiny traces with every operation of the format, as text.
//!
//! A thread proposes a line at random, and the line stays if the trace is still well-formed with it: so whatever the
//! format allows will come up, the odd mixtures too.

use portent_trace::Trace;
use std::fmt::Write as _;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// What threads do, each about as often as it is listed.
const PLAIN: &[&str] = &["r(x)", "w(x)", "r(y)", "w(y)", "u(x)", "r.acq(x)", "w.rel(x)"];
const FAMILIES: &[&[&str]] = &[
    &["acq(l)", "acq(l)", "rel(l)", "rel(l)", "acq(m)", "rel(m)", "busy(l)"],
    &["acq(l)", "acq(m)", "rel(l)", "rel(m)"],
    &["acq(l)", "rel(l)", "onceb(o)", "oncee(o)", "oncep(o)"],
    &["acqs(l)", "rels(l)", "acq(l)", "rel(l)", "busys(l)"],
    &["slp(c)", "ntf(c)", "ntf(c)", "nta(c)", "wak(c)", "wak(c)", "tmo(c)"],
    &["acq(l)", "acq(l)", "rela(l)", "acqa(l)", "rel(l)"],
    &["post(s)", "post(s)", "semw(s)", "semw(s)", "semf(s)"],
    &["post(s)", "semw(s)", "post(p)", "semw(p)", "semf(p)"],
    &["onceb(o)", "oncee(o)", "oncep(o)", "oncep(o)"],
    &["arr(b)", "arr(b)", "dep(b)", "dep(b)"],
    &["cdn(f)", "cdn(f)", "lwt(f)"],
    &["snd(k)", "snd(k)", "rcv(k)"],
    &["hb(e)", "ha(e)", "hb(e)", "ha(e)"],
    &["ntf(d)", "wai(d)"],
    &["begin(q)", "end(q)", "begin(q)", "call(g)", "ret(g)"],
    &["branch"],
];

/// A trace of this seed.
pub(crate) fn every_operation(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
    random.below(2);
    let threads = 2 + random.below(3);
    let length = 8 + random.below(9) as usize;
    let values = random.below(2) == 0;
    let families: Vec<&[&str]> =
        (0..1 + random.below(3)).map(|_| FAMILIES[random.below(FAMILIES.len() as u64) as usize]).collect();
    let mut memory = [0, 0];
    let mut inside = [false; 4];
    let mut text = String::new();
    let mut lines = 0;
    if random.below(3) == 0 {
        writeln!(text, "T0|semi(s)|init|{}", random.below(3)).unwrap();
        lines += 1;
    }
    for child in (1..threads).filter(|_| random.below(3) == 0).collect::<Vec<_>>() {
        writeln!(text, "T0|fork(T{child})|{lines}").unwrap();
        lines += 1;
    }
    let mut thread = 0;
    for _ in 0..300 {
        if lines >= length {
            break;
        }
        if random.below(2) == 0 {
            thread = random.below(threads);
        }
        let op = match random.below(20) {
            0 => format!("join(T{})", random.below(threads)),
            1..8 => PLAIN[random.below(PLAIN.len() as u64) as usize].to_owned(),
            _ => {
                let family = families[random.below(families.len() as u64) as usize];
                family[random.below(family.len() as u64) as usize].to_owned()
            }
        };
        // A thread is inside a barrier once.
        if op == "arr(b)" && inside[thread as usize] {
            continue;
        }
        let x = usize::from(op.ends_with("(y)"));
        let writes = op.starts_with('w') && !op.starts_with("wa") || op.starts_with('u');
        let number = if writes { random.below(2) as i64 } else { memory[x] };
        let is_access = writes || op.starts_with("r(") || op.starts_with("r.");
        let value = if values && is_access { format!("|{number}") } else { String::new() };
        let longer = format!("{text}T{thread}|{op}|{lines}{value}\n");
        if Trace::from_std(&longer).is_err() {
            continue;
        }
        match op.as_str() {
            "arr(b)" => inside[thread as usize] = true,
            "dep(b)" => inside[thread as usize] = false,
            _ if writes => memory[x] = number,
            _ => {}
        }
        text = longer;
        lines += 1;
    }
    text
}
