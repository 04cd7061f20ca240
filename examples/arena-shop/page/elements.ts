/** Elements with text, never with markup. */

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function button(id: string, text: string, onClick: () => unknown): HTMLButtonElement {
  const made = element("button", { type: "button", id }, text);
  made.addEventListener("click", onClick);
  return made;
}

/** A part of `index.html`. */
export function part(id: string): HTMLElement {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

const toastMs = 6_000;

export function toast(text: string, kind: "good" | "bad"): void {
  const made = element("p", { className: kind }, text);
  part("toasts").append(made);
  setTimeout(() => made.remove(), toastMs);
}
