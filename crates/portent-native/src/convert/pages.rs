//! What is known about every byte of memory: the value that recorded events left there, and which variable an access
//! there is.
//!
//! Two things have to be quick, because they happen at every access: finding the variable that the same access was the last
//! time, and comparing what is read with what was written. Both live in tables by address, one page of 4,096 bytes at a
//! time, which exist only for pages that are accessed.
//!
//! A byte is *unknown* (nothing that the trace's readers would compare with), *known* (a recorded write left it), or
//! *doubtful*: recorded events left one value there, but something else is there, so code that is not recorded must have
//! written it. Readers of the trace still believe the recorded value; a read of such a byte must not tell its value.

use crate::symbols::Meaning;
use rustc_hash::FxHashMap;

const PAGE_BITS: u32 = 12;
const WORDS: usize = 512;
const SLOTS: usize = 1024;
const RECENT: usize = 256;

/// The variable that an access is, as the last one like it found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KnownVariable {
    pub(super) variable: u32,
    /// It goes beyond the end of the memory in which it begins.
    pub(super) overruns: bool,
    /// What its bytes stand for.
    pub(super) meaning: Meaning,
    /// It is on a stack.
    pub(super) on_stack: bool,
}

const USED: u16 = 1 << 15;
const OVERRUNS: u16 = 1 << 14;
const SIGNED: u16 = 1 << 13;
const ON_STACK: u16 = 1 << 12;
const POINTER: u16 = 1 << 11;
const LENGTH: u16 = POINTER - 1;

/// A place for one access: its length and flags, and its variable.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u16,
    variable: u32,
}

struct Page {
    /// Values, where they are known.
    words: [u64; WORDS],
    /// One bit for each byte.
    known: [u8; WORDS],
    doubtful: [u8; WORDS],
    tags: [u16; SLOTS],
    variables: [u32; SLOTS],
    /// For accesses that do not begin at a multiple of four.
    odd: Option<Box<[Slot; 1 << PAGE_BITS]>>,
}

impl Page {
    fn new() -> Box<Page> {
        Box::new(Page {
            words: [0; WORDS],
            known: [0; WORDS],
            doubtful: [0; WORDS],
            tags: [0; SLOTS],
            variables: [0; SLOTS],
            odd: None,
        })
    }
}

/// The memory of the program, as far as it was accessed.
pub(super) struct Pages {
    index: FxHashMap<u64, u32>,
    pages: Vec<Box<Page>>,
    /// Pages met last: number plus one, and where they are.
    recent: [(u64, u32); RECENT],
}

/// What a read tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// What was written, or nothing is known.
    Expected,
    /// Something that no recorded write left there.
    Strange,
}

impl Pages {
    pub(super) fn new() -> Pages {
        Pages { index: FxHashMap::default(), pages: Vec::new(), recent: [(0, 0); RECENT] }
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> &mut Page {
        let recent = self.recent[number as usize % RECENT];
        let at = if recent.0 == number.wrapping_add(1) { recent.1 } else { self.look_up(number) };
        &mut self.pages[at as usize]
    }

    #[cold]
    fn look_up(&mut self, number: u64) -> u32 {
        let pages = &mut self.pages;
        let at = *self.index.entry(number).or_insert_with(|| {
            pages.push(Page::new());
            pages.len() as u32 - 1
        });
        self.recent[number as usize % RECENT] = (number.wrapping_add(1), at);
        at
    }

    /// The variable that an access of `size` bytes at `address` was the last time.
    #[inline]
    pub(super) fn known(&mut self, address: u64, size: u32) -> Option<KnownVariable> {
        let page = self.page(address >> PAGE_BITS);
        let (tag, variable) = if address & 3 == 0 {
            let slot = (address as usize >> 2) % SLOTS;
            (page.tags[slot], page.variables[slot])
        } else {
            let slot = page.odd.as_ref()?[address as usize % (1 << PAGE_BITS)];
            (slot.tag, slot.variable)
        };
        (u32::from(tag & LENGTH) == size && tag & USED != 0).then_some(KnownVariable {
            variable,
            overruns: tag & OVERRUNS != 0,
            meaning: match (tag & SIGNED != 0, tag & POINTER != 0) {
                (true, _) => Meaning::Signed,
                (_, true) => Meaning::Pointer,
                _ => Meaning::Bits,
            },
            on_stack: tag & ON_STACK != 0,
        })
    }

    /// Remembers that for the next time. Long accesses are not worth it.
    pub(super) fn remember(&mut self, address: u64, size: u32, known: KnownVariable) {
        let Some(length) = u16::try_from(size).ok().filter(|&size| size <= LENGTH) else { return };
        let flag = |set, flag| if set { flag } else { 0 };
        let tag = USED
            | length
            | flag(known.overruns, OVERRUNS)
            | flag(known.meaning == Meaning::Signed, SIGNED)
            | flag(known.meaning == Meaning::Pointer, POINTER)
            | flag(known.on_stack, ON_STACK);
        let page = self.page(address >> PAGE_BITS);
        if address & 3 == 0 {
            let slot = (address as usize >> 2) % SLOTS;
            (page.tags[slot], page.variables[slot]) = (tag, known.variable);
        } else {
            let odd = page.odd.get_or_insert_with(|| Box::new([Slot::default(); 1 << PAGE_BITS]));
            odd[address as usize % (1 << PAGE_BITS)] = Slot { tag, variable: known.variable };
        }
    }

    /// A recorded write of at most eight bytes.
    #[inline]
    pub(super) fn write(&mut self, address: u64, size: u32, value: u64) {
        for piece in pieces(address, size) {
            let page = self.page(piece.address >> PAGE_BITS);
            let word = piece.word();
            page.words[word] = page.words[word] & !piece.mask() | piece.place(value);
            page.known[word] |= piece.bytes();
            page.doubtful[word] &= !piece.bytes();
        }
    }

    /// A recorded read of at most eight bytes. Bytes that are not as they were written become doubtful.
    #[inline]
    pub(super) fn read(&mut self, address: u64, size: u32, value: u64) -> Seen {
        let mut seen = Seen::Expected;
        for piece in pieces(address, size) {
            let page = self.page(piece.address >> PAGE_BITS);
            let word = piece.word();
            let different = (page.words[word] ^ piece.place(value)) & piece.mask();
            if page.doubtful[word] & piece.bytes() != 0 {
                seen = Seen::Strange;
            }
            if different != 0 {
                let mut wrong = 0;
                for byte in 0..8 {
                    wrong |= u8::from(different >> (8 * byte) & 0xff != 0) << byte;
                }
                wrong &= page.known[word];
                if wrong != 0 {
                    page.known[word] &= !wrong;
                    page.doubtful[word] |= wrong;
                    seen = Seen::Strange;
                }
            }
        }
        seen
    }

    /// A recorded write of what is not known: the trace's readers forget what was there.
    pub(super) fn write_unknown(&mut self, address: u64, size: u64) {
        self.each(address, size, |page, from, to| {
            for (word, bytes) in words(from, to) {
                page.known[word] &= !bytes;
                page.doubtful[word] &= !bytes;
            }
        });
    }

    /// A write that the trace's readers do not see at this place: they go on believing what they know.
    pub(super) fn doubt(&mut self, address: u64, size: u64) {
        self.each(address, size, |page, from, to| {
            for (word, bytes) in words(from, to) {
                page.doubtful[word] |= page.known[word] & bytes;
                page.known[word] &= !bytes;
            }
        });
    }

    /// The memory is something new: no variable of before is there any more, and nothing is known about it.
    pub(super) fn renew(&mut self, address: u64, size: u64) {
        self.each(address, size, |page, from, to| {
            for (word, bytes) in words(from, to) {
                page.known[word] &= !bytes;
                page.doubtful[word] &= !bytes;
            }
            page.tags[from / 4..to.div_ceil(4)].fill(0);
            if let Some(odd) = &mut page.odd {
                odd[from..to].fill(Slot::default());
            }
        });
    }

    /// The memory is something again that it was before: the trace's readers still believe what was last there.
    pub(super) fn distrust(&mut self, address: u64, size: u64) {
        self.forget(address, size);
        self.each(address, size, |page, from, to| {
            for (word, bytes) in words(from, to) {
                page.doubtful[word] |= bytes;
                page.known[word] &= !bytes;
            }
        });
    }

    /// Variables before `address` may have reached up to it: forgets which they were.
    pub(super) fn forget_before(&mut self, address: u64, reach: u64) {
        let start = address.saturating_sub(reach);
        self.forget(start, address - start);
    }

    /// Forgets which variables begin here.
    pub(super) fn forget(&mut self, address: u64, size: u64) {
        self.each(address, size, |page, from, to| {
            page.tags[from / 4..to.div_ceil(4)].fill(0);
            if let Some(odd) = &mut page.odd {
                odd[from..to].fill(Slot::default());
            }
        });
    }

    /// Works on every page that exists between two addresses, with the part of it that lies between them.
    fn each(&mut self, address: u64, size: u64, mut work: impl FnMut(&mut Page, usize, usize)) {
        let end = address.saturating_add(size);
        if end == address {
            return;
        }
        let (first, last) = (address >> PAGE_BITS, (end - 1) >> PAGE_BITS);
        let mut on = |number: u64, page: &mut Page| {
            let start = number << PAGE_BITS;
            let from = address.saturating_sub(start) as usize;
            let to = (end - start).min(1 << PAGE_BITS) as usize;
            work(page, from, to);
        };
        if last - first >= self.index.len() as u64 {
            for (&number, &at) in &self.index {
                if (first..=last).contains(&number) {
                    on(number, &mut self.pages[at as usize]);
                }
            }
        } else {
            for number in first..=last {
                if let Some(&at) = self.index.get(&number) {
                    on(number, &mut self.pages[at as usize]);
                }
            }
        }
    }
}

/// The part of an access that lies in one word.
#[derive(Clone, Copy)]
struct Piece {
    address: u64,
    /// Bytes of the access before this part.
    before: u32,
    len: u32,
}

impl Piece {
    #[inline]
    fn word(self) -> usize {
        (self.address as usize >> 3) % WORDS
    }
    #[inline]
    fn shift(self) -> u32 {
        8 * (self.address as u32 & 7)
    }
    #[inline]
    fn mask(self) -> u64 {
        (u64::MAX >> (64 - 8 * self.len)) << self.shift()
    }
    #[inline]
    fn bytes(self) -> u8 {
        (0xff >> (8 - self.len)) << (self.address & 7)
    }
    #[inline]
    fn place(self, value: u64) -> u64 {
        (value >> (8 * self.before)) << self.shift() & self.mask()
    }
}

/// An access of at most eight bytes, word by word.
#[inline]
fn pieces(address: u64, size: u32) -> impl Iterator<Item = Piece> {
    let first = size.min(8 - (address as u32 & 7));
    let one = Piece { address, before: 0, len: first };
    let two = Piece { address: address.wrapping_add(first.into()), before: first, len: size - first };
    [one, two].into_iter().filter(|piece| piece.len > 0)
}

/// The words between two bytes of a page, with a bit for each byte that lies between them.
fn words(from: usize, to: usize) -> impl Iterator<Item = (usize, u8)> {
    (from / 8..to.div_ceil(8)).map(move |word| {
        let low = from.saturating_sub(word * 8);
        let high = (to - word * 8).min(8);
        (word, (0xffu8 >> (8 - (high - low))) << low)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_is_compared_byte_by_byte_with_the_last_writes() {
        let mut pages = Pages::new();
        assert_eq!(pages.read(0x1000, 4, 77), Seen::Expected, "nothing is known");
        pages.write(0x1000, 8, 0x1122_3344_5566_7788);
        assert_eq!(pages.read(0x1002, 2, 0x5566), Seen::Expected);
        pages.write(0x1003, 1, 0xaa);
        assert_eq!(pages.read(0x1000, 8, 0x1122_3344_aa66_7788), Seen::Expected);
        assert_eq!(pages.read(0x1000, 8, 0x1122_3344_aa66_7799), Seen::Strange);
    }

    #[test]
    fn a_byte_stays_doubtful_until_it_is_written() {
        let mut pages = Pages::new();
        pages.write(0x1000, 4, 5);
        assert_eq!(pages.read(0x1000, 4, 6), Seen::Strange);
        assert_eq!(pages.read(0x1000, 4, 6), Seen::Strange, "readers of the trace still expect 5");
        assert_eq!(pages.read(0x1001, 1, 0), Seen::Expected, "only the byte that differs is doubtful");
        pages.write(0x1000, 1, 6);
        assert_eq!(pages.read(0x1000, 4, 6), Seen::Expected);
    }

    #[test]
    fn accesses_across_words_and_pages() {
        let mut pages = Pages::new();
        pages.write(0x1ffd, 8, 0x0807_0605_0403_0201);
        assert_eq!(pages.read(0x1ffe, 1, 2), Seen::Expected);
        assert_eq!(pages.read(0x2000, 4, 0x0706_0504), Seen::Expected);
        assert_eq!(pages.read(0x2000, 4, 0x0706_0505), Seen::Strange);
    }

    #[test]
    fn unknown_writes_and_new_memory_are_never_contradicted() {
        let mut pages = Pages::new();
        for address in (0x1000..0x6000).step_by(8) {
            pages.write(address, 8, 1);
        }
        pages.write_unknown(0x1001, 0x2000);
        assert_eq!(pages.read(0x1000, 1, 9), Seen::Strange);
        assert_eq!(pages.read(0x1001, 1, 9), Seen::Expected);
        assert_eq!(pages.read(0x3000, 1, 9), Seen::Expected);
        assert_eq!(pages.read(0x3001, 1, 9), Seen::Strange);
        let known = KnownVariable { variable: 7, overruns: false, meaning: Meaning::Signed, on_stack: false };
        pages.remember(0x5000, 4, known);
        pages.remember(0x5005, 1, known);
        assert_eq!(pages.known(0x5000, 4), Some(known));
        assert_eq!(pages.known(0x5000, 8), None);
        assert_eq!(pages.known(0x5005, 1), Some(known));
        pages.renew(0, u64::MAX);
        assert_eq!(pages.read(0x5000, 8, 9), Seen::Expected);
        assert_eq!((pages.known(0x5000, 4), pages.known(0x5005, 1)), (None, None));
    }

    #[test]
    fn doubt_keeps_what_readers_believe() {
        let mut pages = Pages::new();
        pages.write(0x1000, 4, 5);
        pages.doubt(0x1002, 100);
        assert_eq!(pages.read(0x1000, 2, 5), Seen::Expected);
        assert_eq!(pages.read(0x1000, 4, 5), Seen::Strange);
        assert_eq!(pages.read(0x1004, 4, 9), Seen::Expected);
    }
}
