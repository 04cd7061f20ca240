/** The table of API keys, in the schema of every service. */
export const httpMigrations = { name: "http", dir: new URL("./", import.meta.url) };
