//! Colours of a terminal, or none.

/// What is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    Heading,
    Goal,
    Label,
    Dim,
    Plain,
    /// A thread, by its number among those of the finding.
    Thread(usize),
}

/// Text in colour, if there is any.
pub(crate) fn paint(colours: bool, ink: Ink, text: &str) -> String {
    /// Cyan, magenta, green, blue, yellow: red is kept for what is wrong.
    const THREADS: [&str; 5] = ["36", "35", "32", "34", "33"];
    if !colours || text.is_empty() {
        return text.to_owned();
    }
    let code = match ink {
        Ink::Heading => "1",
        Ink::Goal => "1;31",
        Ink::Label => "1",
        Ink::Dim => "2",
        Ink::Plain => return text.to_owned(),
        Ink::Thread(n) => THREADS[n % THREADS.len()],
    };
    format!("\x1b[{code}m{text}\x1b[0m")
}
