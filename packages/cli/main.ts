/** The process of the `todoke` command. cli.ts parses the command line, commands/ has the commands. */
import { todoke } from "./cli.ts";
import { services } from "./services.ts";

process.exitCode = await todoke({ argv: process.argv.slice(2), env: process.env, services });

// An idle connection may still keep the process alive. Exit after a second, which is enough to flush the output.
setTimeout(() => process.exit(), 1_000).unref();
