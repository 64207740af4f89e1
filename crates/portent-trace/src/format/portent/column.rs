//! Columns: a known count of 32-bit numbers, stored in whichever of four ways is smallest.
//!
//! | mode | stored as |
//! |---|---|
//! | 0 constant | the number |
//! | 1 packed | the smallest number, a width per block of 128, the blocks bit-packed |
//! | 2 runs | a count, and two columns: the numbers, and the lengths of their runs less one |
//! | 3 LZ4 | bytes per number, length, the numbers as an LZ4 block |
//!
//! With [`DELTA`] added to the mode, the column holds zigzag differences of neighbours. An empty column takes no bytes.

use super::bits::{self, SLACK};

const CONSTANT: u8 = 0;
const PACKED: u8 = 1;
const RUNS: u8 = 2;
const LZ4: u8 = 3;
const DELTA: u8 = 0x10;
const BLOCK: usize = 128;
const STRIDE: usize = 16;

#[inline]
pub(super) fn zigzag(n: u32) -> u32 {
    (n << 1) ^ ((n as i32 >> 31) as u32)
}
#[inline]
pub(super) fn unzigzag(n: u32) -> u32 {
    (n >> 1) ^ (n & 1).wrapping_neg()
}

/// Appends a column. `ordered` says that neighbours may be close, so that differences are worth a try.
pub(super) fn write(values: &[u32], ordered: bool, out: &mut Vec<u8>) {
    let start = out.len();
    write_plain(values, 0, true, out);
    if !ordered || values.len() < 2 {
        return;
    }
    let mut last = 0;
    let deltas: Vec<u32> =
        values.iter().map(|&value| zigzag(value.wrapping_sub(std::mem::replace(&mut last, value)))).collect();
    let mut other = Vec::new();
    write_plain(&deltas, DELTA, true, &mut other);
    if other.len() < out.len() - start {
        out.truncate(start);
        out.append(&mut other);
    }
}

fn write_plain(values: &[u32], flag: u8, runs_allowed: bool, out: &mut Vec<u8>) {
    let Some(&first) = values.first() else { return };
    // Without branches, unlike `chunk_by`.
    let runs = 1 + values.iter().zip(&values[1..]).filter(|(a, b)| a != b).count();
    if runs == 1 {
        out.push(CONSTANT | flag);
        out.extend(first.to_le_bytes());
        return;
    }
    let mut best = Vec::new();
    write_packed(values, flag, &mut best);
    if runs_allowed && runs <= values.len() / 2 {
        let other = runs_of(values, runs, flag);
        if other.len() < best.len() {
            best = other;
        }
    }
    // LZ4 is the slowest to read, so it must be worth it.
    if let Some(other) = compressed(values, flag)
        && other.len() < best.len() / 8 * 7
    {
        best = other;
    }
    out.append(&mut best);
}

fn write_packed(values: &[u32], flag: u8, out: &mut Vec<u8>) {
    let base = values.iter().copied().min().unwrap_or(0);
    out.push(PACKED | flag);
    out.extend(base.to_le_bytes());
    let widths = out.len();
    let above = |block: &'_ [u32]| bits::width_of(block.iter().map(|&value| value - base)) as u8;
    out.extend(values.chunks(BLOCK).map(above));
    for (i, block) in values.chunks(BLOCK).enumerate() {
        let width = u32::from(out[widths + i]);
        bits::pack(block.iter().map(|&value| value - base), width, out);
    }
}

fn runs_of(values: &[u32], runs: usize, flag: u8) -> Vec<u8> {
    let mut out = vec![RUNS | flag];
    out.extend((runs as u32).to_le_bytes());
    let (heads, lengths): (Vec<u32>, Vec<u32>) =
        values.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32 - 1)).unzip();
    write_plain(&heads, 0, false, &mut out);
    write_plain(&lengths, 0, false, &mut out);
    out
}

fn compressed(values: &[u32], flag: u8) -> Option<Vec<u8>> {
    if values.len() < BLOCK {
        return None;
    }
    let bytes = match bits::width_of(values.iter().copied()) {
        0..=8 => 1,
        9..=16 => 2,
        _ => 4,
    };
    let mut plain = Vec::with_capacity(values.len() * bytes);
    match bytes {
        1 => plain.extend(values.iter().map(|&value| value as u8)),
        2 => values.iter().for_each(|&value| plain.extend((value as u16).to_le_bytes())),
        _ => values.iter().for_each(|&value| plain.extend(value.to_le_bytes())),
    }
    let block = lz4_flex::block::compress(&plain);
    let mut out = vec![LZ4 | flag, bytes as u8];
    out.extend((block.len() as u32).to_le_bytes());
    out.extend(block);
    Some(out)
}

/// What is wrong with the stored form; the caller knows where it stands.
pub(super) type Fault = &'static str;

/// Reads a payload from front to back.
pub(super) struct Cursor<'a> {
    /// The payload, and [`SLACK`] more bytes.
    padded: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Reads `padded` without its last [`SLACK`] bytes.
    pub(super) fn new(padded: &'a [u8]) -> Self {
        Self { padded, at: 0, end: padded.len().saturating_sub(SLACK) }
    }
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.end
    }
    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        if len > self.end - self.at {
            return Err("it ends too early");
        }
        let taken = &self.padded[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }
    pub(super) fn byte(&mut self) -> Result<u8, Fault> {
        Ok(self.take(1)?[0])
    }
    pub(super) fn u32(&mut self) -> Result<u32, Fault> {
        Ok(u32::from_le_bytes(self.take(4)?.first_chunk().copied().unwrap_or_default()))
    }

    /// Replaces the contents of `out` by a column of `count` numbers, which the caller has bounded.
    pub(super) fn column(&mut self, count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
        self.column_inner(count, out, true)
    }

    fn column_inner(&mut self, count: usize, out: &mut Vec<u32>, runs_allowed: bool) -> Result<(), Fault> {
        if count == 0 {
            out.clear();
            return Ok(());
        }
        let mode = self.byte()?;
        match mode & !DELTA {
            CONSTANT => {
                let value = self.u32()?;
                out.clear();
                out.resize(count, value);
            }
            PACKED => self.packed(count, out)?,
            RUNS if runs_allowed => self.runs(count, out)?,
            LZ4 => self.compressed(count, out)?,
            _ => return Err("a column is stored in an unknown way"),
        }
        if mode & DELTA != 0 {
            let mut last = 0u32;
            for value in out.iter_mut() {
                last = last.wrapping_add(unzigzag(*value));
                *value = last;
            }
        }
        Ok(())
    }

    fn packed(&mut self, count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
        let base = self.u32()?;
        let widths = self.take(count.div_ceil(BLOCK))?;
        out.resize(count, 0);
        for (block, &width) in out.chunks_mut(BLOCK).zip(widths) {
            let width = u32::from(width);
            if width > 32 {
                return Err("a column claims numbers of more than 32 bits");
            }
            let from = self.at;
            let len = self.take(bits::packed_len(block.len(), width))?.len();
            bits::unpack(&self.padded[from..from + len + SLACK], width, block).ok_or("it ends too early")?;
            if base != 0 {
                block.iter_mut().for_each(|value| *value = value.wrapping_add(base));
            }
        }
        Ok(())
    }

    fn runs(&mut self, count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
        let runs = self.u32()? as usize;
        if runs > count {
            return Err("a column has more runs than numbers");
        }
        let (mut heads, mut lengths) = (Vec::new(), Vec::new());
        self.column_inner(runs, &mut heads, false)?;
        self.column_inner(runs, &mut lengths, false)?;
        // Most runs are short: each is written as a whole stride, and what is too much is overwritten by the next.
        out.resize(count + STRIDE, 0);
        let mut at = 0;
        for (&head, &length) in heads.iter().zip(&lengths) {
            let end = at + length as usize + 1;
            if end > count {
                return Err(WRONG_RUNS);
            }
            if let Some(stride) = out[at..].first_chunk_mut::<STRIDE>() {
                *stride = [head; STRIDE];
            }
            if end - at > STRIDE {
                out[at + STRIDE..end].fill(head);
            }
            at = end;
        }
        out.truncate(count);
        if at == count { Ok(()) } else { Err(WRONG_RUNS) }
    }

    fn compressed(&mut self, count: usize, out: &mut Vec<u32>) -> Result<(), Fault> {
        let bytes = self.byte()? as usize;
        let len = self.u32()? as usize;
        let block = self.take(len)?;
        if !matches!(bytes, 1 | 2 | 4) {
            return Err("a column claims an impossible width");
        }
        let mut plain = vec![0; count * bytes];
        if lz4_flex::block::decompress_into(block, &mut plain).ok() != Some(plain.len()) {
            return Err("a column does not decompress to its length");
        }
        out.clear();
        match bytes {
            1 => out.extend(plain.iter().map(|&value| u32::from(value))),
            2 => out.extend(plain.as_chunks::<2>().0.iter().map(|&value| u32::from(u16::from_le_bytes(value)))),
            _ => out.extend(plain.as_chunks::<4>().0.iter().map(|&value| u32::from_le_bytes(value))),
        }
        Ok(())
    }
}

const WRONG_RUNS: Fault = "the runs of a column do not add up";

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[u32], ordered: bool) -> (u8, usize) {
        let mut stored = Vec::new();
        write(values, ordered, &mut stored);
        let (mode, len) = (stored[0], stored.len());
        stored.resize(len + SLACK, 0xff);
        let mut cursor = Cursor::new(&stored);
        let mut found = vec![1, 2, 3];
        cursor.column(values.len(), &mut found).unwrap();
        assert!(cursor.is_at_end());
        assert_eq!(found, values);
        (mode, len)
    }

    #[test]
    fn each_shape_of_column_takes_the_mode_made_for_it() {
        assert_eq!(round_trip(&[7; 1000], false), (CONSTANT, 5));
        let counting: Vec<u32> = (1000..2000).collect();
        assert!(round_trip(&counting, true).0 & DELTA != 0);
        let runs: Vec<u32> = (0..4000).map(|i| i / 100 * 7919 % 64).collect();
        assert_eq!(round_trip(&runs, false).0, RUNS);
        let noise: Vec<u32> = (0..4000u32).map(|i| i.wrapping_mul(0x9e37_79b9) >> 20).collect();
        assert_eq!(round_trip(&noise, false).0, PACKED);
        let repeating: Vec<u32> = (0..4000u32).map(|i| noise[i as usize % 50]).collect();
        assert_eq!(round_trip(&repeating, false).0, LZ4);
        round_trip(&[0, u32::MAX, 1, u32::MAX - 1], true);
    }

    #[test]
    fn damaged_columns_are_faults() {
        let faults: [&[u8]; 6] = [
            &[9],
            &[0, 1, 2],
            &[1, 0, 0, 0, 0, 33],
            &[2, 9, 0, 0, 0],
            &[3, 3, 0, 0, 0, 0],
            &[3, 1, 255, 255, 255, 255],
        ];
        for stored in faults {
            let padded = [stored, &[0; SLACK]].concat();
            assert!(Cursor::new(&padded).column(4, &mut Vec::new()).is_err(), "{stored:?}");
        }
    }
}
