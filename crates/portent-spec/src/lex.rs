//! Words and signs of a property file, with where they are.

use crate::diagnostic::Diagnostic;
use std::ops::Range;

/// A word or a sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// A name in quotation marks.
    Quoted(String),
    Number(i64),
    Sign(&'static str),
    End,
}

impl Token {
    pub(crate) fn text(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Quoted(text) => format!("\"{text}\""),
            Token::Number(number) => format!("`{number}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end of the file".into(),
        }
    }
}

/// Longer ones first.
const SIGNS: [&str; 34] = [
    "<->", "->", "<=", ">=", "==", "!=", "&&", "||", "<", ">", "=", "!", "~", "&", "|", "(", ")", "[", "]", ",", ".",
    "*", "+", "?", "-", "/", "%", ":", ";", "⊙", "¬", "∧", "∨", "→",
];

/// Cuts a file into tokens; the last one is [`Token::End`].
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, Range<usize>)>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let start = at;
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if c == '#' || rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if c.is_alphabetic() || c == '_' {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
            let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            // C++ names: `counter::total`.
            while rest[end..].starts_with("::") && rest[end + 2..].starts_with(|c: char| c.is_alphabetic() || c == '_')
            {
                end += 2 + rest[end + 2..].find(|c| !is_part(c)).unwrap_or(rest.len() - end - 2);
            }
            at += end;
            tokens.push((Token::Word(rest[..end].to_owned()), start..at));
        } else if c.is_ascii_digit() {
            at += rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            let text = source[start..at].replace('_', "");
            let value = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                // A mask may use all 64 bits.
                Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value as i64),
                None => text.parse().ok(),
            };
            let value = value.ok_or_else(|| {
                Diagnostic::new(start..at, format!("`{}` is not a number that fits 64 bits", &source[start..at]))
            })?;
            tokens.push((Token::Number(value), start..at));
        } else if c == '"' {
            let inside = &rest[1..];
            let end = inside.find(['"', '\n']).filter(|&end| inside.as_bytes()[end] == b'"').ok_or_else(|| {
                let line = rest.find('\n').unwrap_or(rest.len());
                Diagnostic::new(start..start + line, "a name in quotation marks does not end on its line")
                    .help("expected another `\"`")
            })?;
            at += end + 2;
            tokens.push((Token::Quoted(inside[..end].to_owned()), start..at));
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            at += sign.len();
            let sign = match *sign {
                "⊙" => Token::Word("prev".into()),
                "¬" => Token::Sign("!"),
                "∧" | "&&" => Token::Sign("&"),
                "∨" | "||" => Token::Sign("|"),
                "→" => Token::Sign("->"),
                sign => Token::Sign(sign),
            };
            tokens.push((sign, start..at));
        } else {
            at += c.len_utf8();
            return Err(Diagnostic::new(start..at, format!("`{c}` has no meaning here"))
                .help("names with other characters than letters, digits and `_` go in quotation marks"));
        }
    }
    tokens.push((Token::End, source.len()..source.len()));
    Ok(tokens)
}
