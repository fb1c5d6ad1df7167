// The reader: the cited passage in the middle of the screen, and the keys j, k and Esc.

document.getElementById("passage")?.scrollIntoView({ block: "center" });

const keys = { j: "a[rel=next]", k: "a[rel=prev]", Escape: "a.reader-back" };

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest("input, textarea, select, dialog, [popover]:popover-open, details.menu[open]")) return;
  const link = keys[event.key] && document.querySelector(keys[event.key]);
  if (link) link.click();
});
