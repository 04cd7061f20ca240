/** The `todoke` command: what it is called with, and the services it knows. All else is in cli.ts and commands/. */
import { todoke } from "./cli.ts";
import { services } from "./services.ts";

process.exitCode = await todoke({ argv: process.argv.slice(2), env: process.env, services });

// What still holds the process now is a connection that nobody will answer: it gets a moment, and the output its time.
setTimeout(() => process.exit(), 1_000).unref();
