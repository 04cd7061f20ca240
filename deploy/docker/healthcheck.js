// The HEALTHCHECK of the image: every service that process 1 serves must answer /readyz, or the path given as an argument.
// It imports nothing of Todoke, because it runs every few seconds.
import { readFileSync } from "node:fs";

const defaultPorts = {
  "gateway-bff": 8080,
  account: 8081,
  entitlement: 8082,
  notification: 8083,
  matchmaking: 8084,
  points: 8085,
  orders: 8086,
};

const [path = "/readyz"] = process.argv.slice(2);
const args = readFileSync("/proc/1/cmdline", "utf8").split("\0");
if (args.includes("serve"))
  for (const [name, defaultPort] of Object.entries(defaultPorts).filter(([each]) => args.includes(each))) {
    const port = process.env[`${name.toUpperCase().replaceAll("-", "_")}_PORT`] || defaultPort;
    const response = await fetch(`http://127.0.0.1:${port}${path}`);
    console.log(`${name} ${response.status} ${await response.text()}`);
    if (!response.ok) process.exitCode = 1;
  }
