// The worker that all tabs of the page share: it follows ttmond once for all of
// them, since a browser keeps at most six connections to a server over HTTP. Tabs
// of different sessions see different things: each session has its own stream.

import type { Ask } from "./share";
import { type Update, watch } from "./watch";

class Stream {
  private readonly end = new AbortController();
  /** What each tab was sent and has not taken in yet. */
  private readonly tabs = new Map<MessagePort, Update | null>();
  private newest: Update | null = null;
  private came = 0;

  constructor(session: string) {
    void watch(session, this.end.signal, (n) => {
      this.newest = n;
      this.came = performance.now();
      for (const [tab, sent] of this.tabs) if (!sent) this.send(tab);
    });
  }

  join(tab: MessagePort): void {
    this.tabs.set(tab, null);
    if (this.newest) this.send(tab);
  }

  /** A tab that is slow misses what came meanwhile, and gets the newest. */
  taken(tab: MessagePort): void {
    const sent = this.tabs.get(tab);
    this.tabs.set(tab, null);
    if (sent && sent !== this.newest) this.send(tab);
  }

  /** Reports whether no listener is left; then it has ended. */
  leave(tab: MessagePort): boolean {
    this.tabs.delete(tab);
    if (this.tabs.size > 0) return false;
    this.end.abort();
    return true;
  }

  private send(tab: MessagePort): void {
    const n = this.newest!;
    this.tabs.set(tab, n);
    tab.postMessage("problem" in n ? n : { ...n, age: performance.now() - this.came });
  }
}

const streams = new Map<string, Stream>(); // by session

function serve(tab: MessagePort): void {
  let session = "";
  tab.onmessage = (m: MessageEvent<Ask>) => {
    const ask = m.data;
    if (ask.do === "join") {
      session = ask.session;
      if (!streams.has(session)) streams.set(session, new Stream(session));
      streams.get(session)!.join(tab);
    } else if (ask.do === "taken") {
      streams.get(session)?.taken(tab);
    } else if (streams.get(session)?.leave(tab)) {
      streams.delete(session);
    }
  };
}

addEventListener("connect", (e) => serve((e as MessageEvent).ports[0]!));
