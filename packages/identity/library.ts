/**
 * npm `oidc-provider`, loaded without its remark that this Node is no LTS release: which Node runs here is the
 * repository's choice, our tests are run on it, and whoever reads the remark after `npm start` can do nothing about it.
 */
const { warn } = console;
console.warn = (...said: unknown[]) => {
  if (!String(said[0]).includes("Unsupported runtime")) warn(...said);
};
export const { errors, Provider } = await import("oidc-provider").finally(() => {
  console.warn = warn;
});
