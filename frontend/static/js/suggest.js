// Names behind @ and #, while a question is written: the server lists what may be meant, this lets one be chosen.

const field = document.getElementById("question");
const list = document.getElementById("suggestions");
const begun = () => /(?:^|[\s([])([@#][^@#\n]{0,80})$/.exec(field.value.slice(0, field.selectionStart))?.[1];
let closed = false; // until the next letter: an answer on its way does not open the list again

function show(options, at = 0) {
  closed = !options.length;
  list.replaceChildren(...options);
  options.forEach((option, n) => option.setAttribute("aria-selected", n === at));
  field.setAttribute("aria-expanded", options.length > 0);
  field.setAttribute("aria-activedescendant", options[at]?.id ?? "");
  options[at]?.scrollIntoView({ block: "nearest" });
}

function choose(option) {
  const end = field.selectionStart;
  field.setRangeText(`${option.dataset.text} `, end - begun().length, end, "end");
  show([]);
}

field.addEventListener("htmx:configRequest", (event) => {
  event.detail.parameters = { typed: begun() };
  if (begun()) return;
  event.preventDefault();
  show([]);
});

list.addEventListener("htmx:afterSwap", () => show(begun() && !closed ? [...list.children] : []));
list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
list.addEventListener("click", ({ target }) => target !== list && choose(target.closest("[role=option]")));
field.addEventListener("input", () => (closed = false));
field.addEventListener("blur", () => show([]));

field.addEventListener("keydown", (event) => {
  const options = [...list.children];
  if (!options.length || event.isComposing) return;
  const at = options.findIndex((option) => option.ariaSelected === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) show(options, (at + step + options.length) % options.length);
  else if (event.key === "Escape") show([]);
  else if (!event.shiftKey && ["Enter", "Tab"].includes(event.key)) choose(options[at]);
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
});
