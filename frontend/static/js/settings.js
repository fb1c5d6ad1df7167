// Settings: which section of the list is current, by what is on the screen.

const links = [...document.querySelectorAll(".settings-nav a")];
const sections = links.map((link) => document.querySelector(link.getAttribute("href")));

function mark() {
  const line = window.innerHeight / 3;
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
  let at = sections.findLastIndex((section) => section.getBoundingClientRect().top <= line);
  if (atEnd && window.scrollY > 0) at = links.length - 1;
  for (const [index, link] of links.entries()) {
    if (index === Math.max(0, at)) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

addEventListener("scroll", mark, { passive: true });
addEventListener("resize", mark);
mark();
