/**
 * Stores sessions, grants, codes and tokens in memory, bounded, until they expire. A key rotation creates a new provider
 * with the same adapter.
 */
import type { Adapter, AdapterFactory, AdapterPayload } from "oidc-provider";

/** A login has about six entries. Beyond this the oldest entries are dropped, which ends their sessions. */
const entriesMax = 10_000;

interface Entry {
  readonly payload: AdapterPayload;
  readonly expiresAt: number;
}

export function createMemoryAdapter(): AdapterFactory {
  const entries = new Map<string, Entry>();

  const store = (key: string, entry: Entry) => {
    entries.delete(key); // so that an updated entry becomes the newest
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest);
  };

  const read = (key: string): AdapterPayload | undefined => {
    const entry = entries.get(key);
    if (entry === undefined || entry.expiresAt > Date.now()) return entry?.payload;
    entries.delete(key);
    return undefined;
  };

  return (model): Adapter => {
    const keyOf = (id: string) => `${model}:${id}`;
    const keyOfUid = (uid: string) => `${model}.uid:${uid}`;
    return {
      async upsert(id, payload, expiresIn) {
        const entry = { payload, expiresAt: expiresIn ? Date.now() + expiresIn * 1_000 : Number.POSITIVE_INFINITY };
        store(keyOf(id), entry);
        if (payload.uid) store(keyOfUid(payload.uid), entry);
      },
      find: async (id) => read(keyOf(id)),
      findByUid: async (uid) => read(keyOfUid(uid)),
      findByUserCode: async () => undefined, // only for the device flow, which is off
      async consume(id) {
        const payload = read(keyOf(id));
        if (payload) payload.consumed = Math.floor(Date.now() / 1_000);
      },
      async destroy(id) {
        const uid = read(keyOf(id))?.uid;
        entries.delete(keyOf(id));
        if (uid) entries.delete(keyOfUid(uid));
      },
      // Called for each kind of token. It deletes only that kind: an interaction has the grant id too, and must stay.
      async revokeByGrantId(grantId) {
        for (const [key, { payload }] of entries)
          if (key.startsWith(keyOf("")) && payload.grantId === grantId) entries.delete(key);
      },
    };
  };
}
