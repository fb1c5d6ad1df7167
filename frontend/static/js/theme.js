// The reader's own choice of light or dark, before the first paint. Not a module: modules wait for the document.
// Radios named "theme" (values system, light, dark) on any page change it.
(() => {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(read());
  document.addEventListener("DOMContentLoaded", () => {
    const chosen = document.querySelector(`input[name="theme"][value="${root.dataset.theme || "system"}"]`);
    if (chosen) chosen.checked = true;
  });
  document.addEventListener("change", (event) => {
    if (event.target.name !== "theme") return;
    apply(event.target.value);
    try { localStorage.setItem("theme", event.target.value); } catch { /* private window: it lasts for this page */ }
  });
})();
