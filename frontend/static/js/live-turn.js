// A turn while it is being answered: frames in, elements out; at its end the server's own HTML takes its place.

import { LiveText } from "./live-text.js";
import { dress } from "./page.js";

const words = document.getElementById("live-words").dataset;
const clone = (id) => document.getElementById(id).content.firstElementChild.cloneNode(true);
const count = (forms, n) => forms.split("|")[n === 1 ? 0 : 1].replace("{n}", n);

export class LiveTurn {
  constructor(question, place) {
    this.element = clone("live-turn");
    this.element.dataset.question = question;
    this.#part(".question").textContent = question;
    this.#part(".given").textContent = new Date().toTimeString().slice(0, 5);
    this.#part(".tool-args").textContent = `“${question}”`;
    this.#part(".tool").classList.add("running");
    this.sources = new Map();
    this.text = new LiveText(this.#part(".answer"), (n) => this.#cite(n));
    place(this.element);
  }

  take({ event, data }) {
    this[event]?.(data);
  }

  start(data) {
    this.turnId = data.turn_id;
    const tool = this.#part(".tool");
    tool.classList.remove("running");
    if (data.mode === "grounded") this.#part(".tool-figures").textContent = count(tool.dataset.words, data.sources.length);
    else if (data.nearest.length) this.#part(".tool-figures").textContent = tool.dataset.nothing;
    else tool.hidden = true;
    const given = this.#part(".given");
    if (data.sources.length) given.textContent += ` · ${count(given.dataset.found, data.sources.length)}`;
    for (const source of data.sources) this.#found(source);
  }

  delta(data) {
    this.#settleThinking();
    this.#part(".live-notices").replaceChildren();
    this.text.add(data.text);
  }

  thinking(data) {
    const fold = this.#part(".thinking");
    fold.hidden = false;
    this.thoughtSince ??= performance.now();
    this.#part(".fold-text").append(data.text);
    this.#thought("during");
  }

  retry(data) {
    const sentence = this.#part(".live-notices").dataset.retry;
    const seconds = Math.max(1, Math.round(data.delay_ms / 1000));
    this.notice({ message: sentence.replace("{s}", seconds).replace("{attempt}", data.attempt).replace("{max}", data.max) });
  }

  notice(data) {
    const notice = clone("live-notice");
    notice.querySelector("p").textContent = data.message;
    this.#part(".live-notices").replaceChildren(notice);
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
    const fold = article.querySelector(".thinking");
    if (fold) fold.open = this.#part(".thinking").open;
    this.element.replaceWith(article);
    window.htmx?.process(article);
    dress(article);
    this.#speak(article, outcome);
  }

  #speak(article, outcome) {
    const cited = article.querySelectorAll(".sources li").length;
    const stopped = article.querySelector("[data-continue]");
    if (article.querySelector("[role=alert]") || outcome === "lost") return;
    document.getElementById("spoken").textContent = stopped ? words.stopped : count(words.ready, cited);
  }

  #part(selector) {
    return this.element.querySelector(selector);
  }

  #found(source) {
    const href = `/documents/${source.document_id}?chunk=${source.chunk_id}&turn=${this.turnId}&n=${source.n}#passage`;
    const item = document.createElement("li");
    const numeral = Object.assign(document.createElement("span"), { className: "noted", textContent: source.n });
    const title = source.heading.split(" › ").at(-1) || source.title || source.path.split("/").at(-1);
    const link = Object.assign(document.createElement("a"), { href, textContent: title });
    const where = Object.assign(document.createElement("span"), { className: "where" });
    where.textContent = `${source.path} · ${source.score.toFixed(2)}`;
    item.append(numeral, link, where);
    this.#part(".found").append(item);
    this.sources.set(source.n, { href, title, item });
  }

  #cite(n) {
    const source = this.sources.get(n);
    if (!source) return null;
    source.item.classList.add("used");
    const numeral = Object.assign(document.createElement("a"), { className: "cite", href: source.href, textContent: n });
    numeral.title = source.title;
    return numeral;
  }

  #thought(form) {
    const label = this.#part(".thinking summary span");
    const seconds = ((performance.now() - this.thoughtSince) / 1000).toFixed(1);
    label.textContent = label.dataset[form].replace("{s}", seconds);
  }

  #settleThinking() {
    if (this.thoughtSince === undefined || this.thoughtDone) return;
    this.thoughtDone = true;
    this.#thought("after");
  }
}
