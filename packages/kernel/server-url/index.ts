/**
 * URLs of servers: of one, or of the members of a cluster. A URL says everything about its server, also the files for TLS, so
 * that every connection that is made from it is made in the same way.
 */
export { explainConnectionError, ServerUnreachable } from "./connection-errors.ts";
export { addParameters, formatServerUrl, parseServerUrl, type ServerUrl } from "./parse.ts";
export { checkTlsFiles, readTlsFiles, serverName, tlsFilesOf } from "./tls-files.ts";
