/** Counts the processes that a test file starts. */
import { subscribe } from "node:diagnostics_channel";
import { countMade } from "@todoke/kernel/testing/count-made";

subscribe("child_process", () => countMade("processes"));
