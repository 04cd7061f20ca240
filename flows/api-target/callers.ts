/** The callers of the requests: for each route, all that may use it, in turn. */
import { rules } from "../access-rules.ts";
import { apiKeyFor, type ServiceName, type startAll, tokenFor, type User } from "../all-services.ts";
import type { Authorize } from "./proxy.ts";

export type Services = Awaited<ReturnType<typeof startAll>>;

export interface Callers {
  readonly authorize: Authorize;
  /** Users who exist. Operations of admins suspend and delete some of them. */
  readonly userIds: readonly string[];
}

const usersMax = 30;

export async function createCallers(service: ServiceName, services: Services): Promise<Callers> {
  const admin = await services.createUser("admin");
  const users = new Map<string, User>();
  for (let n = 0; n < usersMax; n++) {
    const user = await services.createUser(`${service}-${n}`);
    users.set(user.userId, user);
  }
  const routes = Object.entries(rules[service]).map(([route, rule]) => ({ pattern: toPattern(route), rule }));
  const otherUser = await services.createUser(`${service}-other`);
  const tokenOf = (user: User) => (service === "gateway-bff" ? services.openSession(user) : tokenFor(service, user));
  let turn = 0;

  async function authorize(method: string, path: string): Promise<string | undefined> {
    const rule = routes.find(({ pattern }) => pattern.test(`${method} ${path}`))?.rule ?? {};
    const [, userId = ""] = /\/users\/([\w-]+)/.exec(path) ?? [];
    const user = users.get(userId) ?? (service === "gateway-bff" || !userId ? otherUser : { ...otherUser, userId });
    const callers = [
      ...(rule.key ? [async () => apiKeyFor(rule.key ?? "")] : []),
      ...(rule.user ? [() => tokenOf(user)] : []),
      ...(rule.staff ? [() => tokenOf(admin)] : []),
      ...(rule.service ? [() => tokenFor(service)] : []),
    ];
    return callers[turn++ % Math.max(callers.length, 1)]?.();
  }
  return { authorize, userIds: [...users.keys()] };
}

const toPattern = (route: string): RegExp =>
  new RegExp(`^${route.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+?")}$`);
