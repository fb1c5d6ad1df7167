// Reading a turn's frames: POST /api/chat, then GET /api/turns/{id}/events where the connection broke.

const QUIET_MS = 25000; // the server sends a comment every 10 s, so silence means the connection is gone
const TRIES = 8;
const TERMINAL = new Set(["done", "error", "stopped"]);
const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const turned = () => new Promise((resolve) => { document.addEventListener("visibilitychange", resolve, { once: true }); });

// A frame has one line each of id, event and data; a comment has none of them.
function parse(block) {
  const { id, event, data } = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/, 2)));
  return event ? { id: Number(id), event, data: JSON.parse(data) } : null;
}

// Ends early, and closes the connection, when nothing comes or the tab is hidden: a browser opens only six to a server.
async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const leave = () => reader.cancel();
  let buffer = "";
  turned().then(leave);
  for (;;) {
    const timer = setTimeout(leave, QUIET_MS);
    const { value, done } = await reader.read().finally(() => clearTimeout(timer));
    if (done) return;
    const blocks = (buffer + value).split("\n\n");
    buffer = blocks.pop();
    yield* blocks.map(parse).filter(Boolean);
  }
}

// Hands every frame once to `take`, across broken connections and hidden times. Gives "ended", "gone" (the log is no
// longer in memory: the database has the turn) or "lost".
export async function watch(turnId, response, take) {
  let last = 0;
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      response ??= await fetch(`/api/turns/${turnId}/events?after=${last}`);
      if (response.status === 204 || response.status === 404) return "gone";
      if (!response.ok) throw new Error(response.status);
      for await (const frame of frames(response.body)) {
        tries = 0;
        if (frame.id > last) take(frame);
        last = Math.max(last, frame.id);
        if (TERMINAL.has(frame.event)) return "ended";
      }
    } catch { /* the next try says what is there */ }
    response = null;
    await wait(Math.min(250 * 2 ** tries, 4000));
    if (document.hidden) {
      await turned();
      tries = -1;
    }
  }
  return "lost";
}

// Asks. The key makes a second sending of the same question the same turn, so a broken connection may be tried again.
export async function post(body) {
  const key = crypto.getRandomValues(new Uint32Array(4)).join("-"); // randomUUID is missing on plain http
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...body, client_key: key }) };
  for (let tries = 0; ; tries += 1) {
    try {
      return await fetch("/api/chat", request);
    } catch (error) {
      if (tries === 2) throw error;
      await wait(500 * 2 ** tries);
    }
  }
}
