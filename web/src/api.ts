// Questions to ttmond. Everything that the page shows comes through here.

const key = "ttmon-session";

// A session is kept for this tab and this origin, port included; a cookie would
// go to every port of the host.
let session = sessionStorage.getItem(key) ?? "";

/** Refused is an answer that is no success, with ttmond's own sentence. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export function headers(): HeadersInit {
  return session ? { "X-Ttmon-Session": session } : {};
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** get asks once more, a little later, where ttmond is busy with others. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    const r = await fetch(location.origin + "/api/v1/" + path, { headers: headers(), signal, cache: "no-store" });
    if (r.status === 429 && attempt < 5) {
      await pause(500 * (attempt + 1));
      continue;
    }
    if (!r.ok) throw await refusal(r);
    return (await r.json()) as T;
  }
}

export async function refusal(r: Response): Promise<Refused> {
  let text = "";
  try {
    text = ((await r.json()) as { error?: string }).error ?? "";
  } catch {
    // no JSON: the status says enough
  }
  return new Refused(r.status, text || `ttmond answers ${r.status} ${r.statusText}`);
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

/** One server-sent event. */
export interface Sent {
  event: string;
  id: number;
  data: string;
}

/**
 * Reads server-sent events until the stream ends. EventSource would be shorter,
 * and cannot send the session's header.
 */
export async function follow(path: string, signal: AbortSignal, each: (e: Sent) => void): Promise<void> {
  const r = await fetch(location.origin + "/api/v1/" + path, { headers: headers(), signal, cache: "no-store" });
  if (!r.ok || !r.body) throw await refusal(r);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const sent: Sent = { event: "message", id: 0, data: "" };
      for (const line of rest.slice(0, end).split("\n")) {
        if (line.startsWith("event: ")) sent.event = line.slice(7);
        else if (line.startsWith("id: ")) sent.id = Number(line.slice(4));
        else if (line.startsWith("data: ")) sent.data = line.slice(6);
      }
      rest = rest.slice(end + 2);
      each(sent);
    }
  }
}
