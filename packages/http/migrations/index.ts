/** API keys, acts of staff and batches of dead letters: tables in the schema of every service. */
export const httpMigrations = { name: "http", dir: new URL("./", import.meta.url) };
