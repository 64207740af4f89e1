//! Findings as one HTML page that needs nothing else: style, script and data are inside it, and it loads nothing.
//!
//! The page shows the findings with filters, observations folded below the failures, and for each the two orders (of a
//! failure, the run that failed) in lanes, one per thread. Long stretches without events that matter are folded. Data is bounded: beyond 400,000 events or 2,000,000 places in orders,
//! later findings carry only the events that matter, and the page says so.

mod data;
mod excerpts;

use crate::report::Report;
use crate::stream;
use std::io::{self, Write};

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const SCRIPTS: [&str; 4] = [
    include_str!("html/model.js"),
    include_str!("html/lanes.js"),
    include_str!("html/panels.js"),
    include_str!("html/app.js"),
];

/// The whole page.
pub fn page(report: &Report) -> Result<String, serde_json::Error> {
    stream::text(|out| write(report, out))
}

/// Writes the whole page.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let data = serde_json::to_string(&data::Data::of(report))?;
    let title = format!("Portent: {}", report.settings.input);
    let mut page = PAGE.replacen("{{title}}", &escaped_text(&title), 1);
    page = page.replacen("{{style}}", STYLE, 1);
    page = page.replacen("{{script}}", &SCRIPTS.concat(), 1);
    // Last, and by itself: text from outside must not be looked at for marks.
    let (before, after) = page.split_once("{{data}}").unwrap_or((&page, ""));
    out.write_all(before.as_bytes())?;
    write_data(&data, out)?;
    out.write_all(after.as_bytes())
}

/// JSON inside a script element: nothing in it may look like the end of the element, or like a line end to old parsers.
fn write_data(json: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut rest = json;
    let escapes = |c: char| matches!(c, '<' | '>' | '&' | '\u{7f}'..='\u{9f}');
    // Line ends to old parsers among them.
    let hidden = crate::words::is_hidden;
    while let Some((at, c)) = rest.char_indices().find(|(_, c)| escapes(*c) || hidden(*c)) {
        out.write_all(&rest.as_bytes()[..at])?;
        match c {
            // What the page shows is the escape itself.
            c if hidden(c) => write!(out, "\\\\u{{{:x}}}", u32::from(c))?,
            c => write!(out, "\\u{:04x}", u32::from(c))?,
        }
        rest = &rest[at + c.len_utf8()..];
    }
    out.write_all(rest.as_bytes())
}

fn escaped_text(text: &str) -> String {
    let text = crate::words::line(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('{', "&#123;")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The colours of a theme, by name.
    fn colours(theme: &str) -> std::collections::BTreeMap<&'static str, [f64; 3]> {
        let block = STYLE.split(&format!("{theme} {{")).nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let declarations = block.split(';').filter_map(|declaration| declaration.trim().split_once(": #"));
        let channel = |hex: &str, at: usize| {
            let share = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if share <= 0.03928 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
        };
        declarations.map(|(name, hex)| (name.trim_start_matches("--"), [0, 2, 4].map(|at| channel(hex, at)))).collect()
    }

    /// As the Web Content Accessibility Guidelines define it.
    fn contrast(a: [f64; 3], b: [f64; 3]) -> f64 {
        let light = |[red, green, blue]: [f64; 3]| 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
        let (a, b) = (light(a), light(b));
        if a > b { a / b } else { b / a }
    }

    #[test]
    fn every_text_can_be_read_on_every_ground_in_both_themes() {
        let grounds = ["paper", "card", "hover", "select", "wrong-soft", "code"];
        for theme in [":root", ":root[data-theme=\"dark\"]"] {
            let colours = colours(theme);
            let texts =
                colours.keys().filter(|name| !grounds.contains(name) && !["line", "select-edge"].contains(name));
            for text in texts.clone() {
                for ground in grounds {
                    let contrast = contrast(colours[text], colours[ground]);
                    assert!(contrast >= 4.5, "{theme}: {text} on {ground} has a contrast of {contrast:.2}");
                }
            }
            assert!(texts.count() >= 20, "{theme} has colours for texts, threads and kinds");
        }
        assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 1e-9);
    }

    #[test]
    fn data_cannot_leave_its_element() {
        let json = serde_json::to_string("</script><!-- &\u{2028}").unwrap();
        let text = stream::text(|out| write_data(&json, out)).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        // What is not seen, or turns what is around it, is shown as what it is; everything else comes back.
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "</script><!-- &\\u{2028}");
        assert_eq!(escaped_text("<b>{{data}}"), "&lt;b&gt;&#123;&#123;data}}");
    }
}
