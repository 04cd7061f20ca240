/** Keycloak's distribution, as Maven brings it. */
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, findProgram, MissingProgram, outputOf, report } from "../peer.ts";

const javaMin = 17;
const plugin = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1";

/** Returns the folder of the newest version, or of the one in INTEROP_KEYCLOAK_VERSION. */
export async function fetchKeycloak(signal: AbortSignal): Promise<string> {
  const java = await javaVersion(signal);
  const maven = findProgram("mvn", "Install Maven, which downloads Keycloak.");
  const version = process.env.INTEROP_KEYCLOAK_VERSION ?? "RELEASE";
  const folder = cacheFolder(`keycloak/${version}`);
  report(`downloading Keycloak (${version}) with Maven`);
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${version}:zip`;
  const unpack = [maven, "-B", "-q", `${plugin}:unpack`, artifact, `-DoutputDirectory=${folder}`];
  await outputOf(unpack, { signal, cwd: folder });
  const home = globSync(join(folder, "keycloak-*")).sort(byVersion).at(-1) ?? folder;
  report(`${(await readFile(join(home, "version.txt"), "utf8")).trim()}, Java ${java}`);
  return home;
}

/** "26.10.0" is newer than "26.9.0". */
const byVersion = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

async function javaVersion(signal: AbortSignal): Promise<string> {
  const advice = `Install Java ${javaMin} or newer.`;
  const java = findProgram("java", advice);
  const [, version = "0"] = /version "([^"]+)"/.exec(await outputOf([java, "-version"], { signal })) ?? [];
  if (Number.parseInt(version, 10) < javaMin) throw new MissingProgram(`this is Java ${version}. ${advice}`);
  return version;
}
