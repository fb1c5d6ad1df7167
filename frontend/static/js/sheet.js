// Below 1000 px a numeral opens its source as a bottom sheet; the notes of wide screens are hidden there.

const sheet = document.getElementById("sheet");
const narrow = window.matchMedia("(max-width: 999.98px)");
let sources = [];
let shown = 0;

const turnOf = (element) => element.closest(".turn");

function mark(on) {
  const cites = turnOf(sources[shown]).querySelectorAll(`.cite[data-n="${sources[shown].dataset.n}"]`);
  for (const cite of cites) cite.classList.toggle("open", on);
}

function show(index) {
  if (sheet.open) mark(false);
  shown = index;
  const { n, title, where, href } = sources[index].dataset;
  sheet.querySelector(".sheet-n").textContent = n;
  const of = sheet.querySelector(".sheet-of");
  of.textContent = of.dataset.of.replace("{n}", sources.length);
  sheet.querySelector("h2").textContent = title;
  sheet.querySelector(".sheet-where").textContent = where;
  sheet.querySelector(".sheet-quote").replaceChildren(sources[index].content.cloneNode(true));
  sheet.querySelector("a").href = href;
  for (const button of sheet.querySelectorAll("[data-step]")) {
    button.disabled = !sources[index + Number(button.dataset.step)];
  }
  mark(true);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest(".turn :is(a.cite, a[data-sheet])");
  if (!link || !narrow.matches || event.ctrlKey || event.metaKey) return;
  const found = [...turnOf(link).querySelectorAll("template[data-n]")];
  const index = found.findIndex((source) => source.dataset.n === (link.dataset.n ?? link.dataset.sheet));
  if (index < 0) return;
  event.preventDefault();
  sources = found;
  show(index);
  sheet.showModal();
});

sheet.addEventListener("click", (event) => {
  const step = event.target.closest("[data-step]");
  if (step) show(shown + Number(step.dataset.step));
  else if (event.target === sheet) sheet.close(); // the scrim
});

sheet.addEventListener("close", () => mark(false));
