// Settings: which section of the list is current, by what is on the screen.

const links = [...document.querySelectorAll(".settings-nav a")];
const sections = links.map((link) => document.querySelector(link.getAttribute("href")));

function mark() {
  const line = window.innerHeight / 3;
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
  const reached = Math.max(0, sections.findLastIndex((section) => section.getBoundingClientRect().top <= line));
  const current = atEnd && window.scrollY > 0 ? links.at(-1) : links[reached];
  for (const link of links) link.ariaCurrent = link === current ? "true" : null;
}

addEventListener("scroll", mark, { passive: true });
addEventListener("resize", mark);
mark();
