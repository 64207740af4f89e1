// The panels around the lanes: what is said about a finding, and the source at the cursor.

function headOf(finding, goTo) {
  const failure = finding.failure;
  // A failure was seen: how often it was predicted, and in which model, says nothing about it.
  const facts = [finding.processes.length && `in ${finding.processes.join(", ")}`, failure && finding.sure, finding.allocated && `allocated at ${finding.allocated}`].concat(failure ? [] : [
    `${finding.exact ? "" : "at least "}${counted(finding.instances, "instance")}`,
    `model ${finding.model}`,
    ...finding.flags,
    finding.pattern && `pattern ${finding.pattern}`,
    finding.round && `round ${finding.round}`,
    finding.witness && `schedule: ${counted(finding.witness[0], "event")}, ${counted(finding.witness[1], "switch")}`,
    finding.tsan,
  ]).filter(Boolean);
  const replayed = !failure && finding.replayed && `Seen in ${finding.replayed[0]} of ${counted(finding.replayed[1], "replay")}`
    + (finding.replayed[2] ? `: ${finding.replayed[2]}` : "") + ".";
  const places = finding.places.map(place => element("tr", {
    "data-event": place.event, onclick: () => place.event !== null && goTo(place.event),
  },
    element("td", {}, place.role),
    element("td", {}, place.thread ?? ""),
    element("td", {}, place.what + (place.value === null ? "" : ` = ${place.value}`)),
    element("td", { class: "mono" }, place.at ?? ""),
    element("td", {}, place.function ? `in ${place.function}` : "")));
  const command = finding.command && element("div", { class: "command" },
    element("code", {}, finding.command),
    element("button", { onclick: click => copy(finding.command, click.target) }, "copy"));
  return [
    element("h2", {},
      element("span", { style: `color:var(--${finding.kind})` }, capital(finding.title)), failure ? whereOf(finding) : `on ${finding.object}`,
      finding.level === "observation" ? element("span", { class: "badge" }, "observation") : null,
      element("span", { class: `badge ${finding.verdict}` }, finding.verdict), element("span", { class: "mono" }, finding.id)),
    failure?.decisive && element("p", { class: "decisive" }, element("b", {}, "Decisive"), failure.decisive),
    element("p", { class: "why" }, [finding.why, replayed, finding.diverged && `The replay diverged: ${finding.diverged}`].filter(Boolean).join(" ")),
    element("div", { class: "facts" }, ...facts.map(fact => element("span", {}, fact))),
    element("table", { id: "places" }, element("tbody", {}, ...places)),
    finding.threads.length > 0 && element("ul", { class: "threads" }, ...finding.threads.map(told => element("li", {}, told))),
    toldOf(finding),
    command,
  ].filter(Boolean);
}

/** Where a failure happened, in a few words. */
function whereOf(finding) {
  return [finding.name && finding.name !== finding.object ? `in ${finding.name}` : finding.object, ...finding.lines].filter(Boolean).join("  ");
}

/** The call stacks, the first one open, and what the program said. */
function toldOf({ stacks: known, failure }) {
  const stacks = known.map(([who, frames], i) => element("details", { open: i === 0 ? "" : null },
    element("summary", {}, `stack: ${who}`),
    element("ol", { start: 0 }, ...frames.map(([text, user]) => element("li", { class: user ? null : "library" }, text)))));
  const said = failure?.stderr.trim() && element("details", { open: "" },
    element("summary", {}, "standard error"), element("pre", {}, failure.stderr));
  return element("div", { class: "told" }, ...stacks, said || null);
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function copy(text, button) {
  const done = () => {
    button.textContent = "copied";
    setTimeout(() => button.textContent = "copy", 1200);
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => {});
}

const FILES = new Map(DATA.files.map(file => [file.name, file]));

/** Source that follows the cursor. */
class Source {
  constructor(box) {
    this.box = box;
    this.file = null;
  }

  /** Shows the place of an event, with the finding's own lines marked. */
  show(ready, event) {
    if (event === undefined) return;
    const { trace } = ready;
    const [text, file, line, fn] = trace.places[trace.place[event]];
    const head = element("h3", {}, text, element("small", {},
      `${trace.threads[trace.thread[event]]}${fn ? ` in ${fn}` : ""} · event ${number(trace.number[event])}`));
    const known = file === null ? undefined : FILES.get(file);
    if (!known) {
      this.file = null;
      const why = file === null ? "This event has no place in the source." : `${file} was not found when this page was made; --source DIR says where to look.`;
      this.box.replaceChildren(head, element("div", { class: "missing" }, why));
      return;
    }
    if (this.file !== file || this.ready !== ready) this.fill(ready, known, file);
    this.box.replaceChildren(head, this.text);
    this.text.querySelector(".here")?.classList.remove("here");
    const here = this.lines.get(line);
    if (!here) return;
    here.classList.add("here");
    const [top, height] = [here.offsetTop - this.text.offsetTop, this.text.clientHeight];
    if (top < this.text.scrollTop + 40 || top > this.text.scrollTop + height - 60) this.text.scrollTop = top - height / 2;
  }

  fill(ready, known, file) {
    const { trace } = ready;
    const mine = new Set();
    for (const event of ready.matters.keys()) {
      const place = trace.places[trace.place[event]];
      if (isGoal(ready, event) && place[1] === file) mine.add(place[2]);
    }
    this.lines = new Map();
    const shown = [];
    known.parts.forEach(([first, texts], part) => {
      if (part > 0 || first > 1) shown.push(element("div", { class: "hole" }, "⋮"));
      texts.forEach((text, i) => {
        const line = element("div", { class: mine.has(first + i) ? "mine" : null }, element("em", {}, String(first + i)), text);
        this.lines.set(first + i, line);
        shown.push(line);
      });
    });
    const kept = this.file === file ? this.text?.scrollTop : 0;
    this.text = element("div", { class: "text" }, ...shown);
    this.text.scrollTop = kept ?? 0;
    Object.assign(this, { file, ready });
  }
}
