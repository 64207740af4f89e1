//! Numbers and names as text that is safe to show.

use crate::stream;
use std::borrow::Cow;

/// A number with thousands separators.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun, in the right form: `1 lock`, `2 locks`, `3 switches`.
pub fn counted(n: u64, noun: &str) -> String {
    let plural = match noun {
        _ if n == 1 => "",
        "switch" | "branch" => "es",
        _ => "s",
    };
    format!("{} {noun}{plural}", count(n))
}

/// Characters that change the order or the look of what is around them and are not seen themselves: directions of writing, and what
/// joins or ends without a sign. They let a name look like another one.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Text without control characters: names come from files, and a terminal obeys what it is shown.
pub fn printable(text: &str) -> Cow<'_, str> {
    let escapes = |c: char| (c.is_control() && c != '\n') || is_hidden(c);
    if !text.contains(escapes) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if escapes(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown.into()
}

/// Text from outside on one line.
pub fn line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

/// A name that fits a column: long ones lose their middle.
pub fn short(name: &str, width: usize) -> String {
    let name = printable(name);
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= width || width < 5 {
        return name.into_owned();
    }
    let head = (width - 1) / 2;
    let tail = width - 1 - head;
    chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - tail..]).collect()
}

/// A name that fits a heading: in which functions things are is left out first.
pub(crate) fn title(name: &str, width: usize) -> String {
    let mut name = printable(name).into_owned();
    while name.chars().count() > width
        && let Some((start, end)) = whereabouts(&name)
    {
        name.replace_range(start..end, "");
    }
    short(&name, width)
}

/// The first ` in FUNCTION()` of a name; ` in main::{lambda()#1}()` and ` in (started in main())` are one each.
fn whereabouts(name: &str) -> Option<(usize, usize)> {
    let start = name.find(" in ")?;
    let begin = start + " in ".len();
    let mut depth = 0;
    for (at, c) in name[begin..].char_indices() {
        match c {
            '(' | '{' | '<' | '[' => depth += 1,
            ')' | '}' | '>' | ']' => depth -= 1,
            ' ' | ',' if depth == 0 => return None,
            _ => {}
        }
        let rest = &name[begin + at + c.len_utf8()..];
        if c == ')' && depth == 0 && (rest.is_empty() || rest.starts_with([' ', ',', '.', '[', '+'])) {
            return Some((start, name.len() - rest.len()));
        }
    }
    None
}

/// A function as people say it: without its parameters and the inner parts of its templates.
pub(crate) fn function(name: &str) -> String {
    const WIDEST: usize = 40;
    let name = line(name);
    let mut bare = name.as_str();
    // Parameters end the name; `operator()` and `(anonymous namespace)` only look like them.
    if let Some(open) = parameters(bare) {
        bare = &bare[..open];
    }
    // What a lambda does is in its operator, which nobody calls by name.
    bare = bare.strip_suffix("::operator()").filter(|name| name.ends_with('}')).unwrap_or(bare);
    let mut told = bare.to_owned();
    if told.chars().count() > WIDEST {
        told = String::new();
        let mut depth = 0;
        for c in bare.chars() {
            match c {
                '<' => {
                    told.push_str(if depth == 0 { "<…" } else { "" });
                    depth += 1;
                }
                '>' if depth > 0 => {
                    depth -= 1;
                    told.push_str(if depth == 0 { ">" } else { "" });
                }
                c if depth == 0 => told.push(c),
                _ => {}
            }
        }
        told = short(&told, WIDEST);
    }
    // Of code without symbols, the module.
    let is_call = told.ends_with(')') || told.contains(".so");
    if told.is_empty() || is_call { told } else { format!("{told}()") }
}

/// Where the parameters of a function begin: the bracket that the last one closes.
fn parameters(name: &str) -> Option<usize> {
    let end = name.rfind(')')?;
    let rest = &name[end + 1..];
    if !(rest.is_empty() || rest.starts_with(" const") || rest.starts_with(" [")) {
        return None;
    }
    let mut depth = 0;
    for (at, c) in name[..=end].char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let before = &name[..at];
            let is_name = before.is_empty() || before.ends_with("operator") || before.ends_with("::");
            return (!is_name).then_some(at);
        }
    }
    None
}

/// Text of at most so many characters: what is too long loses its end.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// JSON that is safe to show: the control characters that JSON itself lets through, as JSON escapes.
pub fn escaped_json(json: &str) -> String {
    // Neither writing to memory nor text that was text before can fail.
    stream::text(|out| stream::write_escaped(json, out)).unwrap_or_default()
}

/// Words joined as in a sentence: `A`, `A and B`, `A, B and C`.
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Text broken into lines of at most `width` characters, at blanks where there are some.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().into_iter().for_each(|line| line.extend(&word));
            lines.push(String::new());
            word = rest;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.extend(&word);
            used += word.len();
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated_and_nouns_agree() {
        assert_eq!([0, 999, 1000, 1234567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([counted(1, "lock"), counted(2, "lock"), counted(3, "switch")], ["1 lock", "2 locks", "3 switches"]);
    }

    #[test]
    fn names_cannot_drive_the_terminal() {
        assert_eq!(printable("thread \x1b[2J\x07T1"), "thread \\u{1b}[2J\\u{7}T1");
        assert_eq!(printable("plain μ\n"), "plain μ\n");
        assert_eq!(line("a\nb"), "a\\nb");
        // Nor can they look like others.
        assert_eq!(printable("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(escaped_json("\u{9b}"), "\\u009b");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(short("abcdefghij", 7), "abc…hij");
        assert_eq!(short("abc", 7), "abc");
        let race = "data race on value of an element of totals.words in main()";
        assert_eq!(title(race, 60), race);
        assert_eq!(title(race, 50), "data race on value of an element of totals.words");
    }

    #[test]
    fn headings_lose_whole_functions() {
        assert_eq!(title("use after free in (started in main())", 20), "use after free");
        assert_eq!(title("use after free in main::{lambda(int)#1}()", 20), "use after free");
        assert_eq!(title("data race on total in main(), line 3", 26), "data race on total, line 3");
    }

    #[test]
    fn functions_lose_their_parameters_and_keep_their_names() {
        assert_eq!(function("worker"), "worker()");
        assert_eq!(function("worker(void*)"), "worker()");
        assert_eq!(function("Pool::run(std::function<void (int)>) const"), "Pool::run()");
        assert_eq!(function("F::operator()(int)"), "F::operator()");
        assert_eq!(function("main::{lambda(int)#1}::operator()(int) const"), "main::{lambda(int)#1}()");
        assert_eq!(function("(anonymous namespace)::f(int)"), "(anonymous namespace)::f()");
        let long = "std::_Function_handler<void (), std::_Bind<int, long>>::_M_invoke(std::_Any_data const&)";
        assert_eq!(function(long), "std::_Function_handler<…>::_M_invoke()");
        assert_eq!(function(""), "");
        assert_eq!(function("a\u{1b}[2J"), "a\\u{1b}[2J()");
    }

    #[test]
    fn lines_break_at_blanks_and_inside_words_that_are_too_long() {
        assert_eq!(wrapped("one two three", 9), ["one two", "three"]);
        assert_eq!(wrapped("a abcdefghijklm b", 8), ["a", "abcdefgh", "ijklm b"]);
        assert_eq!(wrapped("", 9), [""]);
    }
}
