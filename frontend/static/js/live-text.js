// The text of an answer while it arrives: text nodes in the shape the finished answer will have, so that nothing moves
// when the server's HTML takes its place. Knows paragraphs, headings, lists, quotes, code, `code`, **strong**, links
// (their words only) and [n].

const FENCE = /^\s*(```|~~~)/;
const ITEM = /^\s*(?:[-*+]|(\d{1,3})[.)])\s+/;
const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|!?\[([^\]\n]*)\]\([^()\s]*\)|[ \t]*((?:\[[1-9]\d{0,2}(?:\s*[,;–-]\s*[1-9]\d{0,2})*\])+)([.,;:!?]*)/g;
const OPEN_MARKER = /\s*\[[\d,;\s–-]*$/;

const make = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};

export class LiveText {
  #root;
  #cite;
  #rest = "";
  #open = [];

  // `cite(n)` gives the numeral's element, or null where no such passage was found.
  constructor(root, cite) {
    this.#root = root;
    this.#cite = cite;
  }

  add(text) {
    this.#rest += text;
    for (const node of this.#open) node.remove();
    const blocks = blocksOf(this.#rest);
    const last = blocks.pop();
    this.#draw(blocks);
    this.#rest = this.#rest.slice(last?.at);
    this.#open = last ? this.#draw([{ text: last.text.replace(OPEN_MARKER, "") }]) : [];
  }

  #draw(blocks) {
    const nodes = blocks.map((block) => this.#block(block.text));
    this.#root.append(...nodes);
    return nodes;
  }

  #block(block) {
    const lines = block.split("\n");
    if (FENCE.test(block)) {
      const inside = lines.slice(1, lines.length > 1 && FENCE.test(lines.at(-1)) ? -1 : undefined).join("\n");
      const box = make("div", make("pre", make("code", inside)));
      box.className = "code";
      return box;
    }
    const heading = /^#{1,6}\s+/.exec(block);
    if (heading) return this.#inline(make("h3"), block.slice(heading[0].length));
    if (/^\s*>/.test(block)) return make("blockquote", this.#inline(make("p"), block.replace(/^\s*> ?/gm, "")));
    const item = ITEM.exec(block);
    return item ? this.#list(item[1] ? "ol" : "ul", lines) : this.#inline(make("p"), block);
  }

  #list(name, lines) {
    const items = [];
    for (const line of lines) {
      const mark = ITEM.exec(line);
      if (mark) items.push(line.slice(mark[0].length));
      else items.push(`${items.pop()}\n${line.trim()}`);
    }
    return make(name, ...items.map((item) => this.#inline(make("li"), item)));
  }

  #inline(element, text) {
    let at = 0;
    for (const found of text.matchAll(INLINE)) {
      element.append(text.slice(at, found.index));
      at = found.index + found[0].length;
      if (found[1] !== undefined) element.append(make("code", found[1]));
      else if (found[2] !== undefined) element.append(make("strong", found[2]));
      else if (found[3] !== undefined) element.append(found[3]);
      else element.append(found[5], ...found[4].match(/\d+/g).map((n) => this.#cite(Number(n)) ?? ""));
    }
    element.append(text.slice(at));
    return element;
  }
}

// The blocks of `text` and where each begins; the last one may still grow.
function blocksOf(text) {
  const blocks = [];
  let [at, fenced, inside] = [0, false, false];
  for (const line of text.split("\n")) {
    const fence = FENCE.test(line);
    if (!fenced && (fence || !line.trim())) inside = false;
    if (inside) blocks.at(-1).text += `\n${line}`;
    else if (line.trim()) blocks.push({ at, text: line });
    if (fence) fenced = !fenced;
    inside = fenced || (!fence && line.trim() !== "");
    at += line.length + 1;
  }
  return blocks;
}
