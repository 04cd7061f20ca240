/** Calls of the shop's own back-end, which are safe to repeat: it is asked again until it has answered. */

export interface ShopAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, string>>;
}

const pauses = [250, 500, 1_000, 2_000, 4_000, 4_000, 4_000, 4_000];

/** Also when the back-end dies in the middle. `onRetry` is called before the second attempt. */
export async function callShop(path: string, body?: object, onRetry?: () => void): Promise<ShopAnswer> {
  for (const [index, pauseMs] of pauses.entries()) {
    const answer = await attempt(path, body);
    if (answer && answer.status < 500) return answer;
    if (index === 0) onRetry?.();
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return { status: 503, body: { detail: "the shop does not answer" } };
}

async function attempt(path: string, body?: object): Promise<ShopAnswer | undefined> {
  const headers = { "content-type": "application/json", "x-todoke-request": "1" };
  try {
    const response = await fetch(`/shop/${path}`, body ? { method: "POST", headers, body: JSON.stringify(body) } : {});
    return { status: response.status, body: await response.json() };
  } catch {
    return undefined;
  }
}
