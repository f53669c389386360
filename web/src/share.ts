// The way of a tab to the worker that follows ttmond for all tabs (stream.ts).

import { type Update, watch } from "./watch";

/** What a tab asks of the worker. */
export type Ask = { do: "join"; session: string } | { do: "taken" } | { do: "leave" };

/** Tells of every snapshot until the signal; where workers are not shared, over a connection of its own. */
export function follow(session: string, signal: AbortSignal, tell: (n: Update) => void): void {
  const alone = () => void watch(session, signal, tell);
  if (!("SharedWorker" in window)) return alone();
  const worker = new SharedWorker(location.origin + "/stream.js");
  const ask = (a: Ask) => worker.port.postMessage(a);
  worker.onerror = () => !signal.aborted && alone(); // it could not be loaded
  worker.port.onmessage = (m: MessageEvent<Update>) => {
    if (signal.aborted) return;
    tell(m.data);
    ask({ do: "taken" });
  };
  ask({ do: "join", session });
  signal.addEventListener("abort", () => {
    ask({ do: "leave" });
    worker.port.close();
  });
}
