//! The observed and the breaking order side by side.

use super::Look;
use super::paint::{Ink, paint};
use crate::moments::{Moment, Orders};
use crate::relevance::Relevance;
use crate::scene::State;
use crate::words::{counted, line, short};

/// The longest thread name that is shown in full.
const NAME: usize = 12;

/// A line of a column: what is shown, and how wide that is.
struct Cell {
    text: String,
    width: usize,
}

impl Cell {
    fn plain(text: String) -> Cell {
        Cell { width: text.chars().count(), text }
    }
}

/// The orders as indented lines.
pub(crate) fn orders(orders: &Orders, look: &Look) -> String {
    let side_by_side = look.width >= Look::NARROW && !orders.breaking.is_empty();
    let width = if side_by_side { (look.width.min(Look::WIDEST) - 5) / 2 } else { look.width.clamp(30, 80) - 2 };
    let mut threads: Vec<&str> = Vec::new();
    for moment in orders.observed.iter().chain(&orders.breaking) {
        if !threads.contains(&moment.thread.as_str()) {
            threads.push(&moment.thread);
        }
    }
    let column = |title: &str, moments: &[Moment]| {
        let mut cells = vec![
            Cell { text: paint(look.colours, Ink::Label, title), width: title.chars().count() },
            Cell::plain("─".repeat(width)),
        ];
        cells.extend(moments.iter().flat_map(|moment| cells_of(moment, &threads, width, look.colours)));
        if moments.iter().filter(|moment| moment.state == State::Next).count() > 1 {
            cells.push(dim("  both next, in either order", width, look.colours));
        }
        cells
    };
    let observed = column("observed order", &orders.observed);
    let breaking = if orders.breaking.is_empty() { Vec::new() } else { column("breaking order", &orders.breaking) };
    let mut text = String::new();
    if side_by_side {
        for row in 0..observed.len().max(breaking.len()) {
            let left = observed.get(row);
            let gap = " ".repeat(width - left.map_or(0, |cell| cell.width.min(width)));
            let left = left.map_or("", |cell| cell.text.as_str());
            let right = breaking.get(row).map_or("", |cell| cell.text.as_str());
            text.push_str(format!("  {left}{gap} {} {right}", if row == 1 { "┼" } else { "│" }).trim_end());
            text.push('\n');
        }
    } else {
        for cell in observed.iter().chain(&breaking) {
            text.push_str(format!("  {}", cell.text).trim_end());
            text.push('\n');
        }
    }
    text
}

fn dim(text: &str, width: usize, colours: bool) -> Cell {
    let text = short(text, width);
    Cell { width: text.chars().count(), text: paint(colours, Ink::Dim, &text) }
}

/// A moment in one or two lines of a column.
fn cells_of(moment: &Moment, threads: &[&str], width: usize, colours: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    if moment.folded > 0 {
        cells.push(dim(&format!("  ⋮ {}", counted(moment.folded, "event")), width, colours));
    }
    let goal = matches!(moment.relevance, Relevance::Goal(_));
    let names = threads.iter().map(|name| line(name).chars().count()).max().unwrap_or(0).min(NAME);
    let number = threads.iter().position(|name| *name == moment.thread).unwrap_or(0);
    let name = format!("{:<names$}", short(&line(&moment.thread), names.max(5)));
    let value = moment.value.as_ref().map_or_else(String::new, |value| format!(" = {value}"));
    let room = width.saturating_sub(4 + name.chars().count());
    let what = short(&format!("{}{value}", line(&moment.what)), room);
    // The location gets what is left: whole, without its directories, or not at all.
    let left = room.saturating_sub(what.chars().count() + 1);
    let location = line(&moment.at.text);
    let base = location.rsplit('/').next().unwrap_or_default();
    let location = [location.as_str(), base].into_iter().find(|text| text.chars().count() <= left).unwrap_or_default();
    let gap = room - what.chars().count() - location.chars().count();
    let text = format!(
        "{}{} {} {}{}{}",
        if moment.switched { "⇄" } else { " " },
        if goal { paint(colours, Ink::Goal, "●") } else { " ".into() },
        paint(colours, Ink::Thread(number), &name),
        if goal { paint(colours, Ink::Goal, &what) } else { what.clone() },
        " ".repeat(gap),
        paint(colours, Ink::Dim, location)
    );
    cells.push(Cell { text, width: 4 + name.chars().count() + what.chars().count() + gap + location.chars().count() });
    cells
}
