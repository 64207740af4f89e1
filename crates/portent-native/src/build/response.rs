//! Response files: `@FILE` on a compiler's command line stands for the arguments in FILE.
//!
//! They are read only to understand the command; the compiler gets `@FILE` as it was given. The rules are those of gcc and
//! clang: white space separates, quotes of both kinds and the backslash protect, a file that cannot be read is an argument
//! like any other.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// How many files are read: they may name files, themselves included.
const FILES: usize = 1000;

/// All arguments, with those of response files in their place.
pub(crate) fn expanded(arguments: &[OsString]) -> Vec<OsString> {
    let mut all = Vec::with_capacity(arguments.len());
    expand(arguments, &mut { FILES }, &mut all);
    all
}

fn expand(arguments: &[OsString], files: &mut usize, all: &mut Vec<OsString>) {
    for argument in arguments {
        let file = argument.as_bytes().strip_prefix(b"@").filter(|_| *files > 0);
        match file.and_then(|file| std::fs::read(OsStr::from_bytes(file)).ok()) {
            Some(text) => {
                *files -= 1;
                expand(&split(&text), files, all);
            }
            None => all.push(argument.clone()),
        }
    }
}

fn split(text: &[u8]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut argument: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => argument.get_or_insert_default().extend(bytes.next()),
            _ if quote == Some(byte) => quote = None,
            _ if quote.is_some() => argument.get_or_insert_default().push(byte),
            b'\'' | b'"' => {
                quote = Some(byte);
                argument.get_or_insert_default();
            }
            _ if byte.is_ascii_whitespace() => arguments.extend(argument.take()),
            _ => argument.get_or_insert_default().push(byte),
        }
    }
    arguments.extend(argument);
    arguments.into_iter().map(OsString::from_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_protect() {
        let words = split(b"  -c 'a b.c'\t\"-DX=\\\"1 2\\\"\" a\\ b ''\n-o\r\nx");
        assert_eq!(words, ["-c", "a b.c", "-DX=\"1 2\"", "a b", "", "-o", "x"]);
        assert_eq!(split(b"'open end"), ["open end"]);
        assert_eq!(split(b" \n"), [""; 0]);
    }

    #[test]
    fn files_name_files_even_themselves() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("outer"), folder.path().join("inner"));
        std::fs::write(&outer, format!("-a @{} -c", inner.display())).unwrap();
        std::fs::write(&inner, "-b").unwrap();
        let argument = |path: &std::path::Path| OsString::from(format!("@{}", path.display()));
        assert_eq!(expanded(&[argument(&outer), "@missing".into()]), ["-a", "-b", "-c", "@missing"]);
        std::fs::write(&inner, format!("@{0} @{0}", inner.display())).unwrap();
        assert_eq!(expanded(&[argument(&inner)]).len(), FILES + 1);
    }
}
