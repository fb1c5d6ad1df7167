// The lines over an answer that say what was searched and what tools looked up, while that happens. Four stand open, the
// rest are folded. The server renders the same lines for a settled turn (chat/_tools.html).

const OPEN = 4;
const time = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

export class LiveSteps {
  #lines = new Map();

  constructor(root) {
    this.root = root;
  }

  // A call begins ("start"), or the line of one ends.
  take({ id, name, asked, status, summary, ms }) {
    const line = this.#lines.get(id) ?? this.#add(id);
    line.classList.toggle("running", status === "start");
    line.classList.toggle("wrong", status === "error");
    const parts = { name, args: asked, summary, ms: status === "start" || !ms ? "" : ` · ${time(ms)}` };
    for (const [part, text] of Object.entries(parts)) if (text !== undefined) line.querySelector(`.tool-${part}`).textContent = text;
  }

  #add(id) {
    const line = document.getElementById("live-step").content.firstElementChild.cloneNode(true);
    this.#lines.set(id, line);
    const fold = this.root.querySelector(".more");
    fold.hidden = this.#lines.size <= OPEN;
    (fold.hidden ? this.root : fold).querySelector("ol").append(line);
    const label = fold.querySelector("summary [data-more]");
    label.textContent = label.dataset.more.replace("{n}", this.#lines.size - OPEN);
    return line;
  }
}
