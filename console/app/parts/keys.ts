/** Keyboard shortcuts. They are off while the focus is in a field or a dialogue is open. */
import { useLayoutEffect, useRef } from "preact/hooks";

/** One that returns `false` leaves the key to the browser. */
export type Shortcuts = Readonly<Record<string, (() => unknown) | undefined>>;

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Keys by name: "j", "?", or "g d" for two keys in a row. */
export function useShortcuts(shortcuts: Shortcuts): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  // Before the page is painted: a key that is pressed on what is visible must not be lost.
  useLayoutEffect(() => {
    let before = "";
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const run = latest.current[`${before} ${event.key}`] ?? latest.current[event.key];
      before = event.key;
      if (run && run() !== false) event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
