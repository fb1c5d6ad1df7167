// A turn while it is being answered: frames in, elements out; at its end the server's own HTML takes its place.

import { LiveSteps } from "./live-steps.js";
import { LiveText } from "./live-text.js";
import { dress } from "./page.js";

const words = document.getElementById("live-words").dataset;
const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
const count = (forms, n) => forms.split("|")[n === 1 ? 0 : 1].replace("{n}", n);

export class LiveTurn {
  constructor(question, place, asked = new Date()) {
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
    this.turnId = data.turn_id;
    const found = data.sources.length;
    const given = this.#part(".given");
    if (found) given.textContent += ` · ${count(given.dataset.found, found)}`;
    for (const { label } of data.chips) given.append(" ", Object.assign(document.createElement("bdi"), { className: "chip", textContent: label }));
    if (!found && !data.nearest.length) this.steps.root.hidden = true; // asked without documents
    this.steps.take({ id: "", status: "ok", summary: found ? count(words.passages, found) : words.nothing });
    for (const source of data.sources) this.#found(source, ` · ${source.score.toFixed(2)}`);
  }

  tool(data) {
    this.steps.take(data);
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

  error(data) {
    this.failure = data.message;
  }

  // Puts the settled turn in place of the live one; without the server, says what happened beside what arrived.
  async settle(outcome) {
    this.element.removeAttribute("aria-busy");
    this.element.classList.remove("live");
    const settled = this.turnId && (await fetch(`/ui/turns/${this.turnId}`).catch(() => null));
    if (!settled?.ok) {
      const problem = clone("live-problem");
      problem.querySelector("[data-problem]").textContent = this.failure ?? words.lost;
      this.element.append(problem);
      return;
    }
    const page = new DOMParser().parseFromString(await settled.text(), "text/html");
    const article = document.adoptNode(page.querySelector("article"));
    const message = article.querySelector("[data-problem]");
    if (message && this.failure) message.textContent = this.failure;
    for (const kind of [".thinking", ".more"]) article.querySelector(kind)?.toggleAttribute("open", this.#part(kind).open);
    this.element.replaceWith(article);
    window.htmx?.process(article);
    dress(article);
    if (outcome === "lost" || article.querySelector("[role=alert]")) return;
    const stopped = article.querySelector("[data-continue]");
    const ready = count(words.ready, article.querySelectorAll(".sources li").length);
    document.getElementById("spoken").textContent = stopped ? words.stopped : ready;
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
