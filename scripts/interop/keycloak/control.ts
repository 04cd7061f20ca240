/** Lets tests, which run in other processes, stop and start the provider: TEST_OIDC_CONTROL_URL. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Control extends AsyncDisposable {
  readonly url: string;
}

/** `POST /<name>` runs an action and responds when it is done. */
export async function startControl(actions: Readonly<Record<string, () => Promise<void>>>): Promise<Control> {
  const server = createServer(async ({ method, url = "" }, response) => {
    const action = actions[url.slice(1)];
    if (method !== "POST" || !action) return response.writeHead(404).end();
    const failure = await action().then(() => undefined, String);
    if (failure) console.error(failure);
    response.writeHead(failure ? 500 : 204).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}
