// The lines over an answer that say what was searched and what tools looked up, while that happens. Four stand open, the
// rest are folded. The server renders the same lines for a settled turn (chat/_tools.html).

const OPEN = 4;
const time = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
const whole = (value) => (/^\d{1,9}$/.test(value) ? Number(value) : 0);

export class LiveSteps {
  #lines = new Map();

  constructor(root) {
    this.root = root;
  }

  // A call begins ("start"), or the line of one ends.
  take({ id, name, args, status, summary, ms }) {
    const line = this.#lines.get(id) ?? this.#add(id, name, this.#asked(name, args));
    line.classList.toggle("running", status === "start");
    line.classList.toggle("wrong", status === "error");
    line.querySelector(".tool-summary").textContent = summary;
    line.querySelector(".tool-ms").textContent = status === "start" || ms === undefined ? "" : ` · ${time(ms)}`;
  }

  #add(id, name, asked) {
    const line = document.getElementById("live-step").content.firstElementChild.cloneNode(true);
    line.querySelector(".tool-name").textContent = name;
    line.querySelector(".tool-args").textContent = asked;
    this.#lines.set(id, line);
    const fold = this.root.querySelector(".more");
    fold.hidden = this.#lines.size <= OPEN;
    (fold.hidden ? this.root : fold).querySelector("ol").append(line);
    const label = fold.querySelector("summary [data-more]");
    label.textContent = label.dataset.more.replace("{n}", this.#lines.size - OPEN);
    return line;
  }

  // `/library/plan.md:20–59`, `“derp” in /library *.md`
  #asked(name, { pattern, query, path, glob, offset, limit }) {
    const first = whole(offset) || (whole(limit) && 1);
    const lines = first && `:${first}–${whole(limit) ? first + whole(limit) - 1 : ""}`;
    const where = [(path || (name === "ls" ? "/" : "")) + (lines || ""), glob].filter(Boolean).join(" ");
    const what = (pattern || query) && `“${pattern || query}”`;
    return what && where ? this.root.dataset.in.replace("{what}", what).replace("{where}", where) : what || where;
  }
}
