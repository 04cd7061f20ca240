/** Program of a contender's process: opens the contender, runs one role, sends the result and exits. */
import { type ContenderName, getContender } from "./contenders.ts";
import type { RoundSetup } from "./peer.ts";
import { type RoleName, roles } from "./roles.ts";

export interface RoleTask {
  readonly contender: ContenderName;
  readonly role: RoleName;
  readonly setup: RoundSetup;
  readonly options: Readonly<Record<string, number>>;
}

const { contender, role, setup, options }: RoleTask = JSON.parse(process.argv[2] ?? "");
const send = (name: string, value?: unknown) => new Promise((sent) => process.send?.({ name, value }, sent));

const peer = await getContender(contender).open(setup);
const result = await roles[role]({ peer, setup, options, report: (name) => void send(name) });
await send("result", result);
// Some peers leave timers and connections open.
process.exit(0);
