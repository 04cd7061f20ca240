/**
 * Makes an API key in the browser, and lets services accept it by its hash. The key is shown once, and is nowhere else: after a lost answer the
 * same key is sent again, and one whose dialogue was closed can be used by nobody.
 */
import { useEffect, useState } from "preact/hooks";
import type { FailedPart } from "../api/types.ts";
import { Copy } from "../parts/basics.tsx";
import { ActDialog, type ActRequest } from "../parts/dialog.tsx";
import { useTexts } from "../texts/index.ts";

export interface KeyChange {
  readonly key_id: string;
  readonly services: readonly string[];
  readonly failed: readonly FailedPart[];
}

export const notEverywhere = (t: ReturnType<typeof useTexts>, failed: readonly FailedPart[]): string | undefined =>
  failed.length > 0 ? t.keyNotEverywhere(failed.map(({ service }) => service).join(", ")) : undefined;

interface MadeKey {
  readonly id: string;
  readonly secret: string;
  readonly sha256: string;
  readonly madeAt: number;
}

async function makeKey(): Promise<MadeKey> {
  const bytes = crypto.getRandomValues(new Uint8Array(32));
  const base64 = btoa(String.fromCharCode(...bytes));
  const secret = `tdk_${base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret)));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id: crypto.randomUUID(), secret, sha256, madeAt: Date.now() };
}

export function NewKeyButton() {
  const t = useTexts();
  const [key, setKey] = useState<MadeKey>();
  const [shown, setShown] = useState<MadeKey>();
  if (!globalThis.crypto?.subtle) return <span class="muted">{t.keysNeedHttps}</span>;
  return (
    <>
      <button type="button" class="primary" onClick={async () => setKey(await makeKey())}>
        {t.newKey}
      </button>
      {key && (
        <ActDialog
          request={newKeyRequest(t, key, () => setShown(key)) as unknown as ActRequest<never>}
          close={() => setKey(undefined)}
        />
      )}
      {shown && <ShownOnce secret={shown.secret} close={() => setShown(undefined)} />}
    </>
  );
}

const scopes = [
  "read",
  "entitlements:write",
  "points:write",
  "matchmaking:write",
  "orders:write",
  "orders:read-all",
  "orders:cancel-all",
  "orders:resume",
];
const services = ["entitlement", "points", "orders", "matchmaking", "notification", "account"];
const dayMs = 24 * 60 * 60 * 1_000;

/** The expiry is counted from when the key was made, so that a repetition is the same request. */
function newKeyRequest(t: ReturnType<typeof useTexts>, key: MadeKey, onCreated: () => void): ActRequest<KeyChange> {
  const days = (count: number) => [String(count), t.days(count)] as const;
  const same = (names: readonly string[]) => names.map((name) => [name, name] as const);
  return {
    title: t.newKey,
    text: t.newKeyMeans,
    confirm: t.create,
    fields: [
      { name: "holder", label: t.holder, pattern: "^[a-z0-9][a-z0-9_-]{0,62}$" },
      { name: "services", label: t.services, type: "checks", options: same(services) },
      { name: "scopes", label: t.scopes, type: "checks", options: same(scopes) },
      { name: "days", label: t.expires, initial: "90", options: [...[30, 90, 365].map(days), ["never", t.never]] },
      { name: "perSecond", label: t.perSecond, pattern: "^[1-9][0-9]{0,5}$", isOptional: true },
    ],
    toAct: ({ holder, services: of = "", scopes: granted = "", days: left, perSecond }, reason) => ({
      path: "/v1/admin/keys",
      body: {
        key_id: key.id,
        sha256: key.sha256,
        holder,
        services: of.split(" "),
        scopes: granted.split(" "),
        expires_at: left === "never" ? null : new Date(key.madeAt + Number(left) * dayMs).toISOString(),
        ...(perSecond && { per_second: Number(perSecond) }),
        reason,
      },
    }),
    incomplete: ({ failed }) => notEverywhere(t, failed),
    done() {
      onCreated();
      return undefined;
    },
  };
}

function ShownOnce({ secret, close }: { readonly secret: string; readonly close: () => void }) {
  const t = useTexts();
  const [dialog, setDialog] = useState<HTMLDialogElement | null>(null);
  useEffect(() => dialog?.showModal(), [dialog]);
  return (
    <dialog ref={setDialog} class="act" aria-labelledby="key-title" onClose={close}>
      <h2 id="key-title">{t.keyShownOnce}</h2>
      <p class="act-text">{t.keyShownOnceMeans}</p>
      <p class="secret">
        <code>{secret}</code> <Copy text={secret} />
      </p>
      <div class="dialog-buttons">
        <button type="button" onClick={close}>
          {t.keySaved}
        </button>
      </div>
    </dialog>
  );
}
