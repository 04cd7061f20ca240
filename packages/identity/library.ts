/**
 * Imports npm `oidc-provider` without its warning that this Node is not an LTS release: the repository chooses the Node
 * version and tests with it, and a user of `npm start` cannot change it.
 */
const { warn } = console;
console.warn = (...args: unknown[]) => {
  if (!String(args[0]).includes("Unsupported runtime")) warn(...args);
};
export const { errors, Provider } = await import("oidc-provider").finally(() => {
  console.warn = warn;
});
