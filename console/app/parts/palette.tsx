/** Search by anything, and every page by its name: Ctrl-K or `/`. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useLocation } from "wouter-preact";
import { useTexts } from "../texts/index.ts";
import { whyHref } from "./basics.tsx";
import { usePages } from "./layout.tsx";

export function Palette({ close }: { readonly close: () => void }) {
  const t = useTexts();
  const [, navigate] = useLocation();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState("");
  const [index, setIndex] = useState(0);
  const visible = usePages();
  useLayoutEffect(() => dialog.current?.showModal(), []);

  const wanted = text.trim();
  const found = visible.filter(([name]) => t.nav[name].toLowerCase().includes(wanted.toLowerCase()));
  const entries = [
    ...(wanted ? [{ key: "search", text: t.searchFor(wanted), href: whyHref(wanted) }] : []),
    ...found.map(([name, href]) => ({ key: name, text: t.nav[name], href })),
  ];
  const active = Math.min(index, entries.length - 1);

  function go(href: string | undefined): void {
    if (href === undefined) return;
    close();
    navigate(href);
  }
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setIndex(Math.min(Math.max(active + step, 0), entries.length - 1));
    else if (event.key === "Enter" && !event.isComposing) go(entries[active]?.href);
    else return;
    event.preventDefault();
  }

  return (
    <dialog ref={dialog} class="palette" aria-label={t.searchAny} onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries[active] && `palette-${entries[active].key}`}
        aria-label={t.searchAny}
        placeholder={t.searchHint}
        maxLength={320}
        autocomplete="off"
        spellcheck={false}
        value={text}
        autofocus
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setIndex(0);
        }}
        onKeyDown={onKeyDown}
      />
      <div id="palette-list" role="listbox" aria-label={t.searchAny}>
        {entries.map(({ key, text: entry, href }, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the combobox.
          <div
            key={key}
            id={`palette-${key}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === active}
            onClick={() => go(href)}
          >
            <bdi>{entry}</bdi>
          </div>
        ))}
      </div>
    </dialog>
  );
}
