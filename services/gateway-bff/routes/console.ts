/**
 * The web console at /console: one page for every address below it, and its files. They are public; what they show is read
 * from routes that ask for a session and a staff role.
 */
import { type ConsoleFiles, loadConsole } from "@todoke/console";
import { type HttpApp, pageHeaders, problems, publicRoute, StaticText } from "@todoke/http";
import { Type } from "typebox";

/** Nothing inline and nothing from elsewhere; and no script may write markup (trusted types). */
const headers = pageHeaders([
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
]);

const types: Readonly<Record<string, string>> = {
  css: "text/css",
  js: "text/javascript",
  svg: "image/svg+xml",
};

interface Loaded extends Pick<ConsoleFiles, "page"> {
  readonly assets: ReadonlyMap<string, StaticText>;
}

export function consoleRoutes(app: HttpApp): void {
  // The query belongs to the page: it has the filters.
  const querystring = Type.Object({}, { additionalProperties: true });
  const files = loadOnce();

  for (const path of ["/console", "/console/*"])
    app.get(path, { ...publicRoute, schema: { hide: true, querystring } }, async (_request, reply) => {
      const { page } = await files();
      return reply.type("text/html; charset=utf-8").headers(headers).send(page);
    });

  const schema = { hide: true, params: Type.Object({ name: Type.String({ maxLength: 128 }) }) };
  app.get("/console/assets/:name", { ...publicRoute, schema }, async (request, reply) => {
    const asset = (await files()).assets.get(request.params.name);
    if (!asset) throw problems.notFound("the console has no file with this name");
    return asset.send(request, reply);
  });
}

/** A working copy builds the console at the first visit, so that starting takes no longer. A failed build is tried again. */
function loadOnce(): () => Promise<Loaded> {
  let loaded: Promise<Loaded> | undefined;
  return () => {
    loaded ??= load().catch((error) => {
      loaded = undefined;
      throw error;
    });
    return loaded;
  };
}

async function load(): Promise<Loaded> {
  const { page, assets } = await loadConsole();
  const toText = (name: string, text: string) =>
    new StaticText(text, `${types[name.split(".").at(-1) ?? ""]}; charset=utf-8`);
  return { page, assets: new Map([...assets].map(([name, text]) => [name, toText(name, text)])) };
}
