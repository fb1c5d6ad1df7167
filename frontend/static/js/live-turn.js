// A turn while it is being answered: frames in, elements out; at its end the server's own HTML takes its place.

import { LiveSteps } from "./live-steps.js";
import { LiveText } from "./live-text.js";
import { dress } from "./page.js";

const words = document.getElementById("live-words").dataset;
const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);

export class LiveTurn {
  constructor(question, place, asked = new Date()) {
    this.question = question;
    this.asked = asked;
    this.element = clone("live-turn");
    this.#part(".question").textContent = question;
    this.#part(".given").textContent = asked.toTimeString().slice(0, 5);
    this.sources = new Map();
    this.steps = new LiveSteps(this.#part(".tools"));
    this.steps.take({ id: "", name: "search", asked: `“${question}”`, status: "start" });
    this.text = new LiveText(this.#part(".answer"), (n) => this.#cite(n));
    place(this.element);
  }

  take({ event, data }) {
    if (["delta", "thinking", "tool"].includes(event)) this.#part(".live-notices").replaceChildren();
    if (event !== "thinking") this.#thought("after");
    this[event]?.(data);
  }

  start(data) {
    const { found, scored, ...look } = data.looked_up ?? {};
    const given = this.#part(".given");
    this.turnId = data.turn_id;
    if (found) given.textContent += ` · ${found}`;
    for (const { label } of data.chips) given.append(" ", Object.assign(document.createElement("bdi"), { className: "chip", textContent: label }));
    this.steps.root.hidden = !data.looked_up; // asked without documents
    this.steps.take({ id: "", ...look });
    for (const source of data.sources) this.#found(source, scored ? ` · ${source.score.toFixed(2)}` : "");
  }

  tool(data) {
    this.steps.take(data);
    if (data.looked_up) this.steps.take({ id: "", ...data.looked_up }); // how far it is
    for (const source of data.sources) this.#found(source, ""); // found by place or by word: no search has scored it
  }

  delta(data) {
    this.text.add(data.text);
  }

  thinking(data) {
    this.#part(".thinking").hidden = false;
    this.thinkingSince ??= performance.now() - (this.thoughtMs ?? 0);
    this.#part(".fold-text").append(data.text);
    this.#thought("during");
  }

  retry(data) {
    const seconds = Math.max(1, Math.round(data.delay_ms / 1000));
    this.notice({ message: words.retry.replace("{s}", seconds).replace("{attempt}", data.attempt).replace("{max}", data.max) });
  }

  notice({ code, message }) {
    if (code === "loop_guard") this.#part(".guard").hidden = false;
    else {
      const notice = clone("live-notice");
      notice.querySelector("p").prepend(message);
      this.#part(".live-notices").replaceChildren(notice);
      if (code === "model_loading") this.#wait(notice.querySelector("span"));
    }
  }

  // Puts the settled turn in place of the live one. Where it can't be had the question and what arrived stay, with a way
  // on: `resume` follows the turn once more; of a chat that was removed the question can be asked in a new one.
  async settle(outcome, resume) {
    this.element.removeAttribute("aria-busy");
    this.element.classList.remove("live");
    const settled = outcome !== "lost" && (await fetch(`/ui/turns/${this.turnId}`).catch(() => null));
    if (!settled?.ok) {
      const problem = clone(settled?.status === 404 ? "live-removed" : "live-lost");
      for (const link of problem.querySelectorAll("a")) link.href = `/?${new URLSearchParams({ q: this.question })}`;
      for (const button of problem.querySelectorAll("button")) button.addEventListener("click", resume);
      this.element.append(problem);
      return;
    }
    const page = new DOMParser().parseFromString(await settled.text(), "text/html");
    const article = document.adoptNode(page.querySelector("article"));
    for (const kind of [".thinking", ".more"]) article.querySelector(kind)?.toggleAttribute("open", this.#part(kind).open);
    this.element.replaceWith(article);
    window.htmx?.process(article);
    dress(article);
    document.getElementById("spoken").textContent = article.dataset.spoken;
  }

  #part(selector) {
    return this.element.querySelector(selector);
  }

  #found(source, score) {
    if (this.sources.has(source.n)) return;
    const item = clone("live-source");
    const [numeral, link, where] = item.children;
    numeral.textContent = source.n;
    link.href = `/documents/${source.document_id}?chunk=${source.chunk_id}&turn=${this.turnId}&n=${source.n}#passage`;
    link.textContent = source.heading.split(" › ").at(-1) || source.title || source.path.split("/").at(-1);
    where.textContent = source.path + score;
    this.#part(".found").append(item);
    this.sources.set(source.n, item);
  }

  #cite(n) {
    const item = this.sources.get(n);
    if (!item) return null;
    item.classList.add("used");
    const { href, textContent: title } = item.querySelector("a");
    return Object.assign(document.createElement("a"), { className: "cite", href, title, textContent: n });
  }

  // Says every second how long the reader has waited, until the notice goes.
  #wait(place) {
    const timer = setInterval(() => {
      place.textContent = words.waited.replace("{s}", Math.round((Date.now() - this.asked) / 1000));
      if (!place.isConnected) clearInterval(timer);
    }, 1000);
  }

  #thought(form) {
    if (this.thinkingSince === undefined) return;
    this.thoughtMs = performance.now() - this.thinkingSince;
    const label = this.#part(".thinking summary span");
    label.textContent = label.dataset[form].replace("{s}", (this.thoughtMs / 1000).toFixed(1));
    if (form === "after") this.thinkingSince = undefined;
  }
}
