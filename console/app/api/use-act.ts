/** An act of staff. It has one key for as long as its dialogue is open, so pressing the button again never acts twice. */
import { useQueryClient } from "@tanstack/preact-query";
import { useRef, useState } from "preact/hooks";
import { request } from "./request.ts";

export interface Act {
  readonly method?: "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
}

export interface ActState<T> {
  readonly isRunning: boolean;
  readonly error: Error | undefined;
  run(act: Act): Promise<T | undefined>;
}

export function useAct<T = unknown>(): ActState<T> {
  const client = useQueryClient();
  const last = useRef<{ readonly act: string; readonly key: string }>();
  const [state, setState] = useState<Pick<ActState<T>, "isRunning" | "error">>({ isRunning: false, error: undefined });

  /** The same act keeps its key; an edited one is another act. */
  function keyFor(act: Act): string {
    const text = JSON.stringify(act);
    if (last.current?.act !== text) last.current = { act: text, key: crypto.randomUUID() };
    return last.current.key;
  }

  async function run(act: Act): Promise<T | undefined> {
    setState({ isRunning: true, error: undefined });
    try {
      const { path, method = "POST", body } = act;
      const result = await request<T>(path, { method, body, key: keyFor(act) });
      setState({ isRunning: false, error: undefined });
      void client.invalidateQueries();
      return result ?? ({} as T);
    } catch (error) {
      setState({ isRunning: false, error: error as Error });
      return undefined;
    }
  }
  return { ...state, run };
}
