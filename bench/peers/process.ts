/** The program of a contender's process: opens one contender, plays one role, says what it found, and ends. */
import { type ContenderName, contenderOf } from "./contenders.ts";
import type { Site } from "./peer.ts";
import { type RoleName, roles } from "./roles.ts";

export interface Told {
  readonly contender: ContenderName;
  readonly role: RoleName;
  readonly site: Site;
  readonly options: Readonly<Record<string, number>>;
}

const { contender, role, site, options }: Told = JSON.parse(process.argv[2] ?? "");
const send = (what: string, value?: unknown) => new Promise((sent) => process.send?.({ what, value }, sent));

const peer = await contenderOf(contender).open(site);
const answer = await roles[role]({ peer, site, options, say: (what) => void send(what) });
await send("answer", answer);
// Some leave timers and connections behind; nobody is to wait for those.
process.exit(0);
