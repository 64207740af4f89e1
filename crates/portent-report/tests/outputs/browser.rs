//! The HTML page in a real browser: it loads without errors, keys move through it, and stretches fold and unfold.
//!
//! Runs where there is a Chromium (`PORTENT_BROWSER` names another); says loudly that it is skipped where there is none.

use crate::common;
use crate::failures;
use portent_predict::Harm;
use portent_report::{Extras, Settings, html};
use portent_testing::scratch::Scratch;
use portent_testing::skipped;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs first: collects everything that goes wrong.
const BEFORE: &str = r#"<script>
window.problems = [];
addEventListener("error", event => problems.push(String(event.message)));
addEventListener("unhandledrejection", event => problems.push(String(event.reason)));
for (const level of ["error", "warn"]) console[level] = (...words) => problems.push(words.join(" "));
</script>"#;

/// Runs last: what a user does, and what they see of it, as lines of `name=value`.
const AFTER: &str = r##"<script>
const said = [];
const say = (name, value) => said.push(`${name}=${value}`);
const press = key => (document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const all = what => document.querySelectorAll(what);
const one = what => document.querySelector(what);
const wait = () => new Promise(done => setTimeout(done, 60));
const selected = () => one('#list [aria-selected="true"]')?.dataset.id;
const here = () => one("#source .here")?.textContent.trim();
const activeRows = () => all(".order.active .row");
const height = () => parseInt(one(".order.active .tall").style.height);
(async () => {
  await wait();
  SCRIPT
})().catch(error => problems.push(String(error))).finally(() => {
  say("problems", problems.join("; "));
  const outcome = document.createElement("pre");
  outcome.id = "outcome";
  outcome.textContent = "\n" + said.join("\n") + "\n";
  document.body.replaceChildren(outcome);
});
</script>"##;

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PORTENT_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name))).find(|path| path.is_file())
}

/// Opens a page, does what `script` says, and returns what it said. `None` if there is no browser.
fn visit(page: &str, script: &str) -> Option<String> {
    visit_at(page, script, (1500, 900))
}

/// The same in a window of another size.
fn visit_at(page: &str, script: &str, window: (u32, u32)) -> Option<String> {
    let Some(browser) = browser() else {
        skipped("the HTML page in a browser", "no Chromium in PATH");
        return None;
    };
    let scratch = Scratch::new();
    let page = page.replacen("<head>", &format!("<head>{BEFORE}"), 1);
    let page = page.replacen("</body>", &format!("{}</body>", AFTER.replace("SCRIPT", script)), 1);
    scratch.write("page.html", page);
    let dom = dump(&browser, scratch.directory(), &scratch.path("page.html"), window);
    let outcome = dom.split("<pre id=\"outcome\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    Some(
        outcome
            .unwrap_or_else(|| panic!("the page did not get to its end:\n{}", &dom[..dom.len().min(4000)]))
            .to_owned(),
    )
}

fn dump(browser: &Path, dir: &Path, file: &Path, (width, height): (u32, u32)) -> String {
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn value<'a>(said: &'a str, name: &str) -> &'a str {
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    line.unwrap_or_else(|| panic!("nothing was said of {name}:\n{said}"))
}

#[test]
fn keys_move_through_findings_and_events_and_the_source_follows() {
    let page = html::page(&common::shop_report()).unwrap();
    let script = r##"
      say("findings", all("#list li").length);
      say("folded", one("#observations").open);
      say("orders", all(".order").length);
      say("title", one("#head h2").textContent);
      const first = selected();
      say("goals", all(".order.active .row.goal").length);
      say("pending", [...all(".row.pending .label b")].map(each => each.textContent).join(", "));
      say("bars", all("rect.bar").length > 0);
      say("source", here());
      press("ArrowDown"); await wait();
      say("source after down", here());
      press("ArrowLeft"); await wait();
      say("active", one(".order.active").dataset.order);
      press("j"); await wait();
      say("moved", selected() !== first && location.hash === "#" + selected());
      say("second", one("#head h2").textContent);
      say("waits", all("path.wait").length);
      press("k"); await wait();
      say("back", selected() === first);
      press("/"); await wait();
      say("searching", document.activeElement.id);
      one("#search").value = "atomicity balance"; one("#search").dispatchEvent(new Event("input")); await wait();
      say("found", all("#list li").length);
      press("Escape"); await wait();
      say("cleared", all("#list li").length);
      one('[data-filter="nondeterminism"]').click(); await wait();
      say("filtered", all("#list li").length);
      one('[data-filter="nondeterminism"]').click(); await wait();
      press("?"); await wait();
      say("help", one("dialog").open);
      one("dialog button").click(); await wait();
      const before = document.documentElement.dataset.theme;
      press("t"); await wait();
      say("theme", before !== document.documentElement.dataset.theme);
      [...all("#list li")].at(-1).click(); await wait();
      say("unfolded", one("#observations").open);
      say("arrows", all("path.reads-from").length > 0);
      press("v"); await wait();
      say("one order", all(".order").length);
      one('#places tr[data-event]').click(); await wait();
      say("place", here());
    "##;
    let Some(said) = visit(&page, script) else { return };
    assert_eq!(value(&said, "problems"), "", "{said}");
    assert_eq!(value(&said, "findings"), "7");
    assert_eq!(value(&said, "orders"), "2");
    assert!(value(&said, "title").starts_with("Data raceon hits"), "{said}");
    assert_eq!(value(&said, "goals"), "2");
    assert_eq!(value(&said, "pending"), "about to write hits = 1, about to write hits = 2");
    assert_eq!(value(&said, "bars"), "true");
    assert_eq!(value(&said, "source"), "16    hits = 1;");
    assert_eq!(value(&said, "source after down"), "31    hits = 2;");
    assert_eq!(value(&said, "active"), "observed");
    assert_eq!(value(&said, "moved"), "true");
    assert!(value(&said, "second").starts_with("Deadlock"), "{said}");
    assert_eq!(value(&said, "waits"), "2", "each waits for the other");
    assert_eq!(value(&said, "back"), "true");
    assert_eq!(value(&said, "searching"), "search");
    assert_eq!(value(&said, "found"), "1");
    assert_eq!(value(&said, "cleared"), "7");
    assert_eq!(value(&said, "filtered"), "3");
    assert_eq!(value(&said, "help"), "true");
    assert_eq!(value(&said, "theme"), "true");
    assert_eq!(value(&said, "folded"), "false", "observations do not stand in the way");
    assert_eq!(value(&said, "unfolded"), "true");
    assert_eq!(value(&said, "arrows"), "true");
    assert_eq!(value(&said, "one order"), "1");
    assert_eq!(value(&said, "place"), "11    int seen = balance;");
}

/// Ten thousand events of three threads, then a race that a lock hides.
fn long_run() -> String {
    let mut text = String::from("main|fork(A)|shop.c:38\nmain|fork(B)|shop.c:39\n");
    for turn in 0..500 {
        let thread = if turn % 2 == 0 { "A" } else { "B" };
        text.push_str(&format!("{thread}|acq(m)|shop.c:10\n"));
        for i in 0..18 {
            text.push_str(&format!("{thread}|w(own_{thread})|shop.c:14|{i}\n"));
        }
        text.push_str(&format!("{thread}|rel(m)|shop.c:15\n"));
    }
    text + "A|w(hits)|shop.c:16|1\nA|acq(m)|shop.c:18\nA|rel(m)|shop.c:19\n\
            B|acq(m)|shop.c:26\nB|rel(m)|shop.c:30\nB|w(hits)|shop.c:31|2\n"
}

#[test]
fn ten_thousand_events_are_folded_and_unfold_without_filling_the_page() {
    let report = common::report("long.std", &long_run(), &Extras::default());
    let page = html::page(&report).unwrap();
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    let script = r##"
      say("folded rows", activeRows().length);
      say("folded height", height());
      press("Home"); await wait();
      while (!one(".order.active .row.cursor.fold")) { press("ArrowDown"); await wait(); }
      press("Enter"); await wait();
      say("unfolded height", height() > 100000);
      say("rows in the page", activeRows().length < 150);
      press("End"); await wait();
      say("at the end", one(".order.active .row.cursor.pending") !== null);
      say("scrolled", one(".order.active .lanes").scrollTop > 100000);
      press("e"); await wait();
      press("e"); await wait();
      say("folded again", height());
    "##;
    let Some(said) = visit(&page, script) else { return };
    assert_eq!(value(&said, "problems"), "", "{said}");
    let rows: usize = value(&said, "folded rows").parse().unwrap();
    assert!(rows < 40, "{said}");
    assert_eq!(value(&said, "unfolded height"), "true", "{said}");
    assert_eq!(value(&said, "rows in the page"), "true", "{said}");
    assert_eq!(value(&said, "at the end"), "true", "{said}");
    assert_eq!(value(&said, "scrolled"), "true", "{said}");
    assert_eq!(value(&said, "folded again"), value(&said, "folded height"), "{said}");
}

#[test]
fn names_from_a_trace_cannot_run_in_the_page() {
    let evil = "T<img src=x onerror=alert(1)>|w(</script><script>problems.push(1)</script>)|a<b>.c:1\n\
                T2|w(</script><script>problems.push(1)</script>)|\"&quot;{{data}}.c:2\n";
    let report = common::report("<script>problems.push(2)</script>{{data}}", evil, &Extras::default());
    let script = r##"say("object", one("#list b").textContent);"##;
    let Some(said) = visit(&html::page(&report).unwrap(), script) else { return };
    assert_eq!(value(&said, "problems"), "", "{said}");
    assert!(value(&said, "object").contains("&lt;/script&gt;"), "{said}");
}

#[test]
fn a_failure_is_told_with_what_decides_its_stack_and_what_the_program_said() {
    let report = failures::of_harms(Settings::default(), [Harm::UseAfterFree, Harm::Output]);
    let script = r##"
      say("title", one("#head h2").textContent);
      say("decisive", one(".decisive").textContent);
      say("stacks", all(".told ol").length);
      say("frames", all(".told ol")[0].children.length);
      say("library", all(".told ol")[0].querySelectorAll(".library").length);
      say("stderr", one(".told pre").textContent.split("\n")[1]);
      say("order", one(".order h3").textContent.startsWith("The run that failed"));
      say("goals", all(".order.active .row.goal").length);
      say("observations", one("#observations").open);
    "##;
    let Some(said) = visit(&html::page(&report).unwrap(), script) else { return };
    assert_eq!(value(&said, "problems"), "", "{said}");
    assert!(value(&said, "title").starts_with("Use after freein worker()"), "{said}");
    assert!(value(&said, "decisive").starts_with("DecisiveT2's read of count"), "{said}");
    assert_eq!((value(&said, "stacks"), value(&said, "frames"), value(&said, "library")), ("3", "4", "2"));
    assert_eq!(value(&said, "stderr"), "worker: got nothing");
    assert_eq!((value(&said, "order"), value(&said, "goals")), ("true", "5"));
    assert_eq!(value(&said, "observations"), "false");
}

#[test]
fn a_page_without_findings_says_so() {
    let report = common::report("quiet.std", "T1|w(x)|1\n", &Extras::default());
    let Some(said) = visit(&html::page(&report).unwrap(), r#"say("head", one("section").textContent);"#) else {
        return;
    };
    assert_eq!(value(&said, "problems"), "", "{said}");
    assert!(value(&said, "head").starts_with("Nothing found"), "{said}");
}

/// What is cut off, and whether the page is wider than the window, for every finding.
const MEASURE: &str = r##"
      let cut = [], wide = 0;
      for (const item of all("#list li")) {
        item.click(); await wait();
        for (const label of all(".row:not(.fold) .label b")) if (label.scrollWidth > label.clientWidth + 1) cut.push(label.textContent);
        for (const label of all(".row:not(.fold) .label i")) if (label.clientWidth < 40) cut.push(label.textContent);
        wide = Math.max(wide, document.documentElement.scrollWidth - innerWidth, one("#head").scrollWidth - one("#head").clientWidth);
      }
      say("findings", all("#list li").length);
      say("cut", cut.join(", "));
      say("wide", wide);
      say("phone", matchMedia("(max-width: 820px)").matches);
      const top = what => one(what).getBoundingClientRect().top;
      say("order", [top("#search"), top("#list"), top("#head"), top("#orders"), top("#source")].join(" "));
"##;

#[test]
fn words_are_whole_and_nothing_is_wider_than_the_window() {
    let page = html::page(&common::shop_report()).unwrap();
    for (window, phone) in [((1440, 900), "false"), ((390, 844), "true")] {
        let Some(said) = visit_at(&page, MEASURE, window) else { return };
        assert_eq!(value(&said, "problems"), "", "{said}");
        assert_eq!(value(&said, "findings"), "7");
        assert_eq!(value(&said, "phone"), phone, "{window:?}");
        assert_eq!(value(&said, "cut"), "", "{window:?}");
        assert_eq!(value(&said, "wide"), "0", "{window:?}");
        if phone == "true" {
            let tops: Vec<f64> = value(&said, "order").split(' ').map(|top| top.parse().unwrap()).collect();
            assert!(tops.is_sorted(), "one thing below the other: {tops:?}");
        }
    }
}
