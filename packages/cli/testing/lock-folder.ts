/** Locks the data folder as `todoke dev` does, until it is killed. */
import { lockDataFolder } from "../data-folder.ts";

const folder = await lockDataFolder(1);
console.log("locked");
setInterval(() => folder, 60_000);
