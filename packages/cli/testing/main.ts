/** The command with the counter as its only service. */
import { todoke } from "../cli.ts";
import { counter } from "./counter.ts";

process.exitCode = await todoke({ argv: process.argv.slice(2), env: process.env, services: [counter] });
setTimeout(() => process.exit(), 1_000).unref();
