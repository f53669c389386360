// Follows ttmond's snapshots over one connection.

import { headers, refusal, Refused } from "./refused";

/** A snapshot with its words, in JSON, and how long ago it came in ms; or why none comes. */
export type Update = { id: number; snapshot: string; said: string | null; age: number } | { problem: string };

/** One server-sent event. */
interface Sent {
  event: string;
  id: number;
  data: string;
}

/** Tells of every snapshot, and connects again whenever the connection breaks. */
export async function watch(session: string, signal: AbortSignal, tell: (n: Update) => void): Promise<void> {
  let wait = 500;
  while (!signal.aborted) {
    let said: string | null = null;
    let problem = "ttmond has closed the connection";
    try {
      await events("watch?said=1", session, signal, (e) => {
        if (e.event === "said") said = e.data;
        if (e.event !== "snapshot") return;
        wait = 500;
        tell({ id: e.id, snapshot: e.data, said, age: 0 });
      });
    } catch (err) {
      problem = err instanceof Refused ? err.message : "ttmond does not answer";
    }
    if (signal.aborted) return;
    tell({ problem });
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 5000);
  }
}

/**
 * Reads server-sent events until the stream ends. EventSource would be shorter,
 * and cannot send the session's header.
 */
async function events(path: string, session: string, signal: AbortSignal, each: (e: Sent) => void): Promise<void> {
  const r = await fetch(location.origin + "/api/v1/" + path, { headers: headers(session), signal, cache: "no-store" });
  if (!r.ok || !r.body) throw await refusal(r);
  const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done || signal.aborted) return;
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
