const html = document.documentElement;
const root = html.dataset.root ?? "";

document.getElementById("theme")?.addEventListener("click", () => {
  const next = getComputedStyle(html).colorScheme.trim() === "dark" ? "light" : "dark";
  html.dataset.theme = next;
  localStorage.setItem("theme", next);
});
document.getElementById("menu")?.addEventListener("click", () => html.toggleAttribute("data-menu"));

const input = document.getElementById("search");
const results = document.getElementById("results");
let index;

/** The index is loaded at the first search. */
function loadIndex() {
  index ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}assets/search-${html.lang}.js`;
    script.onerror = reject;
    script.onload = () => {
      const fields = ["heading", "title", "text"];
      const options = { fields, storeFields: ["title", "heading", "path", "start"], tokenize: searchTerms };
      resolve(MiniSearch.loadJS(window.searchData, { ...options, processTerm: (term) => term }));
    };
    document.head.append(script);
  });
  return index;
}

async function search() {
  const words = input.value;
  if (words.trim() === "") return void results.setAttribute("hidden", "");
  const found = (await loadIndex()).search(words, {
    boost: { heading: 4, title: 3 },
    prefix: (term) => term.length > 2,
    combineWith: "AND",
  });
  if (words !== input.value) return;
  results.replaceChildren(...found.slice(0, 12).map(toLink));
  if (found.length === 0) results.textContent = html.lang === "ja" ? "見つかりません" : "Nothing found";
  results.removeAttribute("hidden");
}

function toLink({ path, title, heading, start }) {
  const link = document.createElement("a");
  link.href = root + path;
  link.setAttribute("role", "option");
  const name = document.createElement("strong");
  name.textContent = heading === title ? title : `${title} › ${heading}`;
  const text = document.createElement("span");
  text.textContent = start;
  link.append(name, text);
  return link;
}

input?.addEventListener("input", search);
input?.addEventListener("focus", loadIndex);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement === document.body) {
    event.preventDefault();
    input.focus();
  }
  if (event.key === "Escape") results.setAttribute("hidden", "");
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Enter" && document.activeElement === input) links[0]?.click();
  if (links.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    (links[at + (event.key === "ArrowDown" ? 1 : -1)] ?? input).focus();
  }
});
document.addEventListener("click", ({ target }) => {
  if (!results.contains(target) && target !== input) results.setAttribute("hidden", "");
});
document.querySelector('nav [aria-current="page"]')?.scrollIntoView({ block: "center" });
