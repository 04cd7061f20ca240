/** Holds the data folder as `todoke dev` does, and nothing else, until it is killed. */
import { holdFolder } from "../data-folder.ts";

const folder = await holdFolder(1);
console.log("held");
setInterval(() => folder, 60_000);
