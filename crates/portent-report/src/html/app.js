// The page as a whole: the list with its filters, the finding that is shown, and keys.

const $ = id => document.getElementById(id);
const state = { process: null, at: -1, shown: [], kinds: new Set(), verdicts: new Set(), view: "both", lanes: [], active: 0 };
const source = new Source($("source"));

function searchable(finding) {
  return finding.words ??= [finding.id, finding.level, finding.kind, finding.title, finding.object, finding.name, finding.verdict, finding.why, ...finding.processes,
    ...finding.lines, ...finding.threads, ...finding.places.flatMap(place => [place.thread, place.at, place.function]),
    ...finding.stacks.flatMap(([, frames]) => frames.map(([text]) => text)), finding.failure?.decisive, finding.failure?.stderr].join(" ").toLowerCase();
}

function chips() {
  const group = (name, values, chosen) => values.length < 2 && name === "verdict" ? [] : values.map(value => {
    const n = DATA.findings.filter(finding => finding[name] === value).length;
    return element("button", {
      "aria-pressed": chosen.has(value), style: name === "kind" ? `--c:var(--${value})` : null, "data-filter": value,
      onclick: () => {
        if (!chosen.delete(value)) chosen.add(value);
        filter();
      },
    }, `${value} ${number(n)}`);
  });
  const values = name => [...new Set(DATA.findings.map(finding => finding[name]))];
  const verdicts = group("verdict", values("verdict"), state.verdicts);
  $("filters").replaceChildren(...group("kind", values("kind"), state.kinds),
    ...(verdicts.length ? [element("span", { class: "gap" }), ...verdicts] : []));
}

/** The processes of a tree, those with failures first: each shows its own findings when it is chosen. */
function processes() {
  const failures = name => DATA.findings.filter(finding => finding.level === "failure" && finding.processes.includes(name)).length;
  const rows = DATA.processes.map(([name, ran]) => ({ name, ran, failed: failures(name) }));
  rows.sort((a, b) => (b.failed > 0) - (a.failed > 0));
  $("processes").replaceChildren(...rows.map(({ name, ran, failed }) => element("button", {
    "aria-pressed": state.process === name, "data-process": name, title: name,
    onclick: () => {
      state.process = state.process === name ? null : name;
      filter();
    },
  }, element("b", { class: failed ? "failed" : null }, failed ? "✗" : "✓"), element("span", {}, name),
    element("small", {}, `${failed ? counted(failed, "failure") : "no failure"}, ${ran}`))));
}

/** Applies search and filters; what was selected stays selected if it is still there. */
function filter() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const selected = state.shown[state.at];
  state.shown = DATA.findings.filter(finding =>
    (state.kinds.size === 0 || state.kinds.has(finding.kind)) &&
    (state.process === null || finding.processes.includes(state.process)) &&
    (state.verdicts.size === 0 || state.verdicts.has(finding.verdict)) &&
    words.every(word => searchable(finding).includes(word)));
  list(selected, words.length > 0 || state.process !== null || state.kinds.size + state.verdicts.size > 0);
  chips();
  processes();
  const total = DATA.findings.length + DATA.left_out;
  $("shown").textContent = `${number(state.shown.length)} of ${counted(total, "finding")}`
    + (DATA.left_out ? ` (${number(DATA.left_out)} not in this page)` : "");
  const at = state.shown.indexOf(selected);
  if (at >= 0) state.at = at;
  else select(state.shown.length ? 0 : -1);
}

/** Failures, then observations in a fold that is open where there is nothing else, something was looked for, or one is shown. */
function list(selected, searched) {
  const items = state.shown.map((finding, at) => element("li", {
    role: "option", "aria-selected": finding === selected, "data-id": finding.id, style: `--c:var(--${finding.kind})`, onclick: () => select(at),
  },
    element("div", { class: "what" }, element("b", {}, finding.name || finding.lines[0] || finding.id), element("span", { class: "kind" }, finding.title)),
    element("div", { class: "where" }, finding.lines.join(" · ") || finding.id)));
  // Findings come in this order.
  const failures = state.shown.filter(finding => finding.level === "failure").length;
  const rest = items.length - failures;
  const open = searched || failures === 0 || selected?.level === "observation";
  $("list").replaceChildren(element("ol", { role: "group", "aria-label": "Failures" }, ...items.slice(0, failures)));
  if (rest > 0) {
    $("list").append(element("details", { id: "observations", open: open ? "" : null },
      element("summary", {}, counted(rest, "observation")),
      element("ol", { role: "group", "aria-label": "Observations" }, ...items.slice(failures))));
  }
}

function select(at) {
  state.at = at;
  const items = [...$("list").querySelectorAll("li")];
  for (const [i, item] of items.entries()) item.setAttribute("aria-selected", i === at);
  // What is selected is seen.
  items[at]?.closest("details")?.setAttribute("open", "");
  items[at]?.scrollIntoView({ block: "nearest" });
  const finding = state.shown[at];
  if (!finding) {
    const nothing = DATA.findings.length === 0;
    $("head").replaceChildren(element("div", { class: "empty" }, element("h2", {}, nothing ? "Nothing found" : "No finding matches"),
      nothing ? "Only this run was examined: code that did not run, other inputs, and branches that went the other way were not." : "Esc clears the search."));
    $("orders").replaceChildren();
    $("source").replaceChildren();
    state.lanes = [];
    return;
  }
  history.replaceState(null, "", `#${finding.id}`);
  $("head").replaceChildren(...headOf(finding, goTo));
  $("head").scrollTop = 0;
  stage(finding);
}

/** Builds the lanes of a finding. */
function stage(finding) {
  const ready = prepared(finding);
  const wide = $("main").clientWidth >= 760;
  let orders = ready.orders;
  if (state.view !== "both" || !wide) {
    const wanted = state.view === "observed" ? "observed" : "breaking";
    orders = orders.filter(order => order.name === wanted);
    if (!orders.length) orders = ready.orders;
  }
  state.lanes = orders.map(order => new Lanes(ready, order, cursorMoved, focusOn));
  $("orders").replaceChildren(...state.lanes.map(lanes => lanes.box));
  for (const lanes of state.lanes) {
    lanes.draw();
    if (lanes.order.cursor >= 0) {
      lanes.scroller.scrollTop = lanes.order.top;
      lanes.draw();
    } else {
      lanes.order.cursor = -1;
      // What decides, where that is known.
      const decisive = lanes.rows.findIndex(row => row.event !== undefined && ready.matters.get(row.event) === "decisive");
      lanes.moveTo(Math.max(decisive >= 0 ? decisive : lanes.nextGoal(1), 0), true);
    }
  }
  focusOn(state.lanes[state.lanes.length - 1]);
}

function focusOn(lanes) {
  state.active = Math.max(state.lanes.indexOf(lanes), 0);
  state.lanes.forEach((each, i) => each.box.classList.toggle("active", i === state.active));
  const row = active()?.row();
  if (row?.event !== undefined) source.show(active().ready, row.event);
}

function active() {
  return state.lanes[state.active];
}

/** The cursor of one order moved, or the mouse is over a row: the source follows, the other order points at the same event. */
function cursorMoved(lanes, row, moved) {
  if (row?.event === undefined) return;
  source.show(lanes.ready, row.event);
  if (!moved) return;
  for (const other of state.lanes) {
    const r = other === lanes ? -1 : other.rows.findIndex(each => each.event === row.event);
    if (r >= 0) other.moveTo(r, true);
  }
}

function goTo(event) {
  const lanes = [active(), ...state.lanes].find(each => each?.order.events.includes(event) || each?.order.pending.some(([e]) => e === event));
  if (!lanes) return;
  focusOn(lanes);
  lanes.moveToEvent(event);
}

const VIEWS = ["both", "breaking", "observed"];
const KEYS = {
  j: () => select(Math.min(state.at + 1, state.shown.length - 1)),
  k: () => select(Math.max(state.at - 1, 0)),
  ArrowDown: () => active()?.moveTo(active().order.cursor + 1),
  ArrowUp: () => active()?.moveTo(active().order.cursor - 1),
  PageDown: () => active()?.moveTo(Math.min(active().order.cursor + 20, active().rows.length - 1)),
  PageUp: () => active()?.moveTo(Math.max(active().order.cursor - 20, 0)),
  Home: () => active()?.moveTo(0),
  End: () => active()?.moveTo(active().rows.length - 1),
  ArrowRight: () => side(1),
  ArrowLeft: () => side(-1),
  n: () => active()?.moveTo(active().nextGoal(1)),
  p: () => active()?.moveTo(active().nextGoal(-1)),
  Enter: () => active()?.toggle(),
  " ": () => active()?.toggle(),
  e: () => active()?.toggleAll(),
  v: () => {
    state.view = VIEWS[(VIEWS.indexOf(state.view) + 1) % VIEWS.length];
    if (state.shown[state.at]) stage(state.shown[state.at]);
  },
  t: () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark", true),
  "/": () => $("search").focus(),
  "?": () => $("help").showModal(),
  Escape: () => {
    if ($("search").value) {
      $("search").value = "";
      filter();
    }
  },
};

/** The other order: beside this one, or in its place. */
function side(step) {
  const next = state.active + step;
  if (state.lanes.length > 1) {
    if (next >= 0 && next < state.lanes.length) focusOn(state.lanes[next]);
  } else if (state.shown[state.at]) {
    state.view = step > 0 ? "breaking" : "observed";
    stage(state.shown[state.at]);
  }
}

document.addEventListener("keydown", press => {
  if (press.ctrlKey || press.metaKey || press.altKey || $("help").open) return;
  const typing = press.target === $("search");
  if (typing) {
    if (press.key === "Escape" || press.key === "Enter") {
      if (press.key === "Escape") KEYS.Escape();
      $("search").blur();
    }
    return;
  }
  const button = press.target instanceof HTMLElement && press.target.closest("button, summary");
  if (button && (press.key === "Enter" || press.key === " ")) return;
  const act = KEYS[press.key];
  if (!act) return;
  press.preventDefault();
  act();
});

function theme(name, chosen) {
  document.documentElement.dataset.theme = name;
  if (!chosen) return;
  try {
    localStorage.setItem("portent-theme", name);
  } catch {
    // A page from a file may have no storage: the choice holds while it is open.
  }
}

function firstTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("portent-theme");
  } catch {
    // As above.
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  theme(kept ?? (dark.matches ? "dark" : "light"), false);
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light", false));
}

let resized;
addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => state.shown[state.at] && stage(state.shown[state.at]), 120);
});
addEventListener("hashchange", () => {
  const at = state.shown.findIndex(finding => `#${finding.id}` === location.hash);
  if (at >= 0 && at !== state.at) select(at);
});
$("search").addEventListener("input", filter);
$("theme").addEventListener("click", KEYS.t);
$("help-button").addEventListener("click", KEYS["?"]);
$("input").textContent = DATA.input;
$("input").title = DATA.input;
$("summary").textContent = DATA.summary;
firstTheme();
const wanted = location.hash;
filter();
const linked = DATA.findings.findIndex(finding => `#${finding.id}` === wanted);
if (linked >= 0) select(linked);
