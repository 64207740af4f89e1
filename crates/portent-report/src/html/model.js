// What the page shows: findings, their orders as lists of events, and the rows that these make once stretches are folded.

const DATA = JSON.parse(document.getElementById("data").textContent);
const READ = 0, WRITE = 1, UPDATE = 2, ACQUIRE = 3, RELEASE = 4;
const GOALS = new Set(["first", "second", "remote", "read", "writer", "challenger", "waiting", "notify", "violation",
  "failure", "made", "ended", "decisive", "because"]);
const FOLD_FROM = 2;

/** An order's list: numbers of events; below zero, how many events are not in the page. */
function decoded(list) {
  const events = [];
  let last = 0;
  for (const item of list) {
    if (Array.isArray(item)) events.push(-item[0]);
    else events.push(last += item);
  }
  return events;
}

/** A finding made ready, once, when it is first looked at. */
function prepared(finding) {
  if (finding.ready) return finding.ready;
  const trace = DATA.traces[finding.trace];
  const matters = new Map(finding.matters);
  const sees = new Map(finding.sees);
  const computed = new Map(finding.computed);
  const orders = [["observed", finding.failure ? "The run that failed" : "Observed order"], ["breaking", "Breaking order"]].map(([name, title]) => {
    const events = decoded(finding[name].list);
    return { name, title, events, pending: finding[name].pending, unfolded: new Set(), cursor: -1, top: 0 };
  }).filter(order => order.events.length > 0 || order.pending.length > 0);
  finding.ready = { finding, trace, matters, sees, computed, orders, lanes: lanesOf(trace, matters, orders) };
  return finding.ready;
}

/** The threads that get a lane: all if they are few, else those that matter; the rest share one. */
function lanesOf(trace, matters, orders) {
  // In the order of their first events: a set keeps it.
  const all = new Set(), important = new Set();
  for (const order of orders) {
    for (const event of order.events) if (event >= 0) all.add(trace.thread[event]);
    for (const [event] of order.pending) important.add(trace.thread[event]);
  }
  for (const event of matters.keys()) important.add(trace.thread[event]);
  important.forEach(thread => all.add(thread));
  const few = all.size <= 8;
  const threads = [...all].filter(thread => few || important.has(thread));
  const others = !few && all.size > threads.length;
  const of = new Map(threads.map((thread, lane) => [thread, lane]));
  return { threads, others, count: threads.length + (others ? 1 : 0), of: thread => of.get(thread) ?? threads.length };
}

function isGoal(ready, event) {
  return GOALS.has(ready.matters.get(event));
}

/** The rows of an order: events, folds, and what is not in the page. */
function rowsOf(ready, order) {
  const rows = [];
  let run = [];
  const flush = () => {
    const key = run[0];
    if (run.length < FOLD_FROM) {
      run.forEach(at => rows.push({ event: order.events[at], at, dim: true }));
    } else if (order.unfolded.has(key)) {
      rows.push({ fold: run.length, key, open: true, at: key });
      run.forEach(at => rows.push({ event: order.events[at], at, dim: true }));
    } else {
      rows.push({ fold: run.length, key, at: key, to: run[run.length - 1] });
    }
    run = [];
  };
  order.events.forEach((event, at) => {
    if (event >= 0 && !ready.matters.has(event)) {
      run.push(at);
      return;
    }
    if (run.length) flush();
    rows.push(event < 0 ? { gone: -event, at } : { event, at });
  });
  if (run.length) flush();
  order.pending.forEach(([event, state], i) => rows.push({ event, state, at: order.events.length + i }));
  return rows;
}

/** Where each place of an order is among the rows. */
function rowIndex(rows, length) {
  const index = new Int32Array(length + 8);
  rows.forEach((row, r) => {
    const to = row.to ?? row.at;
    for (let at = row.at; at <= to; at++) index[at] = r;
  });
  return index;
}

/** Locks held: thread, lock, the rows from and to, and how many others its thread holds by then. */
function barsOf(ready, order, rows, index) {
  const { trace } = ready;
  const open = new Map(), bars = [], held = new Map();
  const involved = new Set();
  for (const event of ready.matters.keys()) {
    if (trace.action[event] === ACQUIRE || trace.action[event] === RELEASE) involved.add(trace.object[event]);
  }
  order.events.forEach((event, at) => {
    if (event < 0) return;
    const action = trace.action[event];
    if (action !== ACQUIRE && action !== RELEASE) return;
    const thread = trace.thread[event], lock = trace.object[event], key = thread + ":" + lock;
    const taken = held.get(thread) ?? new Set();
    held.set(thread, taken);
    if (action === ACQUIRE) {
      let level = 0;
      while (taken.has(level)) level++;
      taken.add(level);
      open.set(key, { thread, lock, from: index[at], to: rows.length - 1, level, event, ended: false });
    } else if (open.has(key)) {
      const bar = open.get(key);
      open.delete(key);
      taken.delete(bar.level);
      bar.to = index[at];
      bar.ended = true;
      bars.push(bar);
    }
  });
  bars.push(...open.values());
  return bars.filter(bar => bar.to > bar.from && (involved.has(bar.lock) || rows[bar.from].event !== undefined));
}

/** The write that a read sees in an order: its place there, or -1. */
function writerOf(ready, order, at) {
  const { trace } = ready;
  const object = trace.object[order.events[at]];
  for (let before = at - 1; before >= 0; before--) {
    const event = order.events[before];
    if (event < 0) continue;
    const action = trace.action[event];
    if ((action === WRITE || action === UPDATE) && trace.object[event] === object) return before;
  }
  return -1;
}

function reads(trace, event) {
  return trace.action[event] === READ || trace.action[event] === UPDATE;
}

/** What an event does in an order, in words. */
function actionOf(ready, order, row) {
  const { trace } = ready;
  const object = trace.objects[trace.object[row.event]];
  if (row.state === "waits") return `waits for ${object}`;
  if (row.state === "next" && trace.action[row.event] === READ) return `about to read ${object}`;
  if (row.state === "never") return `never wakes from ${object}`;
  let value = trace.value[row.event];
  if (order.name === "breaking" && ready.computed.has(row.event)) {
    value = ready.computed.get(row.event);
  } else if (order.name === "breaking" && ready.sees.has(row.event)) {
    const writer = ready.sees.get(row.event);
    value = writer === null || trace.action[row.event] === UPDATE ? null : trace.value[writer];
  }
  const about = row.state === "next" ? "about to " : "";
  const text = `${about}${DATA.actions[trace.action[row.event]]} ${object}`.trim();
  return value === null || value === undefined ? text : `${text} = ${value}`;
}

function number(n) {
  return n.toLocaleString("en-US");
}

function counted(n, noun) {
  return `${number(n)} ${noun}${n === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}

/** An element with attributes and children; text is never parsed as HTML. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}
