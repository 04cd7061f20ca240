import { startService, grants } from "./h.tmp.ts";
const url = process.env.TEST_POSTGRES_URL ?? "";
const off = await startService(url, { OTEL_SDK_DISABLED: "true" });
const on = await startService(url, {});
const t = { off: [] as number[], on: [] as number[] }, r = { off: [] as number[], on: [] as number[] };
for (let i = 0; i < 23; i++) for (const [n, s] of (i % 2 ? [["on", on], ["off", off]] : [["off", off], ["on", on]]) as ["on"|"off", typeof on][]) {
  const b = await s.processorMicroseconds(); const a = performance.now(); const g = await grants(s.url); 
  const el = performance.now() - a; if (i > 3) { t[n].push(((await s.processorMicroseconds()) - b) / g); r[n].push(g / el * 1000); }
}
const q = (v: number[], p: number) => [...v].sort((a, b) => a - b)[Math.floor(v.length * p)] ?? 0;
for (const p of [0, 0.25, 0.5]) console.log("cpu us/grant", p, q(t.off, p).toFixed(1), q(t.on, p).toFixed(1), "off/on", (q(t.off, p) / q(t.on, p)).toFixed(3));
for (const p of [0.5, 0.75, 0.95]) console.log("per s", p, q(r.off, p).toFixed(0), q(r.on, p).toFixed(0), (q(r.on, p) / q(r.off, p)).toFixed(3));
await off[Symbol.asyncDispose](); await on[Symbol.asyncDispose]();
