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
    const line = this.#lines.get(id) ?? this.#add(id, name, asked);
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
}
