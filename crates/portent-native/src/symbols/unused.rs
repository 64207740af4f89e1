//! Updates whose result the program does not look at: counters of statistics, reference counts that only grow.
//!
//! The runtime performs atomic updates and returns the old value in `rax`. Whether anybody uses it shows in the code behind the call: it
//! is not used if on every path `rax` is overwritten before it is read. What is not understood counts as a use.

use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind};
use portent_explore::Counting;
use rustc_hash::{FxHashMap, FxHashSet};

/// Instructions that are looked at behind a call.
const MOST: usize = 96;

/// The code of a file.
pub(super) struct Code {
    /// Addresses and bytes.
    sections: Vec<(u64, &'static [u8])>,
    /// Where addresses of functions of other files are put, and which.
    imported: FxHashMap<u64, &'static str>,
}

/// An instruction, as far as it concerns `rax`.
struct Instruction {
    length: usize,
    reads: bool,
    /// All of it is new afterwards.
    writes: bool,
    then: Then,
}

/// Where the program goes on.
enum Then {
    Behind,
    At(u64),
    BehindOrAt(u64),
    /// In another function of this file, and then behind.
    Call(u64),
    /// Nowhere where the result can be used: in a function that does not know it.
    Gone,
}

impl Code {
    pub(super) fn of(file: &object::File<'static>) -> Code {
        let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
        let sections = code.filter_map(|section| Some((section.address(), section.data().ok()?))).collect();
        let symbols = file.dynamic_symbol_table();
        let name = |target: RelocationTarget| match (target, &symbols) {
            (RelocationTarget::Symbol(index), Some(symbols)) => symbols.symbol_by_index(index).ok()?.name().ok(),
            _ => None,
        };
        let relocations = file.dynamic_relocations().into_iter().flatten();
        let imported = relocations.filter_map(|(at, relocation)| Some((at, name(relocation.target())?))).collect();
        Code { sections, imported }
    }

    fn bytes(&self, at: u64) -> Option<&'static [u8]> {
        let inside = |(start, bytes): &(u64, &'static [u8])| {
            let rest = bytes.get(usize::try_from(at.checked_sub(*start)?).ok()?..)?;
            (!rest.is_empty()).then_some(rest)
        };
        self.sections.iter().find_map(inside)
    }

    /// What a call that returns to `back` counts, if nobody looks at its result.
    pub(super) fn unused(&self, back: u64) -> Option<Counting> {
        let counting = counting(self.callee(back)?)?;
        self.is_unused(back).then_some(counting)
    }

    /// The function of another file that a call which returns to `back` calls.
    fn callee(&self, back: u64) -> Option<&'static str> {
        let direct = || {
            let call = self.bytes(back.checked_sub(5)?)?;
            (call[0] == 0xe8).then(|| self.stub(relative(back, call.get(1..5)?)?)).flatten()
        };
        let through_memory = || {
            let call = self.bytes(back.checked_sub(6)?)?;
            let slot = relative(back, call.get(2..6)?)?;
            (call[..2] == [0xff, 0x15]).then(|| self.imported.get(&slot).copied()).flatten()
        };
        direct().or_else(through_memory)
    }

    /// The function of another file that a stub jumps to.
    fn stub(&self, mut at: u64) -> Option<&'static str> {
        let mut bytes = self.bytes(at)?;
        for prefix in [&[0xf3, 0x0f, 0x1e, 0xfa][..], &[0xf2]] {
            if let Some(rest) = bytes.strip_prefix(prefix) {
                (bytes, at) = (rest, at + prefix.len() as u64);
            }
        }
        let slot = relative(at + 6, bytes.strip_prefix(&[0xff, 0x25])?.get(..4)?)?;
        self.imported.get(&slot).copied()
    }

    fn is_unused(&self, from: u64) -> bool {
        let (mut todo, mut seen) = (vec![from], FxHashSet::default());
        while let Some(at) = todo.pop() {
            if !seen.insert(at) {
                continue;
            }
            let decoded = self.bytes(at).and_then(|bytes| decode(at, bytes));
            let Some(Instruction { length, reads, writes, then }) = decoded.filter(|_| seen.len() <= MOST) else {
                return false;
            };
            if reads {
                return false;
            }
            if writes {
                continue;
            }
            let behind = at + length as u64;
            match then {
                Then::Behind => todo.push(behind),
                Then::At(to) => todo.push(to),
                Then::BehindOrAt(to) => todo.extend([behind, to]),
                // Whoever calls a function of another file expects nothing in `rax` afterwards but its result. Of one of its own, the
                // compiler may know that `rax` is left alone.
                Then::Call(to) if self.stub(to).is_none() => todo.push(behind),
                Then::Call(_) | Then::Gone => {}
            }
        }
        true
    }
}

/// What one of the compiler's functions counts.
fn counting(function: &str) -> Option<Counting> {
    let rest = function.strip_prefix("__tsan_atomic")?.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix("_fetch_")? {
        "add" | "sub" => Some(Counting::Adds),
        "or" => Some(Counting::Sets),
        "and" => Some(Counting::Clears),
        "xor" => Some(Counting::Flips),
        _ => None,
    }
}

fn relative(from: u64, bytes: &[u8]) -> Option<u64> {
    let distance = match *bytes {
        [byte] => i64::from(byte as i8),
        _ => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
    };
    Some(from.wrapping_add_signed(distance))
}

/// The operands that an instruction's second part names.
struct Operands {
    /// Bytes it takes.
    length: usize,
    /// The register; bits 3 to 5 of the byte.
    register: u8,
    /// The other register; `None` if it is memory.
    other: Option<u8>,
    /// Whether the address in memory is made from `rax`.
    address_reads: bool,
}

const RAX: u8 = 0;

fn operands(bytes: &[u8], rex: u8) -> Option<Operands> {
    let byte = *bytes.first()?;
    let (mode, register, low) = (byte >> 6, (byte >> 3 & 7) | (rex & 4) << 1, byte & 7);
    let extended = low | (rex & 1) << 3;
    if mode == 3 {
        return Some(Operands { length: 1, register, other: Some(extended), address_reads: false });
    }
    let (mut length, mut address_reads, mut wide) = (1, false, mode == 2);
    if low == 4 {
        let scaled = *bytes.get(1)?;
        let (index, base) = ((scaled >> 3 & 7) | (rex & 2) << 2, scaled & 7);
        let no_base = mode == 0 && base == 5;
        length += 1;
        wide |= no_base;
        address_reads |= index == RAX || (!no_base && base | (rex & 1) << 3 == RAX);
    } else if mode == 0 && low == 5 {
        wide = true;
    } else {
        address_reads |= extended == RAX;
    }
    length += if wide { 4 } else { usize::from(mode == 1) };
    Some(Operands { length, register, other: None, address_reads })
}

/// An instruction; `None` for those that are not known here.
fn decode(at: u64, bytes: &[u8]) -> Option<Instruction> {
    let mut start = 0;
    let mut wide_operand = true;
    while let 0x66 | 0x2e | 0x3e | 0x64 | 0x65 | 0xf2 | 0xf3 = *bytes.get(start)? {
        wide_operand &= bytes[start] != 0x66;
        start += 1;
    }
    let mut rex = 0;
    if *bytes.get(start)? & 0xf0 == 0x40 {
        rex = bytes[start];
        start += 1;
    }
    let code = *bytes.get(start)?;
    let rest = bytes.get(start + 1..)?;
    if code == 0x0f {
        return decode_long(at, rest, start + 2, rex, wide_operand);
    }
    let immediate = if wide_operand { 4 } else { 2 };
    let own = code & 7 | (rex & 1) << 3;
    let simple = |more: usize, reads: bool, writes: bool| {
        Some(Instruction { length: start + 1 + more, reads, writes, then: Then::Behind })
    };
    let to = |more: usize| relative(at + (start + 1 + more) as u64, rest.get(..more)?);
    let goes =
        |more: usize, then: Then| Some(Instruction { length: start + 1 + more, reads: false, writes: false, then });
    // Of registers of one byte, number 4 is the second byte of `rax`, where there is no prefix.
    let touches = |register: u8, is_byte: bool| register == RAX || (is_byte && rex == 0 && register == 4);
    let with = |more: usize, read: &dyn Fn(&Operands) -> bool, write: &dyn Fn(&Operands) -> bool| {
        let found = operands(rest, rex)?;
        let (reads, writes) = (found.address_reads || read(&found), wide_operand && write(&found));
        Some(Instruction { length: start + 1 + found.length + more, reads, writes, then: Then::Behind })
    };
    let is = |register: Option<u8>, is_byte: bool| register.is_some_and(|register| touches(register, is_byte));
    let is_byte = code & 1 == 0;
    match code {
        // Arithmetic with two operands; of a register with itself, `xor` and `sub` read nothing.
        0x31 | 0x33 | 0x29 | 0x2b => {
            let same = |found: &Operands| found.other == Some(found.register);
            let reads = |found: &Operands| !same(found) && (found.register == RAX || found.other == Some(RAX));
            with(0, &reads, &|found| same(found) && found.register == RAX)
        }
        0x00..=0x3f if code & 7 < 4 => {
            with(0, &|found| touches(found.register, is_byte) || is(found.other, is_byte), &|_| false)
        }
        0x00..=0x3f if code & 7 < 6 => simple(if is_byte { 1 } else { immediate }, true, false),
        0x50..=0x57 => simple(0, own == RAX, false),
        0x58..=0x5f => simple(0, false, own == RAX && wide_operand),
        0x63 | 0x8d => with(0, &|found| found.other == Some(RAX), &|found| found.register == RAX),
        0x68 => simple(immediate, false, false),
        0x6a => simple(1, false, false),
        0x69 => with(immediate, &|found| found.other == Some(RAX), &|found| found.register == RAX),
        0x6b => with(1, &|found| found.other == Some(RAX), &|found| found.register == RAX),
        0x70..=0x7f => goes(1, Then::BehindOrAt(to(1)?)),
        0x80 | 0x83 | 0xc0 | 0xc1 => with(1, &|found| is(found.other, is_byte), &|_| false),
        0x81 => with(immediate, &|found| is(found.other, is_byte), &|_| false),
        0x84..=0x87 => with(0, &|found| touches(found.register, is_byte) || is(found.other, is_byte), &|_| false),
        0x88 => with(0, &|found| touches(found.register, true), &|_| false),
        0x89 => with(0, &|found| found.register == RAX, &|found| found.other == Some(RAX)),
        0x8a => with(0, &|found| is(found.other, true), &|_| false),
        0x8b => with(0, &|found| found.other == Some(RAX), &|found| found.register == RAX),
        0x90 if rex & 1 == 0 => simple(0, false, false),
        0xa8 => simple(1, true, false),
        0xa9 => simple(immediate, true, false),
        0xb0..=0xb7 => simple(1, false, false),
        0xb8..=0xbf => simple(if rex & 8 != 0 { 8 } else { immediate }, false, own == RAX && wide_operand),
        0xc6 => with(1, &|_| false, &|_| false),
        0xc7 => with(immediate, &|_| false, &|found| found.other == Some(RAX)),
        0xc9 => simple(0, false, false),
        0xd0..=0xd3 => with(0, &|found| is(found.other, is_byte), &|_| false),
        0xe8 => goes(4, Then::Call(to(4)?)),
        0xe9 => goes(4, Then::At(to(4)?)),
        0xeb => goes(1, Then::At(to(1)?)),
        0xfe => with(0, &|found| is(found.other, true), &|_| false),
        0xff => {
            let found = operands(rest, rex)?;
            let reads = found.address_reads || found.other == Some(RAX);
            let then = match (found.register & 7, found.other) {
                (0 | 1 | 6, _) => Then::Behind,
                // Through memory at a fixed address: a function of another file.
                (2 | 4, None) if rest.first()? & 0xc7 == 5 => Then::Gone,
                // It may be one of this file.
                (2, _) => Then::Behind,
                _ => return None,
            };
            Some(Instruction { length: start + 1 + found.length, reads, writes: false, then })
        }
        _ => None,
    }
}

/// An instruction of two or more bytes.
fn decode_long(at: u64, bytes: &[u8], start: usize, rex: u8, wide_operand: bool) -> Option<Instruction> {
    let code = *bytes.first()?;
    let rest = bytes.get(1..)?;
    let length = start;
    if (0x80..=0x8f).contains(&code) {
        let to = relative(at + (length + 4) as u64, rest.get(..4)?)?;
        return Some(Instruction { length: length + 4, reads: false, writes: false, then: Then::BehindOrAt(to) });
    }
    if code == 0x0b {
        // What cannot be reached: the program ends there.
        return Some(Instruction { length, reads: false, writes: false, then: Then::Gone });
    }
    let found = operands(rest, rex)?;
    let (register, other) = (found.register == RAX, found.other == Some(RAX));
    let (more, reads, writes) = match code {
        0x1e | 0x1f => (0, false, false),
        // Moves between other registers and memory, and arithmetic there.
        0x10..=0x17
        | 0x28
        | 0x29
        | 0x2e
        | 0x2f
        | 0x51..=0x5f
        | 0x60..=0x6d
        | 0x6f
        | 0x74..=0x76
        | 0x7f
        | 0xd6
        | 0xef => (0, false, false),
        0x70 | 0xc6 => (1, false, false),
        0x2a | 0x6e => (0, other, false),
        // To a register or from one, by its prefixes: taken for both.
        0x7e | 0x2c | 0x2d => (0, other || register, false),
        0x40..=0x4f | 0xa3 | 0xab | 0xaf | 0xb3 | 0xbb => (0, register || other, false),
        0x90..=0x9f => (0, false, false),
        0xba => (1, other, false),
        0xb6 | 0xb7 | 0xbe | 0xbf => (0, other || (rex == 0 && found.other == Some(4)), register && wide_operand),
        _ => return None,
    };
    let reads = reads || found.address_reads;
    Some(Instruction { length: length + found.length + more, reads, writes, then: Then::Behind })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code at this address whose calls at 0x2000 lead to another file, and to this one elsewhere.
    fn unused(bytes: &[u8]) -> bool {
        let mut code = bytes.to_vec();
        code.resize(0x1000, 0xcc);
        let stub = [0xff, 0x25, 0xfa, 0x0f, 0, 0];
        let sections = vec![(0x1000, &*code.leak()), (0x2000, &*stub.to_vec().leak())];
        let imported = FxHashMap::from_iter([(0x3000, "__tsan_func_exit")]);
        Code { sections, imported }.is_unused(0x1000)
    }

    fn call(at: u64) -> [u8; 5] {
        let [a, b, c, d] = (0x2000u32 - at as u32 - 5).to_le_bytes();
        [0xe8, a, b, c, d]
    }

    #[test]
    fn results_that_the_next_call_overwrites_are_unused() {
        assert!(unused(&call(0x1000)));
        let mut code = vec![0x48, 0x89, 0xdf];
        code.extend(call(0x1003));
        assert!(unused(&code), "mov rdi, rbx between");
    }

    #[test]
    fn results_that_are_kept_compared_or_returned_are_used() {
        for (code, what) in [
            (&[0x48, 0x89, 0xc3][..], "mov rbx, rax"),
            (&[0x89, 0xc3], "mov ebx, eax"),
            (&[0x85, 0xc0], "test eax, eax"),
            (&[0x83, 0xf8, 0x01], "cmp eax, 1"),
            (&[0x3d, 1, 0, 0, 0], "cmp eax, imm"),
            (&[0x84, 0xe4], "test ah, ah"),
            (&[0x50], "push rax"),
            (&[0x8d, 0x50, 0x01], "lea edx, [rax + 1]"),
            (&[0x8b, 0x04, 0x82], "mov eax, [rdx + rax * 4]"),
            (&[0x48, 0x98], "cdqe"),
            (&[0x0f, 0xb6, 0xc0], "movzx eax, al"),
            (&[0xc3], "ret"),
            (&[0xff, 0xe2], "jmp rdx"),
            (&[0xc5, 0xf8, 0x77], "what is not known"),
        ] {
            let mut code = code.to_vec();
            code.extend(call(0x1000 + code.len() as u64));
            assert!(!unused(&code), "{what}");
        }
    }

    #[test]
    fn results_are_unused_only_if_they_are_on_every_path() {
        // test bl, bl; je over; xor eax, eax; jmp to the end; over: mov eax, [rbx]
        let both = [0x84, 0xdb, 0x74, 0x04, 0x31, 0xc0, 0xeb, 0x02, 0x8b, 0x03, 0xc3];
        assert!(unused(&both));
        let one = [0x84, 0xdb, 0x74, 0x04, 0x31, 0xc0, 0xeb, 0x02, 0x89, 0x03, 0xc3];
        assert!(!unused(&one), "over: mov [rbx], eax");
    }

    #[test]
    fn a_loop_around_the_call_is_understood() {
        // sub ebp, 1; jne back to a call of the runtime; call
        let mut code = vec![0x83, 0xed, 0x01, 0x75, 0x02, 0xeb, 0x00];
        code.extend(call(0x1007));
        assert!(unused(&code));
    }

    #[test]
    fn a_function_of_the_same_file_may_leave_the_register_alone() {
        // call 0x1100; mov ebx, eax
        assert!(!unused(&[0xe8, 0xfb, 0x00, 0x00, 0x00, 0x89, 0xc3]));
        assert!(unused(&[0xe8, 0xfb, 0x00, 0x00, 0x00, 0x31, 0xc0]));
    }

    #[test]
    fn what_is_counted_follows_from_the_function() {
        assert_eq!(counting("__tsan_atomic32_fetch_add"), Some(Counting::Adds));
        assert_eq!(counting("__tsan_atomic64_fetch_sub"), Some(Counting::Adds));
        assert_eq!(counting("__tsan_atomic8_fetch_or"), Some(Counting::Sets));
        assert_eq!(counting("__tsan_atomic8_exchange"), None);
        assert_eq!(counting("__tsan_atomic8_fetch_nand"), None, "two of them do not commute");
    }
}
