// The state that all views share: the snapshot shown, how fresh it is, and
// whether it is now or a past moment.

import { useEffect, useReducer } from "preact/hooks";
import { get, redeem, sessionOf } from "./api";
import { currentRoute, onRoute } from "./route";
import { follow } from "./share";
import type { Me, Metric, Said } from "./answers";
import type { Snapshot, Words } from "./types";
import type { Update } from "./watch";

export type Link = "connecting" | "live" | "lost" | "past";

export interface State {
  snap: Snapshot | null;
  said: Said | null;
  link: Link;
  /** performance.now() when the last snapshot came. */
  received: number;
  /** Why there is no connection, or no such moment. */
  problem: string;
  /** Snapshots of the last minute or so that this viewer was too slow for. */
  skipped: number;
  /** performance.now() when the last of them was missed. */
  missed: number;
  words: Words | null;
  metrics: Metric[];
  me: Me | null;
  /** The past moment that is shown; "" for now. */
  at: string;
  /** There is no host behind this page, only a fleet. */
  fleetOnly: boolean;
  /** It is no host but a recording that is played. */
  recording: boolean;
  /** The time that a recording covers, in Unix seconds. */
  span: [number, number] | null;
  /** What ttmond can be asked; null until it has said so. */
  calls: string[] | null;
}

export const state: State = {
  snap: null,
  said: null,
  link: "connecting",
  received: 0,
  problem: "",
  skipped: 0,
  missed: 0,
  words: null,
  metrics: [],
  me: null,
  at: "",
  fleetOnly: false,
  recording: false,
  span: null,
  calls: null,
};

/** Whether ttmond answers a call; one that has not said so may. */
export const offers = (call: string): boolean => state.calls?.includes(call) ?? true;

/**
 * The time where the host is, in Unix seconds: the browser's clock may go
 * wrong, and the now of a recording is long ago.
 */
export const now = (): number => Date.now() / 1000 + skew;

let skew = 0; // of the host's clock against the browser's, seconds

const listeners = new Set<() => void>();

export function changed(part: Partial<State>): void {
  Object.assign(state, part);
  for (const l of listeners) l();
}

/** Re-renders whenever the state changes. */
export function useStore(): State {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    const listener = () => again(0);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

/** Called with every live snapshot. */
export function onSnapshot(f: (s: Snapshot) => void): () => void {
  let last: Snapshot | null = null;
  const listener = () => {
    if (state.snap && state.snap !== last && state.link === "live") f((last = state.snap));
  };
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

let stop: AbortController | null = null;
let lastID = 0;
let asked = 0; // performance.now() when the connection was asked for

/** Follows ttmond until disconnect. */
function connect(): void {
  disconnect();
  stop = new AbortController();
  lastID = 0;
  asked = performance.now();
  follow(sessionOf(), stop.signal, take);
}

function take(n: Update): void {
  if ("problem" in n) {
    lastID = 0;
    changed({ link: "lost", problem: n.problem });
    return;
  }
  const missed = lastID > 0 && n.id > lastID + 1 ? n.id - lastID - 1 : 0;
  lastID = n.id;
  const here = performance.now();
  const recent = here - state.missed < 60_000 ? state.skipped : 0;
  const snap = JSON.parse(n.snapshot) as Snapshot;
  skew = (Date.parse(snap.time) + n.age - Date.now()) / 1000;
  changed({
    snap,
    said: n.said === null ? null : (JSON.parse(n.said) as Said),
    link: "live",
    received: here - n.age,
    problem: "",
    skipped: recent + missed,
    missed: missed > 0 ? here : state.missed,
  });
}

function disconnect(): void {
  stop?.abort();
  stop = null;
}

/** Shows a past moment, or now. */
async function show(at: string): Promise<void> {
  if (at === "") {
    if (state.at !== "" || !stop) {
      changed({ at: "", link: "connecting", problem: "" });
      connect();
    }
    return;
  }
  disconnect();
  changed({ at, link: "past" });
  try {
    const moment = "at=" + encodeURIComponent(at);
    const [snap, said] = await Promise.all([get<Snapshot>("past?" + moment), get<Said>("said?" + moment)]);
    if (state.at === at) changed({ snap, said, problem: "" });
  } catch (err) {
    if (state.at === at) changed({ problem: err instanceof Error ? err.message : String(err) });
  }
}

/** Whether what is shown may be old: then it is greyed out, with its age. */
export function isStale(s: State): boolean {
  return s.link === "lost" || (s.link === "live" && performance.now() - s.received > 6000);
}

/** How old the snapshot is, in seconds. */
export function age(s: State): number {
  return s.received ? (performance.now() - s.received) / 1000 : 0;
}

/** Starts refreshing. A hidden page does not. */
export async function start(): Promise<void> {
  const problem = await redeem().catch(() => "");
  // An address with a ticket that is pasted into a page that is open already.
  window.addEventListener("hashchange", () => {
    if (location.hash.startsWith("#ticket=")) void redeem().then((why) => (why ? changed({ problem: why }) : location.reload()));
  });
  get<Words>("words").then((words) => changed({ words })).catch(() => {});
  get<{ metrics: Metric[] }>("metrics").then((m) => changed({ metrics: m.metrics })).catch(() => {});
  const version = await get<{ calls: string[]; recording?: boolean }>("version").catch(() => null);
  if (version) changed({ calls: version.calls, recording: version.recording === true });
  if (version && !version.calls.includes("/v1/watch")) {
    changed({ fleetOnly: true, link: "past" });
    return;
  }
  if (state.recording) {
    const seconds = (text: string) => Date.parse(text) / 1000;
    get<{ oldest: string; newest: string }>("past/span").then((x) => changed({ span: [seconds(x.oldest), seconds(x.newest)] })).catch(() => {});
  }
  get<Me>("me").then((me) => changed({ me })).catch(() => {});
  if (problem) changed({ problem });
  const follows = () => void show(currentRoute().query.get("at") ?? "");
  onRoute(follows);
  follows();
  const seen = () => {
    if (state.at !== "") return;
    if (document.hidden) disconnect();
    else if (!stop) connect();
  };
  document.addEventListener("visibilitychange", seen);
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", seen); // also when it is taken out of the browser's cache
  setInterval(() => {
    if (!isStale(state) && state.link !== "connecting") return;
    if (stop && performance.now() - Math.max(asked, state.received) > 15_000) connect();
    changed({});
  }, 1000);
}
