//! Numbers, tables and bars as text.

pub(crate) use portent_report::words::{count, counted, short};

/// A share in per cent, one digit behind the point.
pub(crate) fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// A bar of block characters, `width` wide for `most`; anything above zero shows.
pub(crate) fn bar(value: u64, most: u64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (value as f64 / most.max(1) as f64 * (width * 8) as f64).round() as usize;
    let eighths = if value > 0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

/// Rows in columns: the first column and bars start left, numbers end right.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The longest name a table shows in full.
    const NAME: usize = 28;

    pub(crate) fn new(header: &[&str]) -> Self {
        Self { rows: vec![header.iter().map(|&cell| cell.to_owned()).collect()] }
    }
    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(short(name, Self::NAME)).chain(cells).collect());
    }
    /// The text of the table; every line starts with `indent`, except that of the header.
    pub(crate) fn render(&self, indent: &str) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let indent_of = |row: usize| if row == 0 { "" } else { indent };
        let mut widths = vec![0; columns];
        for (r, row) in self.rows.iter().enumerate() {
            for (c, cell) in row.iter().enumerate() {
                let lead = if c == 0 { indent_of(r).chars().count() } else { 0 };
                // A bar ends its row and needs no width.
                if !is_bar(cell) {
                    widths[c] = widths[c].max(lead + cell.chars().count());
                }
            }
        }
        let mut text = String::new();
        for (r, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (c, cell) in row.iter().enumerate() {
                if c == 0 {
                    line.push_str(&format!("{:<width$}", format!("{}{cell}", indent_of(r)), width = widths[0]));
                } else if is_bar(cell) {
                    line.push_str(&format!("  {cell}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}", width = widths[c]));
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn is_bar(cell: &str) -> bool {
    cell.chars().next().is_some_and(|c| ('▀'..='▟').contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_still_shows() {
        assert_eq!(bar(1, 1_000_000, 10), "▏");
        assert_eq!(bar(0, 10, 10), "");
        assert_eq!(bar(10, 10, 10), "██████████");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["threads", "events"]);
        table.row("T1", [count(1234)]);
        table.row("a longer name", [count(5)]);
        assert_eq!(table.render("  "), "threads          events\n  T1              1,234\n  a longer name       5\n");
    }
}
