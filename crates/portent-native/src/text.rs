//! Text of the system, which need not be UTF-8, and bytes, as JSON has them.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// A text that need not be UTF-8, as paths and arguments are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Text {
    /// One that is.
    Plain(String),
    /// One that is not.
    Hex {
        /// Its bytes.
        hex: String,
    },
}

impl From<&OsStr> for Text {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Text::Plain(text.to_owned()),
            None => Text::Hex { hex: to_hex(text.as_bytes()) },
        }
    }
}

impl Text {
    /// The text as the system takes it. Damaged hexadecimal digits are left out.
    pub fn to_os(&self) -> OsString {
        match self {
            Text::Plain(text) => text.into(),
            Text::Hex { hex } => OsString::from_vec(from_hex(hex).unwrap_or_default()),
        }
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |at: &u8| char::from(*at).to_digit(16);
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let bytes: Option<Vec<u8>> = pairs.iter().map(|[a, b]| Some((digit(a)? * 16 + digit(b)?) as u8)).collect();
    bytes.filter(|_| rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_any_bytes_come_back() {
        for bytes in [&b"plain"[..], b"\xff\x00not utf-8", b""] {
            let text = Text::from(OsStr::from_bytes(bytes));
            let json = serde_json::to_string(&text).unwrap();
            let back: Text = serde_json::from_str(&json).unwrap();
            assert_eq!(back.to_os().as_bytes(), bytes);
        }
        assert_eq!(from_hex("0g"), None);
        assert_eq!(from_hex("012"), None);
    }
}
