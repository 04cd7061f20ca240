/** The receivers of webhooks in the client's README, each as a program that listens. */

export interface Receiver {
  readonly name: string;
  readonly runtime: "Node" | "Deno" | "Bun";
  readonly source: string;
}

const imports = `import { verifyWebhook, WebhookRejected } from "@todoke/client/webhooks";
import process from "node:process";
const [secret, oldSecret] = [process.env.SECRET, "whsec_b2xk"];
const handle = async (event) => console.log(\`handled \${event.id}\`);
const listening = (port) => console.log(\`port \${port}\`);
`;

/** How each block is started; the block itself is used as it is. */
const starts = [
  {
    name: "Express",
    runtime: "Node",
    has: "express.text",
    before: `import express from "express";\nconst app = express();\n`,
    after: `const server = app.listen(0, "127.0.0.1", () => listening(server.address().port));\n`,
  },
  {
    name: "Fastify",
    runtime: "Node",
    has: "fastify.post",
    before: `import { fastify as createFastify } from "fastify";\nconst fastify = createFastify();\n`,
    after: `await fastify.listen({ port: 0, host: "127.0.0.1" });\nlistening(fastify.server.address().port);\n`,
  },
  {
    name: "Deno",
    runtime: "Deno",
    has: "handleWebhook",
    before: "",
    after: `Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: ({ port }) => listening(port) }, handleWebhook);\n`,
  },
  {
    name: "Bun",
    runtime: "Bun",
    has: "handleWebhook",
    before: "",
    after: `listening(Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: handleWebhook }).port);\n`,
  },
] as const;

export function receiversIn(readme: string): Receiver[] {
  const blocks = [...readme.matchAll(/```ts\n(.*?)```/gs)].map(([, block = ""]) => block);
  return starts.map(({ name, runtime, has, before, after }) => {
    const block = blocks.find((each) => each.includes(has));
    if (!block) throw new Error(`the README has no receiver with ${name}`);
    return { name, runtime, source: imports + before + block + after };
  });
}
