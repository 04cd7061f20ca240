import { useLayoutEffect, useRef } from "preact/hooks";
import { useTexts } from "../texts/index.ts";
import { usePages } from "./layout.tsx";

export function ShortcutHelp({ close }: { readonly close: () => void }) {
  const t = useTexts();
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const rows = [
    ["/  Ctrl K", t.searchAny],
    ["J  K", t.keysRows],
    ["X", t.keysSelect],
    ["Enter", t.keysOpen],
    ...usePages().map(([name, , key]) => [`G  ${key.toUpperCase()}`, t.nav[name]]),
  ];
  return (
    <dialog ref={dialog} aria-labelledby="keys-title" onClose={close}>
      <h2 id="keys-title">{t.shortcuts}</h2>
      <dl class="facts">
        {rows.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <div class="dialog-buttons">
        <button type="button" onClick={close}>
          {t.close}
        </button>
      </div>
    </dialog>
  );
}
