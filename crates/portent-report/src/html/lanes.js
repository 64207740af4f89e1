// The lanes of one order: only the rows in view exist, so that ten thousand events cost no more than forty.
//
// Lanes are narrow and on the left, words stand beside all of them, one below the other: so they have room on every screen.
// Where the screen is narrow, a row has two lines.

const GUTTER = 58, SVG = "http://www.w3.org/2000/svg";

class Lanes {
  constructor(ready, order, onCursor, onFocus) {
    Object.assign(this, { ready, order, onCursor, onFocus });
    this.names = element("div", { class: "names" });
    this.tall = element("div", { class: "tall" });
    this.scroller = element("div", { class: "lanes", tabindex: "-1", role: "listbox", "aria-label": order.title }, this.tall);
    this.count = element("small", {});
    const unfold = element("button", { title: "Unfold or fold everything (e)", onclick: () => this.toggleAll() }, "unfold");
    this.unfoldButton = unfold;
    this.box = element("div", { class: "order", "data-order": order.name },
      element("h3", {}, order.title, this.count, unfold), this.names, this.scroller);
    this.scroller.addEventListener("scroll", () => this.later());
    this.box.addEventListener("mousedown", () => this.onFocus(this));
    this.tall.addEventListener("click", click => this.clicked(click));
    this.tall.addEventListener("mousemove", move => this.hovered(move));
    this.tall.addEventListener("mouseleave", () => this.onCursor(this, this.row(), false));
    new ResizeObserver(() => this.draw()).observe(this.scroller);
    this.rebuild();
  }

  /** How high a row is: as the style says. */
  get height() {
    return this.narrow ? 46 : 26;
  }

  /** Makes the rows anew; the event at the cursor stays where it is on the screen. */
  rebuild() {
    const { order } = this;
    const at = this.rows?.[order.cursor]?.at;
    this.rows = rowsOf(this.ready, order);
    this.index = rowIndex(this.rows, order.events.length + order.pending.length);
    this.bars = barsOf(this.ready, order, this.rows, this.index);
    this.arrows = this.arrowsOf();
    if (at !== undefined) order.cursor = this.index[at];
    this.measure();
    const folded = this.rows.some(row => row.fold && !row.open);
    this.unfoldButton.textContent = folded ? "unfold" : this.rows.some(row => row.open) ? "fold" : "";
    const total = order.events.reduce((sum, event) => sum + (event < 0 ? -event : 1), 0);
    this.count.textContent = counted(total, "event");
    this.draw();
  }

  /** Reads that matter, with the writes they see in this order; waits, with the locks they wait for. */
  arrowsOf() {
    const { ready, order } = this, { trace } = ready, arrows = [];
    this.rows.forEach((row, to) => {
      if (row.event === undefined || !ready.matters.has(row.event)) return;
      if (row.state === "waits") {
        const lock = trace.object[row.event];
        const bar = this.bars.find(bar => bar.lock === lock && bar.thread !== trace.thread[row.event] && !bar.ended);
        if (bar) arrows.push({ from: to, to, bar, wait: true });
      } else if (!row.state && reads(trace, row.event)) {
        const writer = writerOf(ready, order, row.at);
        if (writer >= 0) arrows.push({ from: this.index[writer], writer, to });
      }
    });
    return arrows;
  }

  row() {
    return this.rows[this.order.cursor];
  }

  measure() {
    this.width = this.scroller.clientWidth || 480;
    this.narrow = this.width < 560;
    this.box.classList.toggle("narrow", this.narrow);
    this.tall.style.height = `${this.rows.length * this.height + 12}px`;
  }

  /** Where the lane of a thread is, from the left. */
  x(lane) {
    const room = this.width * (this.narrow ? .22 : .34) / Math.max(this.ready.lanes.count, 1);
    return (this.narrow ? 18 : GUTTER + 16) + Math.max(Math.min(room, 72), 15) * lane;
  }

  /** Where words begin: behind the last lane, and the locks that are drawn beside it. */
  words() {
    const last = this.ready.lanes.count - 1;
    const levels = this.bars.reduce((most, bar) => Math.max(most, this.ready.lanes.of(bar.thread) === last ? bar.level + 1 : 0), 0);
    return this.x(last) + 14 + 7 * Math.min(levels, 5);
  }

  laneOf(row) {
    return this.ready.lanes.of(this.ready.trace.thread[row.event]);
  }

  later() {
    this.order.top = this.scroller.scrollTop;
    this.asked ??= requestAnimationFrame(() => {
      this.asked = undefined;
      this.draw();
    });
  }

  draw() {
    this.measure();
    const ROW = this.height;
    const height = this.scroller.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW) - 6);
    const last = Math.min(this.rows.length - 1, Math.ceil((this.scroller.scrollTop + height) / ROW) + 6);
    this.drawNames();
    const shown = [];
    for (let r = first; r <= last; r++) shown.push(this.rowElement(r));
    this.tall.replaceChildren(...shown, ...this.drawings(first, last));
  }

  drawNames() {
    const { lanes, trace } = this.ready;
    const names = lanes.threads.map((thread, lane) => [lane, trace.threads[thread], `var(--t${lane % 8})`]);
    if (lanes.others) names.push([lanes.threads.length, "others", "var(--faint)"]);
    // Where lanes are close together, a thread's number has to do; its name stands beside every event.
    const room = this.x(1) - this.x(0);
    this.names.replaceChildren(...names.map(([lane, name, colour]) => {
      const text = name.length * 7.5 <= room ? name : name.split(":")[0];
      return element("span", { style: `left:${this.x(lane)}px;color:${colour}`, title: name }, text.length * 7.5 <= room + 14 ? text : "");
    }));
  }

  rowElement(r) {
    const row = this.rows[r];
    const cursor = r === this.order.cursor;
    const attributes = { style: `top:${r * this.height}px`, "data-row": r, role: "option", "aria-selected": cursor };
    if (row.event === undefined) {
      const text = row.gone ? `⋮ ${counted(row.gone, "event")} not in this page`
        : `${row.open ? "▾" : "▸"} ${counted(row.fold, "event")}`;
      return element("div", { ...attributes, class: `row fold${row.gone ? " gone" : ""}${cursor ? " cursor" : ""}` },
        element("span", { class: "label" }, text));
    }
    const { trace, lanes } = this.ready;
    const goal = isGoal(this.ready, row.event);
    const classes = ["row", goal && "goal", row.dim && "dim", row.state && "pending", cursor && "cursor"].filter(Boolean);
    const lane = this.laneOf(row);
    const place = trace.places[trace.place[row.event]][0];
    const what = actionOf(this.ready, this.order, row);
    const thread = trace.threads[trace.thread[row.event]];
    const colour = lane < lanes.threads.length ? `var(--t${lane % 8})` : "var(--faint)";
    return element("div", { ...attributes, class: classes.join(" ") },
      element("span", { class: "number" }, String(trace.number[row.event])),
      element("span", { class: "label", style: `left:${this.words()}px`, title: `${thread}: ${what}  ${place}` },
        element("em", { style: `color:${colour}` }, thread), element("b", {}, what), element("i", {}, place)));
  }

  /** Lanes, locks and switches behind the words, arrows and dots before them; for the rows in view. */
  drawings(first, last) {
    const { ready } = this, { lanes } = ready;
    const layers = ["behind", "before"].map(name => {
      const svg = document.createElementNS(SVG, "svg");
      svg.setAttribute("class", name);
      return svg;
    });
    const adder = svg => (tag, attributes) => {
      const made = document.createElementNS(SVG, tag);
      Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
      svg.append(made);
    };
    const [add, addBefore] = layers.map(adder);
    const ROW = this.height;
    const y = r => r * ROW + ROW / 2;
    const [top, bottom] = [first * ROW, (last + 1) * ROW];
    for (let lane = 0; lane < lanes.count; lane++) {
      add("line", { x1: this.x(lane), x2: this.x(lane), y1: top, y2: bottom, stroke: "var(--line)", "stroke-width": 1.5 });
    }
    for (const bar of this.bars) {
      if (bar.to < first || bar.from > last) continue;
      const lane = lanes.of(bar.thread);
      const [from, to] = [Math.max(y(bar.from), top - 40), Math.min(bar.ended ? y(bar.to) : y(bar.to) + ROW / 2, bottom + 40)];
      add("rect", { x: this.x(lane) + 4 + 7 * Math.min(bar.level, 4), y: from, width: 4.5, height: Math.max(to - from, 3), rx: 2.2,
        fill: `var(--t${(bar.lock + 3) % 8})`, opacity: .5, class: "bar" });
    }
    let before = null;
    for (let r = Math.max(first - 1, 0); r <= last; r++) {
      const row = this.rows[r];
      if (row.event === undefined) {
        before = null;
        continue;
      }
      const lane = this.laneOf(row);
      if (before && before.lane !== lane && !row.state) {
        add("path", { d: `M${this.x(before.lane)} ${y(before.r)} C${this.x(before.lane)} ${y(r) - 6} ${this.x(lane)} ${y(before.r) + 6} ${this.x(lane)} ${y(r)}`,
          fill: "none", stroke: "var(--faint)", "stroke-dasharray": "2 3", class: "switch" });
      }
      before = { r, lane };
    }
    for (const arrow of this.arrowsInView(first, last)) this.drawArrow(addBefore, y, arrow);
    for (let r = first; r <= last; r++) {
      const row = this.rows[r];
      if (row.event === undefined) continue;
      const lane = this.laneOf(row), goal = isGoal(ready, row.event);
      const colour = goal ? "var(--wrong)" : lane < lanes.threads.length ? `var(--t${lane % 8})` : "var(--faint)";
      if (goal) addBefore("circle", { cx: this.x(lane), cy: y(r), r: 8.5, fill: "var(--wrong)", opacity: .18 });
      addBefore("circle", { cx: this.x(lane), cy: y(r), r: row.dim ? 2.6 : goal ? 4.8 : 3.8, stroke: colour, "stroke-width": 1.6,
        fill: row.state ? "var(--card)" : colour });
    }
    return layers;
  }

  arrowsInView(first, last) {
    const arrows = this.arrows.filter(a => Math.max(a.from, a.to) >= first && Math.min(a.from, a.to) <= last);
    const row = this.row();
    if (row?.event !== undefined && row.dim && reads(this.ready.trace, row.event)) {
      const writer = writerOf(this.ready, this.order, row.at);
      if (writer >= 0) arrows.push({ from: this.index[writer], writer, to: this.order.cursor });
    }
    return arrows;
  }

  drawArrow(add, y, arrow) {
    const [from, to] = [this.rows[arrow.from], this.rows[arrow.to]];
    const x1 = this.x(from.event === undefined ? 0 : this.laneOf(from));
    const [y1, y2] = [y(arrow.from), y(arrow.to)];
    if (arrow.wait) {
      // Below the words, to the lock that the other thread holds.
      const x2 = this.x(this.ready.lanes.of(arrow.bar.thread)) + 6 + 7 * Math.min(arrow.bar.level, 4);
      const ahead = x2 > x1 ? 1 : -1, end = x2 - ahead * 4, low = y1 + 10.5;
      const line = { fill: "none", stroke: "var(--wrong)", "stroke-width": 1.4 };
      add("path", { ...line, d: `M${x1} ${y1 + 5} Q${x1} ${low} ${x1 + ahead * 7} ${low} L${end} ${low}`, "stroke-dasharray": "4 3", class: "wait" });
      add("path", { ...line, d: `M${end - ahead * 5} ${low - 3.5} L${end} ${low} L${end - ahead * 5} ${low + 3.5}` });
      return;
    }
    const x2 = this.x(this.laneOf(to)), bend = Math.min(this.narrow ? 10 : 34, 10 + Math.abs(y2 - y1) / 6);
    // It leaves and arrives on the side where no words are.
    const s1 = -1, s2 = -1;
    const start = x1 + s1 * 6, end = x2 + s2 * 9;
    const line = { fill: "none", stroke: "var(--arrow)", "stroke-width": 1.4 };
    add("path", { ...line, d: `M${start} ${y1} C${start + s1 * bend} ${y1} ${end + s2 * bend} ${y2} ${end} ${y2}`, class: "reads-from" });
    add("path", { ...line, d: `M${end + s2 * 5} ${y2 - 3.5} L${end} ${y2} L${end + s2 * 5} ${y2 + 3.5}` });
  }

  clicked(click) {
    const r = Number(click.target.closest(".row")?.dataset.row ?? -1);
    if (r < 0) return;
    this.moveTo(r);
    if (this.rows[r].fold) this.toggle();
  }

  hovered(move) {
    const r = Number(move.target.closest(".row")?.dataset.row ?? -1);
    if (r >= 0 && this.rows[r].event !== undefined) this.onCursor(this, this.rows[r], false);
  }

  /** Folds or unfolds at the cursor. */
  toggle() {
    const row = this.row();
    if (!row?.fold) return;
    const { unfolded } = this.order;
    if (!unfolded.delete(row.key)) unfolded.add(row.key);
    this.rebuild();
  }

  toggleAll() {
    const closed = this.rows.filter(row => row.fold && !row.open);
    if (closed.length) closed.forEach(row => this.order.unfolded.add(row.key));
    else this.order.unfolded.clear();
    this.rebuild();
    this.moveTo(Math.min(this.order.cursor, this.rows.length - 1));
  }

  moveTo(r, quietly) {
    if (r < 0 || r >= this.rows.length) return;
    this.order.cursor = r;
    const ROW = this.height, top = r * ROW, view = this.scroller;
    if (top < view.scrollTop + ROW) view.scrollTop = top - 2 * ROW;
    else if (top > view.scrollTop + view.clientHeight - 2 * ROW) view.scrollTop = top - view.clientHeight + 3 * ROW;
    this.draw();
    if (!quietly) this.onCursor(this, this.rows[r], true);
  }

  /** Moves to an event, unfolding what hides it. Whether it is there. */
  moveToEvent(event, quietly) {
    let r = this.rows.findIndex(row => row.event === event);
    if (r < 0) {
      const at = this.order.events.indexOf(event);
      if (at < 0) return false;
      this.order.unfolded.add(this.rows[this.index[at]].key);
      this.rebuild();
      r = this.rows.findIndex(row => row.event === event);
    }
    this.moveTo(r, quietly);
    return true;
  }

  /** The row of the next of the finding's own events in a direction. */
  nextGoal(step) {
    for (let r = this.order.cursor + step; r >= 0 && r < this.rows.length; r += step) {
      if (this.rows[r].event !== undefined && isGoal(this.ready, this.rows[r].event)) return r;
    }
    return -1;
  }
}
