// Questions to ttmond. Everything that the page shows comes through here, but
// the snapshots: watch.ts follows those.

import { headers, refusal } from "./refused";

const key = "ttmon-session";

// A session is kept for this tab and this origin, port included; a cookie would
// go to every port of the host.
let session = sessionStorage.getItem(key) ?? "";

/** Who this tab is to ttmond; "" for anybody. */
export const sessionOf = (): string => session;

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** get retries a little later, up to five times, while ttmond is busy. */
export const get = async <T>(path: string, signal?: AbortSignal): Promise<T> => (await (await ask(path, signal)).json()) as T;

/** file asks for something that is saved. */
export const file = async (path: string): Promise<Blob> => (await ask(path)).blob();

async function ask(path: string, signal?: AbortSignal): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const r = await fetch(location.origin + "/api/v1/" + path, { headers: headers(session), signal, cache: "no-store" });
    if (r.status === 429 && attempt < 5) {
      await pause(500 * (attempt + 1));
      continue;
    }
    if (!r.ok) throw await refusal(r);
    return r;
  }
}

/** Gives the ticket in the address, if there is one, for a session. */
export async function redeem(): Promise<string> {
  if (!location.hash.startsWith("#ticket=")) return "";
  const ticket = new URLSearchParams(location.hash.slice(1)).get("ticket");
  if (!ticket) return "There is no ticket in the address.";
  history.replaceState(null, "", location.pathname + location.search);
  const r = await fetch(location.origin + "/api/v1/session", { method: "POST", body: JSON.stringify({ ticket }) });
  if (!r.ok) return (await refusal(r)).message;
  session = ((await r.json()) as { session: string }).session;
  sessionStorage.setItem(key, session);
  return "";
}

/** Ends this tab's session, and shows what a viewer without one sees. */
export async function signOut(): Promise<void> {
  await fetch(location.origin + "/api/v1/session", { method: "DELETE", headers: headers(session) }).catch(() => undefined); // it ends by itself, too
  sessionStorage.removeItem(key);
  location.reload();
}
