// Reading a turn's frames: POST /api/chat, then GET /api/turns/{id}/events where the connection broke.

const QUIET_MS = 25000; // the server sends a comment every 10 s, so silence means the connection is gone
const TRIES = 8;
const TERMINAL = new Set(["done", "error", "stopped"]);
const wait = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

// A frame has one line each of id, event and data; a comment has none of them.
function parse(block) {
  const { id, event, data } = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/, 2)));
  return event ? { id: Number(id), event, data: JSON.parse(data) } : null;
}

async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    let timer;
    const quiet = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error("quiet")), QUIET_MS); });
    const { value, done } = await Promise.race([reader.read(), quiet]).finally(() => clearTimeout(timer));
    if (done) return;
    const blocks = (buffer + value).split("\n\n");
    buffer = blocks.pop();
    for (const block of blocks) {
      const frame = parse(block);
      if (frame) yield frame;
    }
  }
}

// Hands every frame once to `take`, across broken connections. Gives "ended", "gone" (the log is no longer in memory:
// the database has the turn) or "lost".
export async function watch(turnId, response, take) {
  let last = 0;
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      response ??= await fetch(`/api/turns/${turnId}/events?after=${last}`);
      if (response.status === 204 || response.status === 404) return "gone";
      if (!response.ok) throw new Error(response.status);
      for await (const frame of frames(response.body)) {
        tries = 0;
        if (frame.id <= last) continue;
        last = frame.id;
        take(frame);
        if (TERMINAL.has(frame.event)) return "ended";
      }
    } catch { /* the next try says what is there */ }
    response = null;
    await wait(Math.min(250 * 2 ** tries, 4000));
  }
  return "lost";
}

// Asks. The key makes a second sending of the same question the same turn, so a broken connection may be tried again.
export async function post(body) {
  const key = crypto.randomUUID?.() // missing on plain http
    ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  for (let tries = 0; ; tries += 1) {
    try {
      return await fetch("/api/chat", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ ...body, client_key: key }),
      });
    } catch (error) {
      if (tries === 2) throw error;
      await wait(500 * 2 ** tries);
    }
  }
}
