/**
 * The API documents name every problem that an operation can return (packages/http/refusals.ts). One that is not named fails the
 * run, as an uncaught error.
 */
import diagnostics from "node:diagnostics_channel";

diagnostics.subscribe("todoke.http.undeclared-refusal", (message) => {
  throw new Error(String(message));
});
