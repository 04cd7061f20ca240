/**
 * Started before a program (`node --import chaos/patches/instrument.ts …`), gives it the failpoints that
 * CHAOS_FAILPOINTS names, the defect that CHAOS_PLANTED names, and a clock that is wrong by CHAOS_SKEW_MS. With
 * CHAOS_CLAIMS_ONLY=true it works by claims only. Without them it changes nothing.
 *
 * Files are patched as they are loaded, before Node strips their types. The files themselves are never touched.
 */
import { registerHooks } from "node:module";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { failpoints, patchesFor, patchSource, planted } from "./index.ts";
import { named, readOrders } from "./orders.ts";
import { skewClock } from "./skewed-clock.ts";

const { CHAOS_CLAIMS_ONLY, CHAOS_FAILPOINTS, CHAOS_PLANTED, CHAOS_SKEW_MS } = process.env;
if (CHAOS_SKEW_MS) skewClock(Number(CHAOS_SKEW_MS));

// "control:no-fence" is the run of that defect without it: as slow in the same places, and all code as it should be.
const [, control, name] = /^(control:)?(.*)$/.exec(CHAOS_PLANTED ?? "") ?? [];
const defects = named(planted, name ? [name] : [], "planted defect");
const orders = [...readOrders(CHAOS_FAILPOINTS), ...defects.flatMap(({ broughtOutBy }) => broughtOutBy?.given ?? [])];
// Where ./reach.ts finds them once patched code is loaded.
process.env.CHAOS_FAILPOINTS = JSON.stringify(orders);

const patches = patchesFor({
  planted: control ? [] : defects,
  failpoints: named(failpoints, [...new Set(orders.map(({ name }) => name))], "failpoint"),
  claimsOnly: CHAOS_CLAIMS_ONLY === "true",
});

const root = fileURLToPath(new URL("../../", import.meta.url));
const files = new Set(patches.map(({ file }) => file));

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const file = url.startsWith("file:") ? relative(root, fileURLToPath(url)).replaceAll("\\", "/") : "";
    if (!files.has(file) || loaded.source === undefined || loaded.source === null) return loaded;
    const source = typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source);
    return { ...loaded, source: patchSource(file, source, patches) ?? source };
  },
});
