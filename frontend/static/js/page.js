// What every page needs: dialogs that htmx brings, menus that close, toasts that go, buttons that copy.

export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  // Plain http on a local network has no clipboard API.
  const field = Object.assign(document.createElement("textarea"), { value: text, readOnly: true, className: "unseen" });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

// Says a sentence in a line that is not there without one.
export function tell(line, sentence, wrong = false) {
  line.hidden = !sentence;
  line.textContent = sentence ?? "";
  line.classList.toggle("wrong", wrong);
}

// Gives every block of code under `root` its Copy button.
export function dress(root) {
  const button = document.getElementById("copy-button").content;
  for (const box of root.querySelectorAll(".code:not(:has(.copy))")) box.prepend(button.cloneNode(true));
}

document.addEventListener("htmx:load", ({ target }) => {
  for (const dialog of (target.parentElement || target).querySelectorAll("dialog[data-modal]:not([open])")) dialog.showModal();
});

// A toast leaves by its style, later while somebody is at it.
document.addEventListener("animationend", ({ target, animationName }) => animationName === "leave" && target.remove());

document.addEventListener("close", (event) => {
  if (event.target.matches("dialog[data-modal]")) event.target.remove();
}, true);

document.addEventListener("click", async (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest(".menu-panel")) menu.open = false;
  }
  const close = event.target.closest("[data-close]");
  if (close) close.closest("dialog").close();
  event.target.closest("[data-away]")?.parentElement.remove();
  const copy = event.target.closest("[data-copy]");
  if (!copy) return;
  const source = copy.dataset.copy ? document.querySelector(copy.dataset.copy) : copy.parentElement.querySelector("pre");
  await copyText(source.content ? source.content.textContent : source.innerText);
  const before = copy.textContent;
  copy.textContent = copy.dataset.copied;
  setTimeout(() => { copy.textContent = before; }, 1500);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  event.target.closest?.("form")?.querySelector("[data-escape]")?.click();
  const menu = event.target.closest?.("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
  event.stopPropagation();
}, true);

// What a request of htmx that failed says: the server's one sentence, at the top of the page it happened on.
const wrong = document.getElementById("page-error");

function complain(sentence) {
  wrong.querySelector("p").textContent = sentence;
  wrong.hidden = false;
}

// A form that was refused comes back as HTML with its problem beside the field; every other error is one sentence.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { status } = detail.xhr;
  if (status < 400 || status >= 500 || !(detail.xhr.getResponseHeader("Content-Type") || "").startsWith("text/html")) return;
  detail.shouldSwap = true;
  detail.isError = false;
});

document.addEventListener("htmx:responseError", ({ detail: { xhr } }) => {
  const plain = (xhr.getResponseHeader("Content-Type") || "").startsWith("text/plain");
  complain(plain ? xhr.responseText : wrong.dataset.failed);
});

document.addEventListener("htmx:sendError", () => complain(wrong.dataset.away));

document.addEventListener("htmx:afterOnLoad", ({ detail: { xhr } }) => {
  if (xhr.status < 400) wrong.hidden = true;
});

dress(document);
