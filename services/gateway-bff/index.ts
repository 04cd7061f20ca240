<<<<<<< HEAD
/** What the `todoke` command runs. */
export { configFaults, dead, migrate, start } from "./main.ts";
=======
/** The gateway as the `todoke` command runs it. */
export { configFaults, dead, events, migrate, start } from "./main.ts";
>>>>>>> c64dea6789a4161a76fbf8ac5b6170666c3c6a63
