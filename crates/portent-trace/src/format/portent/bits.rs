//! Bit packing: `width` bits per number, lowest bit first, so that eight numbers take exactly `width` bytes.

/// How many bytes must be readable behind packed data: numbers are fetched eight bytes at a time.
pub(super) const SLACK: usize = 8;

/// How many bytes `count` numbers of `width` bits take; the last group of eight is filled up.
pub(super) fn packed_len(count: usize, width: u32) -> usize {
    count.div_ceil(8) * width as usize
}

/// How many bits the largest of `values` needs.
pub(super) fn width_of(values: impl Iterator<Item = u32>) -> u32 {
    32 - values.fold(0, |all, value| all | value).leading_zeros()
}

/// Appends `values`, of which none needs more than `width` bits.
pub(super) fn pack(values: impl ExactSizeIterator<Item = u32>, width: u32, out: &mut Vec<u8>) {
    let end = out.len() + packed_len(values.len(), width);
    let (mut pending, mut bits) = (0u64, 0);
    for value in values {
        debug_assert!(width == 32 || value >> width == 0);
        pending |= u64::from(value) << bits;
        bits += width;
        while bits >= 8 {
            out.push(pending as u8);
            pending >>= 8;
            bits -= 8;
        }
    }
    if bits > 0 {
        out.push(pending as u8);
    }
    out.resize(end, 0);
}

/// Fills `out` with numbers of `width` bits from the start of `data`, which is followed by [`SLACK`] bytes.
///
/// `None` if `data` is too short or `width` is above 32.
pub(super) fn unpack(data: &[u8], width: u32, out: &mut [u32]) -> Option<()> {
    if data.len() < packed_len(out.len(), width) + SLACK {
        return None;
    }
    macro_rules! by_width {
        ($($width:literal)*) => {
            match width {
                0 => out.fill(0),
                $($width => unpack_width::<$width>(data, out),)*
                _ => return None,
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    Some(())
}

fn unpack_width<const WIDTH: usize>(data: &[u8], out: &mut [u32]) {
    let mut groups = out.chunks_exact_mut(8);
    let mut at = 0;
    for group in &mut groups {
        unpack_group::<WIDTH>(&data[at..at + WIDTH + SLACK], group);
        at += WIDTH;
    }
    let rest = groups.into_remainder();
    if !rest.is_empty() {
        let mut group = [0; 8];
        unpack_group::<WIDTH>(&data[at..at + WIDTH + SLACK], &mut group);
        rest.copy_from_slice(&group[..rest.len()]);
    }
}

#[inline(always)]
fn unpack_group<const WIDTH: usize>(data: &[u8], group: &mut [u32]) {
    let mask = u32::MAX >> (32 - WIDTH);
    for (i, value) in group.iter_mut().enumerate() {
        let (byte, shift) = (i * WIDTH / 8, i * WIDTH % 8);
        let word = data[byte..].first_chunk::<8>().copied().unwrap_or_default();
        *value = (u64::from_le_bytes(word) >> shift) as u32 & mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_gives_back_what_was_packed() {
        for width in 0..=32u32 {
            for count in [0, 1, 7, 8, 9, 128, 131] {
                let mask = if width == 0 { 0 } else { u32::MAX >> (32 - width) };
                let values: Vec<u32> = (0..count).map(|i: u32| i.wrapping_mul(0x9e37_79b9) & mask).collect();
                let mut packed = Vec::new();
                pack(values.iter().copied(), width, &mut packed);
                assert_eq!(packed.len(), packed_len(values.len(), width));
                packed.resize(packed.len() + SLACK, 0xff);
                let mut found = vec![0; values.len()];
                unpack(&packed, width, &mut found).unwrap();
                assert_eq!(found, values, "width {width}");
                assert!(unpack(&packed[1..], width, &mut found).is_none());
            }
        }
    }
}
