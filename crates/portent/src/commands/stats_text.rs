//! `portent stats` for people: one screen for a normal trace.

use crate::figures::{Table, bar, count, counted, share};
use portent_trace::stats::{OpCount, Stats, StillHeld, StillOpen};

/// How many threads, locks and variables are listed; `--json` lists all.
const THREADS: usize = 8;
const LOCKS: usize = 6;
const VARIABLES: usize = 6;
/// How many bars a histogram has.
const BARS: usize = 10;
const BAR_WIDTH: usize = 32;

/// The whole page.
pub(crate) fn page(name: &str, stats: &Stats) -> String {
    let sections =
        [overview(name, stats), operations(stats), threads(stats), locks(stats), variables(stats), runs(stats)];
    let shown: Vec<String> = sections.into_iter().filter(|section| !section.is_empty()).collect();
    shown.join("\n")
}

fn overview(name: &str, stats: &Stats) -> String {
    let summary = &stats.summary;
    let mut lines = vec![format!(
        "{name}: {} of {}, {} after lowering",
        counted(summary.events, "event"),
        counted(summary.threads as u64, "thread"),
        count(summary.kernel_events),
    )];
    let mut fact = |what: &str, text: String| lines.push(format!("  {what:<10} {text}"));
    let accesses = &stats.accesses;
    fact(
        "accesses",
        format!(
            "{}: {}, {}, {}; {} atomic; value known on {}",
            count(accesses.total()),
            counted(accesses.reads, "read"),
            counted(accesses.writes, "write"),
            counted(accesses.updates, "update"),
            count(accesses.atomic),
            share(accesses.with_value, accesses.total()),
        ),
    );
    let shared = stats.shared_variables;
    fact("variables", format!("{}, {} used by more than one thread", count(summary.variables as u64), count(shared)));
    let taken: u64 = stats.nesting.iter().sum();
    fact("locks", format!("{}, taken {}", count(summary.locks as u64), counted(taken, "time")));
    if stats.deepest_nesting() > 1 {
        fact("nesting", nesting(stats));
    }
    if stats.blocks.count > 0 {
        let longest = counted(stats.blocks.longest, "event");
        fact("blocks", format!("{} atomic, the longest of {longest}", count(stats.blocks.count)));
    }
    if let Some(stacks) = &stats.stacks {
        let (deepest, events) = (counted(stacks.deepest, "call"), counted(stacks.events, "event"));
        fact("stacks", format!("{} of up to {deepest}, known for {events}", count(stacks.count)));
    }
    fact("locations", count(stats.locations));
    fact("pairs", format!("{} of a read and a write it did not see", count(stats.read_write_pairs)));
    let mean = summary.events as f64 / (stats.switches + 1) as f64;
    fact("switches", format!("{}; a thread runs for {mean:.1} events on average", count(stats.switches)));
    if !summary.held_at_end.is_empty() {
        fact("held", format!("at the end: {}", held(&summary.held_at_end)));
    }
    if !summary.open_blocks.is_empty() {
        fact("open", format!("at the end: {}", open(&summary.open_blocks)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// How deep locks are nested: for each number of locks already held, how often another was taken.
fn nesting(stats: &Stats) -> String {
    const SHOWN: usize = 5;
    let times = |(held, times): (usize, &u64)| format!("{held}: {}", count(*times));
    let mut depths: Vec<String> = stats.nesting.iter().enumerate().take(SHOWN).map(times).collect();
    if stats.nesting.len() > SHOWN {
        depths.push(format!("more: {}", count(stats.nesting[SHOWN..].iter().sum())));
    }
    let deepest = counted(stats.deepest_nesting() as u64, "lock");
    format!("up to {deepest} at once; taken while holding {}", depths.join(", "))
}

/// Locks held at the end, in a few words.
pub(crate) fn held(all: &[StillHeld]) -> String {
    listed(all, |held| format!("{} by {}{}", held.lock, held.thread, if held.shared { " (shared)" } else { "" }))
}

/// Blocks open at the end, in a few words.
pub(crate) fn open(all: &[StillOpen]) -> String {
    listed(all, |open| {
        let block = if open.block.is_empty() { "unnamed" } else { &open.block };
        format!("{block} in {}", open.thread)
    })
}

fn listed<T>(all: &[T], one: impl Fn(&T) -> String) -> String {
    const SHOWN: usize = 5;
    let mut text = all.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        text.push_str(&format!(" and {} more", count((all.len() - SHOWN) as u64)));
    }
    text
}

/// Three columns, read downwards.
fn operations(stats: &Stats) -> String {
    let rows = stats.ops.len().div_ceil(3);
    let mut text = if rows > 0 { "operations\n".to_owned() } else { String::new() };
    let columns: Vec<Vec<String>> = stats.ops.chunks(rows.max(1)).map(|ops| cells(ops, stats.summary.events)).collect();
    for row in 0..rows {
        let cells: Vec<&str> = columns.iter().filter_map(|column| column.get(row)).map(String::as_str).collect();
        text.push_str(&format!("  {}\n", cells.join("    ")));
    }
    text
}

fn cells(ops: &[OpCount], events: u64) -> Vec<String> {
    let widest = |text: fn(&OpCount) -> String| ops.iter().map(|op| text(op).len()).max().unwrap_or(0);
    let (name, number) = (widest(|op| in_words(op.op).to_owned()), widest(|op| count(op.count)));
    let cell = |op: &OpCount| {
        format!("{:<name$}  {:>number$}  {:>6}", in_words(op.op), count(op.count), share(op.count, events))
    };
    ops.iter().map(cell).collect()
}

fn threads(stats: &Stats) -> String {
    let mut shown: Vec<_> = stats.per_thread.iter().collect();
    if shown.len() > THREADS {
        shown.sort_by_key(|thread| std::cmp::Reverse(thread.events));
        shown.truncate(THREADS);
    }
    let most = shown.iter().map(|thread| thread.events).max().unwrap_or(0);
    let mut table = Table::new(&["threads", "events", "accesses", "acquires", "first", "last"]);
    for thread in &shown {
        let number = |n: Option<u64>| n.map_or("-".to_owned(), count);
        let numbers = [count(thread.events), count(thread.accesses), count(thread.acquisitions)];
        let span = [number(thread.first), number(thread.last), bar(thread.events, most, BAR_WIDTH / 2)];
        table.row(&thread.name, numbers.into_iter().chain(span));
    }
    table.render("  ") + &more(stats.per_thread.len(), shown.len(), "thread")
}

fn locks(stats: &Stats) -> String {
    if stats.per_lock.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["locks", "acquires", "shared", "failed tries", "threads", "contended"]);
    let shown = &stats.per_lock[..stats.per_lock.len().min(LOCKS)];
    let most = shown.first().map_or(0, |lock| lock.acquisitions);
    for lock in shown {
        let numbers = [lock.acquisitions, lock.shared, lock.failed_tries, lock.threads].map(count);
        let rest = [share(lock.contended, lock.acquisitions), bar(lock.acquisitions, most, BAR_WIDTH / 2)];
        table.row(&lock.name, numbers.into_iter().chain(rest));
    }
    table.render("  ") + &more(stats.per_lock.len(), shown.len(), "lock")
}

fn variables(stats: &Stats) -> String {
    if stats.busiest_variables.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["busiest variables", "accesses", "reads", "writes", "updates", "threads"]);
    let shown = &stats.busiest_variables[..stats.busiest_variables.len().min(VARIABLES)];
    let most = shown.first().map_or(0, |variable| variable.accesses());
    for variable in shown {
        let accesses = variable.accesses();
        let numbers = [accesses, variable.reads, variable.writes, variable.updates, variable.threads].map(count);
        table.row(&variable.name, numbers.into_iter().chain([bar(accesses, most, BAR_WIDTH / 2)]));
    }
    table.render("  ")
}

fn runs(stats: &Stats) -> String {
    if stats.runs.is_empty() {
        return String::new();
    }
    let mut rows: Vec<(String, u64)> = Vec::new();
    for (i, &runs) in stats.runs.iter().enumerate() {
        let from = 1u64 << i;
        if rows.len() == BARS - 1 && stats.runs.len() > BARS {
            let rest = stats.runs[i..].iter().sum();
            rows.push((format!("{} or more", count(from)), rest));
            break;
        }
        rows.push((if i == 0 { "1".into() } else { format!("{} to {}", count(from), count(2 * from - 1)) }, runs));
    }
    let most = rows.iter().map(|(_, runs)| *runs).max().unwrap_or(0);
    let mut table = Table::new(&["events between switches", "runs"]);
    for (length, runs) in rows {
        table.row(&length, [count(runs), bar(runs, most, BAR_WIDTH)]);
    }
    table.render("  ")
}

fn more(all: usize, shown: usize, what: &str) -> String {
    if all <= shown {
        return String::new();
    }
    format!("  and {} (--json lists all)\n", counted((all - shown) as u64, &format!("more {what}")))
}

/// An operation of STD text in words.
fn in_words(op: &'static str) -> &'static str {
    match op {
        "r" => "read",
        "w" => "write",
        "u" => "update",
        "acq" => "acquire",
        "rel" => "release",
        "acqs" => "acquire shared",
        "try" => "acquire by try",
        "trys" => "shared by try",
        "rels" => "release shared",
        "busy" => "failed try",
        "busys" => "failed try sh.",
        "rela" => "release all",
        "acqa" => "acquire all",
        "snd" => "send",
        "rcv" => "receive",
        "hb" => "happens before",
        "ha" => "happens after",
        "slp" => "sleep",
        "ntf" => "notify",
        "nta" => "notify all",
        "wak" => "wake",
        "tmo" => "time-out",
        "wai" => "await",
        "semi" => "semaphore init",
        "post" => "semaphore post",
        "semw" => "semaphore wait",
        "semf" => "semaphore busy",
        "cdn" => "count down",
        "lwt" => "latch wait",
        "arr" => "barrier arrive",
        "dep" => "barrier leave",
        "onceb" => "once begin",
        "oncee" => "once end",
        "oncep" => "once pass",
        "ret" => "return",
        other => other,
    }
}
