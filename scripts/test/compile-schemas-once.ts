/**
 * Compiles each schema of a route once per process instead of once per app: tests build an app of their own each, and compiling
 * its schemas takes most of the time of that.
 */
import { subscribe } from "node:diagnostics_channel";
import { createRequire } from "node:module";

type Compile = (route: { readonly schema: unknown }) => unknown;
type BuildCompiler = (sharedSchemas: unknown, options: unknown) => Compile;

interface Compilers {
  readonly buildValidator: BuildCompiler;
  readonly buildSerializer: BuildCompiler;
}

interface App {
  setSchemaController(options: { readonly compilersFactory: Compilers }): void;
}

/** Those that Fastify uses by default. */
function loadCompilers(): Compilers {
  const requireOfFastify = createRequire(createRequire(import.meta.url).resolve("fastify"));
  return {
    buildValidator: once(requireOfFastify("@fastify/ajv-compiler")()),
    buildSerializer: once(requireOfFastify("@fastify/fast-json-stringify-compiler")()),
  };
}

/** Schemas are the same if they are the same JSON: most apps create theirs anew. */
function once(build: BuildCompiler): BuildCompiler {
  const compiled = new Map<string, unknown>();
  return (sharedSchemas, options) => {
    const compile = build(sharedSchemas, options);
    return (route) => {
      const key = JSON.stringify([sharedSchemas, options, route.schema]);
      const result = compiled.get(key) ?? compile(route);
      compiled.set(key, result);
      return result;
    };
  };
}

let compilersFactory: Compilers | undefined;
subscribe("fastify.initialization", (message) => {
  compilersFactory ??= loadCompilers();
  (message as { fastify: App }).fastify.setSchemaController({ compilersFactory });
});
