// What the parts of the page share: requests to the public API, exact numbers, and elements with text, never markup.

export const texts = JSON.parse(document.body.dataset.texts);
const language = document.documentElement.lang;

/** Every request has the header, which a form on another site cannot send. */
export const request = (path, options = {}) =>
  fetch(path, { ...options, headers: { accept: "application/json", "x-todoke-request": "1", ...options.headers } });

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function button(id, text, onClick) {
  const made = element("button", { type: "button", id }, text);
  made.addEventListener("click", onClick);
  return made;
}

/** A part of the page with its heading. */
export const card = (id, heading, ...children) =>
  element("section", { id: `${id}-card` }, element("h2", {}, heading), ...children);

/** The items, or a sentence if there are none. */
export const orEmpty = (items, text) => (items.length > 0 ? items : [element("li", { className: "quiet" }, text)]);

/** Parses JSON without rounding numbers past 2^53: they keep their digits as text. */
const parseExactly = (text) =>
  JSON.parse(text, (_, value, { source } = {}) =>
    typeof value === "number" && source && JSON.rawJSON ? JSON.rawJSON(source) : value,
  );
export const read = async (path) => parseExactly(await (await request(path)).text());
/** Parts of the player's profile. */
export const readProfile = (query) => read(`/v1/me/profile?${query}`);

export const toInteger = (number) => BigInt(number.rawJSON ?? number);
export const formatPoints = (points) => toInteger(points).toLocaleString(language);
export const formatTime = (time) =>
  new Date(time).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
export const formatDay = (time) => new Date(time).toLocaleDateString(language);
export const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
