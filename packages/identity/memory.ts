/**
 * What the provider knows between requests: sessions, grants, codes, tokens. In memory and bounded, each entry until its
 * time is over. It outlives the change of keys, which makes a new provider around the same memory.
 */
import type { Adapter, AdapterFactory, AdapterPayload } from "oidc-provider";

/** A log-in keeps about six entries. Past this the oldest go, which logs somebody out. */
const entriesMax = 10_000;

interface Entry {
  readonly payload: AdapterPayload;
  readonly until: number;
}

export function openMemory(): AdapterFactory {
  const entries = new Map<string, Entry>();

  const keep = (key: string, entry: Entry) => {
    entries.delete(key); // so that what is kept anew is the newest
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > entriesMax && oldest !== undefined) entries.delete(oldest);
  };

  const look = (key: string): AdapterPayload | undefined => {
    const entry = entries.get(key);
    if (entry === undefined || entry.until > Date.now()) return entry?.payload;
    entries.delete(key);
    return undefined;
  };

  return (model): Adapter => {
    const keyOf = (id: string) => `${model}:${id}`;
    const keyOfUid = (uid: string) => `${model}.uid:${uid}`;
    return {
      async upsert(id, payload, expiresIn) {
        const entry = { payload, until: expiresIn ? Date.now() + expiresIn * 1_000 : Number.POSITIVE_INFINITY };
        keep(keyOf(id), entry);
        if (payload.uid) keep(keyOfUid(payload.uid), entry);
      },
      find: async (id) => look(keyOf(id)),
      findByUid: async (uid) => look(keyOfUid(uid)),
      findByUserCode: async () => undefined, // codes to type in are of the device flow, which is off
      async consume(id) {
        const payload = look(keyOf(id));
        if (payload) payload.consumed = Math.floor(Date.now() / 1_000);
      },
      async destroy(id) {
        const uid = look(keyOf(id))?.uid;
        entries.delete(keyOf(id));
        if (uid) entries.delete(keyOfUid(uid));
      },
      // Asked of each kind of token in turn; an interaction names its grant too, and goes on.
      async revokeByGrantId(grantId) {
        for (const [key, { payload }] of entries)
          if (key.startsWith(keyOf("")) && payload.grantId === grantId) entries.delete(key);
      },
    };
  };
}
