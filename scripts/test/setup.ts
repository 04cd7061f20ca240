/** Loaded before every test file. What it imports runs once per process, also where files share one. */
import "./count-processes.ts";
import "./compile-schemas-once.ts";
import "./undeclared-refusals.ts";
