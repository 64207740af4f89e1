//! What surrounds the payloads: the file header, the header of every chunk, the trailer.
//!
//! Chunk headers have a checksum of their own, so that a chunk can be skipped without reading its payload and a
//! damaged length is never believed.

use crate::error::Problem;

/// The first eight bytes of every file.
pub const MAGIC: [u8; 8] = *b"PORTENT\0";
/// The version that is written; those before it are read, too.
pub const VERSION: u16 = 2;

/// A version that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Names are nothing but text, and events have no stacks.
    One,
    Two,
}

pub(super) const FILE_HEADER: usize = 16;
pub(super) const CHUNK_HEADER: usize = 36;
pub(super) const TRAILER: usize = 32;
pub(super) const CHUNK_MAGIC: [u8; 4] = *b"PtCk";
const TRAILER_MAGIC: [u8; 8] = *b"PORTEND\0";

/// The most events a chunk may hold.
pub(super) const MAX_EVENTS: usize = 65_536;
/// The most bytes a payload may have, stored or not.
pub(super) const MAX_PAYLOAD: usize = 16 << 20;
/// How many times its stored length a payload may have: memory stays in proportion to the file.
pub(super) const MAX_RATIO: usize = 32;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..].first_chunk().copied().unwrap_or_default())
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..].first_chunk().copied().unwrap_or_default())
}

pub(super) fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..12]);
    bytes[12..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The version of a file, if it can be read.
pub(super) fn check_file_header(bytes: &[u8; FILE_HEADER]) -> Result<Version, Problem> {
    if bytes[..8] != MAGIC {
        return Err(Problem::BadMagic { found: bytes[..8].to_vec() });
    }
    if u32_at(bytes, 12) != crc32fast::hash(&bytes[..12]) {
        return Err(Problem::BadChunk {
            what: "first",
            detail: "the checksum of the file header does not match".into(),
        });
    }
    match u16::from_le_bytes([bytes[8], bytes[9]]) {
        1 => Ok(Version::One),
        VERSION => Ok(Version::Two),
        found => Err(Problem::BadVersion { found, supported: VERSION }),
    }
}

/// What a chunk holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Definitions,
    Events,
    Index,
    /// Something a later version added that readers may pass over.
    Optional(u8),
}

impl Kind {
    pub(super) fn code(self) -> u8 {
        match self {
            Kind::Definitions => 1,
            Kind::Events => 2,
            Kind::Index => 3,
            Kind::Optional(code) => code,
        }
    }
    pub(super) fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Kind::Definitions,
            2 => Kind::Events,
            3 => Kind::Index,
            128.. => Kind::Optional(code),
            _ => return None,
        })
    }
    pub(super) fn what(self) -> &'static str {
        match self {
            Kind::Definitions => "definitions",
            Kind::Events => "events",
            Kind::Index => "index",
            Kind::Optional(_) => "optional",
        }
    }
}

/// The header of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkHeader {
    pub(super) kind: Kind,
    /// Whether the payload is an LZ4 block.
    pub(super) compressed: bool,
    /// Events in this chunk.
    pub(super) events: u32,
    /// Events before this chunk.
    pub(super) first: u64,
    /// Payload bytes in the file.
    pub(super) stored: u32,
    /// Payload bytes, decompressed.
    pub(super) raw: u32,
    pub(super) payload_crc: u32,
}

/// Why some bytes are no chunk header that can be used.
pub(super) enum NoHeader {
    /// They are something else, or damaged.
    Torn,
    /// They are a header, but one that this version does not allow.
    Refused(String),
}

impl ChunkHeader {
    pub(super) fn to_bytes(self) -> [u8; CHUNK_HEADER] {
        let mut bytes = [0; CHUNK_HEADER];
        bytes[..4].copy_from_slice(&CHUNK_MAGIC);
        bytes[4] = self.kind.code();
        bytes[5] = self.compressed.into();
        bytes[8..12].copy_from_slice(&self.events.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.stored.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.raw.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.payload_crc.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..32]);
        bytes[32..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, NoHeader> {
        let Some(bytes) = bytes.first_chunk::<CHUNK_HEADER>() else { return Err(NoHeader::Torn) };
        if bytes[..4] != CHUNK_MAGIC || u32_at(bytes, 32) != crc32fast::hash(&bytes[..32]) {
            return Err(NoHeader::Torn);
        }
        let refused = |detail: String| Err(NoHeader::Refused(detail));
        let Some(kind) = Kind::from_code(bytes[4]) else {
            return refused(format!("its kind {} is not known here", bytes[4]));
        };
        let header = Self {
            kind,
            compressed: bytes[5] == 1,
            events: u32_at(bytes, 8),
            stored: u32_at(bytes, 12),
            first: u64_at(bytes, 16),
            raw: u32_at(bytes, 24),
            payload_crc: u32_at(bytes, 28),
        };
        let (stored, raw) = (header.stored as usize, header.raw as usize);
        if stored > MAX_PAYLOAD || raw > MAX_PAYLOAD {
            return refused(format!("it claims {} bytes; expected at most {MAX_PAYLOAD}", stored.max(raw)));
        }
        if header.events as usize > MAX_EVENTS {
            return refused(format!("it claims {} events; expected at most {MAX_EVENTS}", header.events));
        }
        if (header.events > 0) != (kind == Kind::Events) && !matches!(kind, Kind::Optional(_)) {
            return refused(format!("it claims {} events", header.events));
        }
        if bytes[5] > 1 || bytes[6] != 0 || bytes[7] != 0 {
            return refused("it uses features that are not known here".into());
        }
        let lengths_fit = if header.compressed { raw <= stored.saturating_mul(MAX_RATIO) } else { raw == stored };
        if !lengths_fit {
            return refused(format!("its lengths {stored} and {raw} do not fit together"));
        }
        Ok(header)
    }

    /// Header and payload together.
    pub(super) fn total_len(self) -> u64 {
        CHUNK_HEADER as u64 + u64::from(self.stored)
    }
}

/// The last bytes of a file that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    /// Where the first index chunk starts.
    pub(super) index: u64,
    /// Events in the file.
    pub(super) events: u64,
    /// Chunks before the index.
    pub(super) chunks: u32,
}

impl Trailer {
    pub(super) fn to_bytes(self) -> [u8; TRAILER] {
        let mut bytes = [0; TRAILER];
        bytes[..8].copy_from_slice(&TRAILER_MAGIC);
        bytes[8..16].copy_from_slice(&self.index.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.events.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.chunks.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<TRAILER>()?;
        let whole = bytes[..8] == TRAILER_MAGIC && u32_at(bytes, 28) == crc32fast::hash(&bytes[..28]);
        whole.then(|| Self { index: u64_at(bytes, 8), events: u64_at(bytes, 16), chunks: u32_at(bytes, 24) })
    }
}

/// One line of the index: a chunk before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) offset: u64,
    pub(super) first: u64,
    pub(super) events: u32,
    pub(super) kind: Kind,
}

/// Bytes per line of the index.
pub(super) const INDEX_ENTRY: usize = 24;

impl IndexEntry {
    pub(super) fn to_bytes(self) -> [u8; INDEX_ENTRY] {
        let mut bytes = [0; INDEX_ENTRY];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.first.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.events.to_le_bytes());
        bytes[20] = self.kind.code();
        bytes
    }
    pub(super) fn parse(bytes: &[u8; INDEX_ENTRY]) -> Option<Self> {
        let kind = Kind::from_code(bytes[20])?;
        Some(Self { offset: u64_at(bytes, 0), first: u64_at(bytes, 8), events: u32_at(bytes, 16), kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_give_back_what_was_stored_and_notice_every_flipped_bit() {
        let header = ChunkHeader {
            kind: Kind::Events,
            compressed: false,
            events: 65_536,
            first: 1 << 40,
            stored: 1000,
            raw: 1000,
            payload_crc: 0xdead_beef,
        };
        let bytes = header.to_bytes();
        assert_eq!(ChunkHeader::parse(&bytes).ok(), Some(header));
        let trailer = Trailer { index: 99, events: 7, chunks: 3 };
        assert_eq!(Trailer::parse(&trailer.to_bytes()), Some(trailer));
        for bit in 0..CHUNK_HEADER * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(ChunkHeader::parse(&flipped), Err(NoHeader::Torn)), "bit {bit}");
        }
        assert!(check_file_header(&file_header()).is_ok());
    }

    #[test]
    fn absurd_lengths_are_refused_before_anything_is_allocated() {
        let header = ChunkHeader {
            kind: Kind::Definitions,
            compressed: true,
            events: 0,
            first: 0,
            stored: 100,
            raw: 100,
            payload_crc: 0,
        };
        for bad in [
            ChunkHeader { raw: u32::MAX, ..header },
            ChunkHeader { raw: 3201, ..header },
            ChunkHeader { events: 1, ..header },
            ChunkHeader { compressed: false, raw: 101, ..header },
            ChunkHeader { kind: Kind::Events, events: 65_537, ..header },
        ] {
            assert!(matches!(ChunkHeader::parse(&bad.to_bytes()), Err(NoHeader::Refused(_))), "{bad:?}");
        }
    }
}
