/** Messages about completed acts. Each is shown for some seconds, and read out by screen readers. */
import { createStore, useStore } from "../api/store.ts";

const shownMs = 10_000;
const shown = createStore<readonly { readonly id: number; readonly text: string }[]>([]);
let count = 0;

export function toast(text: string): void {
  const id = ++count;
  shown.set([...shown.get(), { id, text }]);
  setTimeout(() => shown.set(shown.get().filter((each) => each.id !== id)), shownMs);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(shown).map(({ id, text }) => (
        <p key={id}>{text}</p>
      ))}
    </div>
  );
}
