// Files from any [data-upload] input or dropped anywhere on the page, folders too, to POST /api/documents.
// Fires `docent:uploaded` on <body>; says what happens in [data-upload-say].

import { tell } from "./page.js";

const BATCH_FILES = 20;
const BATCH_BYTES = 64e6;
const say = document.querySelector("[data-upload-say]");

const named = (kind, names, n = names.length) =>
  say.dataset[n === 1 ? `${kind}One` : `${kind}Many`].replace("{name}", names[0]).replace("{n}", n);

function batches(files) {
  const all = [[]];
  let bytes = 0;
  for (const file of files) {
    if (all.at(-1).length === BATCH_FILES || (bytes && bytes + file.blob.size > BATCH_BYTES)) {
      all.push([]);
      bytes = 0;
    }
    all.at(-1).push(file);
    bytes += file.blob.size;
  }
  return all;
}

function sendBatch(files, progress) {
  const form = new FormData();
  for (const { blob, name } of files) form.append("files", blob, name);
  return new Promise((resolve) => {
    const request = new XMLHttpRequest(); // fetch can't tell how much has gone out
    request.open("POST", "/api/documents");
    request.responseType = "json";
    request.upload.onprogress = (event) => progress(event.loaded / event.total);
    request.onloadend = () => resolve(request);
    request.send(form);
  });
}

async function upload(files) {
  if (!files.length) return;
  const names = files.map((file) => file.name);
  const failures = [];
  let sent = 0;
  for (const batch of batches(files)) {
    const request = await sendBatch(batch, (part) => {
      const percent = Math.round((100 * (sent + part * batch.length)) / files.length);
      tell(say, `${named("adding", names)} · ${percent} %`);
    });
    const reply = request.response;
    sent += reply?.documents?.length ?? 0;
    if (reply?.errors) failures.push(...reply.errors.map((error) => `${error.name}: ${error.message}`));
    else if (request.status !== 202) failures.push(reply?.error?.message ?? say.dataset.unreachable);
  }
  const good = sent ? named("added", names, sent) : "";
  tell(say, [...failures, good].filter(Boolean).join("\n"), failures.length > 0);
  if (sent) document.body.dispatchEvent(new CustomEvent("docent:uploaded", { bubbles: true, detail: { sent } }));
}

async function fromEntry(entry) {
  if (entry.isFile) {
    const blob = await new Promise((resolve, reject) => { entry.file(resolve, reject); });
    return [{ blob, name: entry.fullPath.replace(/^\//, "") }];
  }
  const reader = entry.createReader();
  const files = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
    if (!some.length) return files;
    for (const child of some) if (!child.name.startsWith(".")) files.push(...await fromEntry(child));
  }
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-upload]")) return;
  upload([...event.target.files].map((blob) => ({ blob, name: blob.webkitRelativePath || blob.name })));
  event.target.value = "";
});

for (const type of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(type, async (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.toggle("dropping", type === "dragover" || (type === "dragleave" && event.relatedTarget !== null));
    if (type !== "drop") return;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    upload((await Promise.all(entries.map(fromEntry))).flat());
  });
}
