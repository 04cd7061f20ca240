/** The messages between a parent and its service processes (`--processes`), over Node's channel. */
import type { GroupAnswer, GroupQuestion } from "@todoke/service";
import type { Env } from "../services.ts";

/** Sent by a service process. */
export type FromProcess =
  | { readonly kind: "loaded" }
  | { readonly kind: "ready"; readonly urls: Readonly<Record<string, string>> }
  | { readonly kind: "ask"; readonly id: number; readonly question: GroupQuestion; readonly of?: string | undefined }
  | { readonly kind: "answer"; readonly id: number; readonly answer: unknown };

/** Sent by the parent. */
export type ToProcess =
  | { readonly kind: "start"; readonly number: number; readonly names: readonly string[]; readonly env: Env }
  | { readonly kind: "ask"; readonly id: number; readonly question: GroupQuestion; readonly of?: string | undefined }
  | { readonly kind: "answers"; readonly id: number; readonly answers: readonly GroupAnswer<GroupQuestion>[] };
