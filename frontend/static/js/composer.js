// The composer: asks, stops, asks again; follows a turn that was already running when the page came.

import "./suggest.js"; // before this: a key that chooses a suggestion asks nothing
import { LiveTurn } from "./live-turn.js";
import { tell } from "./page.js";
import { post, watch } from "./sse.js";

const NEAR_END = 120;
const form = document.getElementById("composer");
const field = form.querySelector("textarea");
const ask = form.querySelector(".composer-ask");
const stop = form.querySelector(".composer-stop");
const turns = document.getElementById("turns");
const line = document.getElementById("composer-say");
let running = null;

function show(isRunning) {
  form.classList.toggle("running", isRunning);
  field.placeholder = isRunning ? form.dataset.next : form.dataset.follow;
}

// Keeps the end of the page in view for a reader who is there, but never moves the question out of it.
async function keepEnd(work) {
  const page = document.documentElement;
  const near = page.scrollHeight - window.innerHeight - window.scrollY < NEAR_END;
  await work();
  if (near) toEnd();
}

function toEnd() {
  const question = turns.lastElementChild?.closest(".turn");
  const top = question ? question.offsetTop - parseFloat(getComputedStyle(question).scrollMarginTop) : Infinity;
  window.scrollTo(0, Math.min(top, document.documentElement.scrollHeight));
}

function entered(chatId, question) {
  document.getElementById("welcome")?.remove();
  if (form.dataset.chat !== chatId) {
    form.dataset.chat = chatId;
    document.title = question;
    document.querySelector(".topbar-title").textContent = question;
    history.replaceState(null, "", `/chats/${chatId}`);
    for (const current of document.querySelectorAll(".side-nav [aria-current]")) current.removeAttribute("aria-current");
  }
  window.htmx.ajax("GET", `/ui/chats?current=${chatId}`, { target: "#chats" });
}

async function follow(live, turnId, response) {
  running = turnId;
  live.turnId = turnId;
  show(true);
  const outcome = await watch(turnId, response, (frame) => keepEnd(() => live.take(frame)));
  running = null;
  show(false);
  await keepEnd(() => live.settle(outcome, () => resume(live.element, turnId, live.question, live.asked)));
}

// Follows a turn from its beginning, in place of what stands of it.
function resume(element, turnId, question, asked) {
  if (running === null) follow(new LiveTurn(question, (fresh) => element.replaceWith(fresh), asked), turnId, null);
}

async function send(message, more = {}) {
  if (running !== null || !message.trim()) return;
  running = "";
  tell(line, "");
  show(true);
  document.getElementById("welcome")?.setAttribute("hidden", "");
  const live = new LiveTurn(message, (element) => turns.append(element));
  toEnd();
  const scope = form.elements.scope.value;
  const body = { message, collections: scope ? [Number(scope)] : [], ...more };
  if (form.dataset.chat) body.chat_id = Number(form.dataset.chat);
  const response = await post(body).catch(() => null);
  const turnId = response?.headers.get("X-Turn-Id");
  if (!response?.ok || !turnId) {
    running = null;
    show(false);
    if (response?.status === 404) return live.settle("removed"); // the chat is, so there is no turn
    live.element.remove();
    document.getElementById("welcome")?.removeAttribute("hidden");
    if (!field.value) field.value = message;
    const failure = await response?.json().catch(() => null);
    tell(line, failure?.error?.message ?? form.dataset.unreachable, true);
    return;
  }
  entered(response.headers.get("X-Chat-Id"), message);
  const isStopped = running === "stop";
  running = turnId;
  if (isStopped) halt();
  await follow(live, turnId, response);
}

function halt() {
  if (running) fetch(`/api/turns/${running}/stop`, { method: "POST" }).catch(() => null);
  else if (running === "") running = "stop"; // asked to stop before the turn had its name
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (running !== null) return;
  const message = field.value;
  field.value = "";
  send(message);
});

field.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit(ask);
});

stop.addEventListener("click", ({ detail }) => {
  if (detail < 2) halt(); // the second click of a double click on Ask lands here
  field.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]")) halt();
});

turns.addEventListener("click", ({ target }) => {
  const { ask: question, without, edit } = target.closest("button")?.dataset ?? {};
  if (question) send(question, without === undefined ? {} : { without_documents: true });
  else if (edit) Object.assign(field, { value: edit }).focus();
});

document.body.addEventListener("docent:uploaded", () => {
  if (!field.disabled) return;
  field.disabled = false;
  ask.disabled = false;
  field.placeholder = field.dataset.open;
  field.focus();
});

const left = turns.querySelector("[data-running]");
if (left) {
  resume(left, left.dataset.turn, left.dataset.question, new Date(left.querySelector(".given time").dateTime));
}
if (!document.getElementById(location.hash.slice(1))) toEnd(); // an address may name a turn or a numeral of it
