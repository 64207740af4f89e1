//! Random properties about the names of a trace, for testing engines against each other.

use portent_trace::{Names, ObjectClass};

/// A property with one name, `p`: the same for the same seed and names.
pub fn random_property(seed: u64, names: &Names) -> String {
    let mut lots = Lots { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d, names };
    let body = match lots.below(10) {
        0..5 => format!("always {}", lots.formula(3)),
        5 => format!("never {}", lots.formula(2)),
        6 => format!("final {}", lots.formula(2)),
        7 => format!("never prefix ({})", lots.sequence(3)),
        _ => format!("never ({})", lots.sequence(3)),
    };
    let initial = if lots.below(3) == 0 {
        format!("initial {} = {}\n", lots.name(ObjectClass::Variable), lots.below(3))
    } else {
        String::new()
    };
    let initial = if names.count(ObjectClass::Variable) == 0 { String::new() } else { initial };
    format!("{initial}property p: {body}\n")
}

/// A property, `p`, that asks about what is read, if there is a variable at all.
pub fn random_read_property(seed: u64, names: &Names) -> String {
    if names.count(ObjectClass::Variable) == 0 {
        return random_property(seed, names);
    }
    let mut lots = Lots { state: seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x2545_f491_4f6c_dd1d, names };
    let word = ["read", "read", "read", "access", "update"][lots.below(5)];
    let x = lots.name(ObjectClass::Variable);
    let read = format!("{word}({x})");
    let about = if lots.below(2) == 0 {
        format!("({x} {} {})", ["==", "!=", "<"][lots.below(3)], lots.below(3))
    } else {
        lots.formula(1)
    };
    let body = match lots.below(8) {
        0 | 1 => format!("always ({read} -> {about})"),
        2 => format!("never ({read} & {about})"),
        3 => format!("always ({} -> once ({read} & {about}))", lots.formula(1)),
        4 => format!("always ({} -> !({about} since {read}))", lots.formula(0)),
        5 => format!("never ({read} . {})", lots.sequence(1)),
        6 => format!("never ({} . ({read} & ({})))", lots.class(), lots.comparison()),
        _ => format!("never (({read} & ({})) . {} . {})", lots.comparison(), lots.class(), lots.class()),
    };
    format!("property p: {body}\n")
}

struct Lots<'n> {
    state: u64,
    names: &'n Names,
}

impl Lots<'_> {
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn name(&mut self, class: ObjectClass) -> String {
        let count = self.names.count(class);
        if count == 0 {
            return "none".into();
        }
        let at = self.below(count);
        format!("\"{}\"", self.names.table(class).get(at))
    }

    fn has(&self, class: ObjectClass) -> bool {
        self.names.count(class) > 0
    }

    fn number(&mut self) -> String {
        if !self.has(ObjectClass::Variable) {
            return self.below(4).to_string();
        }
        match self.below(8) {
            0 => format!("({} + {})", self.name(ObjectClass::Variable), self.name(ObjectClass::Variable)),
            1 => format!("({} % 2)", self.name(ObjectClass::Variable)),
            2 | 3 => self.below(4).to_string(),
            _ => self.name(ObjectClass::Variable),
        }
    }

    fn comparison(&mut self) -> String {
        let sign = ["==", "!=", "<", "<=", ">", ">="][self.below(6)];
        let left = if self.has(ObjectClass::Variable) { self.name(ObjectClass::Variable) } else { self.number() };
        format!("{left} {sign} {}", if self.below(3) == 0 { self.number() } else { self.below(3).to_string() })
    }

    fn event(&mut self) -> String {
        loop {
            let (word, class) = match self.below(14) {
                0..4 => ("write", ObjectClass::Variable),
                4 | 5 => ("read", ObjectClass::Variable),
                6 => ("access", ObjectClass::Variable),
                7 => ("update", ObjectClass::Variable),
                8 | 9 => ("acquire", ObjectClass::Lock),
                10 => ("release", ObjectClass::Lock),
                11 => (["notify", "sleep", "wake"][self.below(3)], ObjectClass::Condition),
                _ => ("by", ObjectClass::Thread),
            };
            if self.has(class) {
                return format!("{word}({})", self.name(class));
            }
        }
    }

    fn formula(&mut self, depth: usize) -> String {
        if depth == 0 {
            return match self.below(30) {
                0..16 => format!("({})", self.comparison()),
                16 if self.has(ObjectClass::Variable) => format!("race({})", self.name(ObjectClass::Variable)),
                17 => "any".into(),
                18 => "true".into(),
                _ => self.event(),
            };
        }
        let next = depth - 1;
        match self.below(15) {
            0 => format!("!{}", self.formula(next)),
            1 => format!("({} & {})", self.formula(next), self.formula(next)),
            2 => format!("({} | {})", self.formula(next), self.formula(next)),
            3 | 4 => format!("({} -> {})", self.formula(next), self.formula(next)),
            5 => format!("({} <-> {})", self.formula(next), self.formula(next)),
            6 | 7 => format!("prev {}", self.formula(next)),
            8 => format!("once {}", self.formula(next)),
            9 => format!("historically {}", self.formula(next)),
            10 => format!("({} since {})", self.formula(next), self.formula(next)),
            11 => format!("start {}", self.formula(next)),
            12 => format!("end {}", self.formula(next)),
            13 => format!("[{}, {})", self.formula(next), self.formula(next)),
            _ => self.formula(0),
        }
    }

    fn class(&mut self) -> String {
        match self.below(8) {
            0 => format!("!{}", self.event()),
            1 => format!("({} & {})", self.event(), self.event()),
            2 => format!("({} & ({}))", self.event(), self.comparison()),
            3 => "_".into(),
            4 => format!("!({} | {})", self.event(), self.event()),
            _ => self.event(),
        }
    }

    fn sequence(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.class();
        }
        let next = depth - 1;
        match self.below(10) {
            0..4 => format!("{} . {}", self.sequence(next), self.sequence(next)),
            4 => format!("({} | {})", self.sequence(next), self.sequence(next)),
            5 => format!("({} & {})", self.sequence(next), self.sequence(next)),
            6 => format!("({})* . {}", self.sequence(next), self.class()),
            7 => format!("({})+", self.sequence(next)),
            8 => format!("({}) . ~({}) . {}", self.class(), self.sequence(next), self.class()),
            _ => format!("{} . end", self.sequence(next)),
        }
    }
}
