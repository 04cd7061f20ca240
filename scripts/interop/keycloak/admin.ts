/** Acts of an operator in Keycloak's console, by its admin API. */

interface Credentials {
  readonly username: string;
  readonly password: string;
}

/** A key with a higher priority signs from now on; the others stay published. */
export async function addSigningKey(url: string, credentials: Credentials): Promise<void> {
  const token = await logIn(url, credentials);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const { id: parentId } = await readJson<{ id: string }>(await fetch(`${url}/admin/realms/todoke`, { headers }));
  const priority = String(Date.now());
  const key = {
    name: `rsa-${priority}`,
    providerId: "rsa-generated",
    providerType: "org.keycloak.keys.KeyProvider",
    parentId,
    config: { priority: [priority], enabled: ["true"], active: ["true"], keySize: ["2048"] },
  };
  const body = JSON.stringify(key);
  const response = await fetch(`${url}/admin/realms/todoke/components`, { method: "POST", headers, body });
  if (!response.ok) throw new Error(`Keycloak did not add a key: ${response.status} ${await response.text()}`);
}

async function logIn(url: string, credentials: Credentials): Promise<string> {
  const body = new URLSearchParams({ grant_type: "password", client_id: "admin-cli", ...credentials });
  const response = await fetch(`${url}/realms/master/protocol/openid-connect/token`, { method: "POST", body });
  return (await readJson<{ access_token: string }>(response)).access_token;
}

async function readJson<T>(response: Response): Promise<T> {
  if (!response.ok) throw new Error(`Keycloak responded ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}
