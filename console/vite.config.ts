/**
 * How the console is built: `build.ts` runs it. `node_modules/.bin/vite console` serves the sources with hot reload beside a
 * running `npm start`, whose gateway answers everything else.
 */
import { defineConfig } from "vite";

export default defineConfig({
  root: import.meta.dirname,
  base: "/console/",
  build: {
    // Browsers of the last two years: `<dialog>`, nesting, `light-dark()` and the source text of numbers in JSON.
    target: ["chrome123", "firefox135", "safari18.4"],
    // An inlined file would need a `data:` source in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "^/(?!console/)": "http://localhost:8080" } },
});
