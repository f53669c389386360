// The last hour of each device, for the sparklines and the charts of the first
// view: from the history once, then from what comes in, so that a page that is
// open costs ttmond nothing but its snapshots. Of a past moment: the hour before.

import { get } from "./api";
import { changed, now, offers, onSnapshot, state } from "./store";
import type { Bound, RangeAnswer } from "./answers";
import type { Snapshot } from "./types";

const step = 15; // seconds
export const length = 3600;
const most = length / step + 1;

export const kinds = { power: "power.draw", temperature: "temperature.asic", dram: "memory.used" } as const;
export type Kind = keyof typeof kinds;

export interface Trail {
  values: (number | null)[];
  bounds: number[]; // 0 exact, 1 at least, 2 unsure
}

interface Hour {
  of: string; // the past moment, "" for now
  ended: boolean; // that moment is in it
  times: number[];
  trails: Record<Kind, Map<string, Trail>>;
}

const none = (of: string): Hour => ({ of, ended: false, times: [], trails: { power: new Map(), temperature: new Map(), dram: new Map() } });

let hour = none("");
let asked: string | null = null;
let following = false;

/** The hour that ends with the moment that is shown. */
export function lastHour(): Hour {
  if (asked !== state.at && state.snap) ask(state.at);
  // A past moment is the end of its hour, as soon as it has come.
  if (state.at && !hour.ended && hour.times.length > 0 && state.snap && Math.abs(Date.parse(state.snap.time) - Date.parse(state.at)) < 60_000) {
    hour.ended = true;
    append(state.snap);
  }
  return hour;
}

export function trail(kind: Kind, bus: string): Trail {
  return lastHour().trails[kind].get(bus) ?? { values: [], bounds: [] };
}

function ask(of: string): void {
  asked = of;
  hour = none(of);
  if (!following) {
    following = true;
    onSnapshot(add);
  }
  if (!offers("/v1/range")) return;
  const end = of ? Date.parse(of) : now() * 1000;
  const q = new URLSearchParams({
    metric: Object.values(kinds).join(","),
    start: new Date(end - length * 1000).toISOString(),
    end: new Date(end).toISOString(),
    step: step + "s",
  });
  get<RangeAnswer>("range?" + q)
    .then((a) => asked === of && take(of, a))
    .catch(() => {
      // no history: the lines begin now
    });
}

function take(of: string, a: RangeAnswer): void {
  hour = none(of);
  hour.times = a.times.slice(-most);
  for (const s of a.series) {
    const kind = (Object.keys(kinds) as Kind[]).find((k) => kinds[k] === s.metric);
    if (kind) hour.trails[kind].set(s.bus_id, { values: s.values.slice(-most), bounds: (s.bounds ?? []).slice(-most).map((b) => b ?? 0) });
  }
  changed({});
}

const boundNumber: Record<Bound, number> = { exact: 0, at_least: 1, unsure: 2 };

/** Puts the newest snapshot at the end of the hour. */
function add(snap: Snapshot): void {
  const at = Date.parse(snap.time) / 1000;
  const last = hour.times.at(-1) ?? 0;
  if (hour.of !== "" || at < last) return;
  if (last && at - last > 4 * step) {
    asked = null; // there was a gap: the history knows more
    return;
  }
  append(snap);
  if (hour.times.length <= most) return;
  hour.times.shift();
  for (const map of Object.values(hour.trails)) {
    for (const t of map.values()) {
      t.values.shift();
      t.bounds.shift();
    }
  }
}

function append(snap: Snapshot): void {
  const at = Date.parse(snap.time) / 1000;
  const fresh = hour.times.length < 2 || at - hour.times.at(-2)! >= step;
  const last = hour.times.at(-1) ?? 0;
  if (fresh && last && at - last > 2 * step + 5) {
    hour.times.push(last + step); // nothing came in between: a gap, and no line over it
    snap.devices.forEach((d) => (Object.keys(kinds) as Kind[]).forEach((k) => put(k, d.bus_id, null, 0)));
  }
  if (fresh) hour.times.push(at);
  else hour.times[hour.times.length - 1] = at;
  snap.devices.forEach((d, i) => {
    const dram = state.said?.devices[i]?.pools["dram"];
    put("power", d.bus_id, d.power_w, 0);
    put("temperature", d.bus_id, d.temperature_c, 0);
    put("dram", d.bus_id, dram?.bytes == null ? null : dram.bytes / 2 ** 20, boundNumber[dram?.bound ?? "exact"]);
  });
}

function put(kind: Kind, bus: string, v: number | null, bound: number): void {
  const map = hour.trails[kind];
  const t = map.get(bus) ?? { values: [], bounds: [] };
  map.set(bus, t);
  const at = hour.times.length - 1;
  while (t.values.length < at) t.values.push(null);
  while (t.bounds.length < at) t.bounds.push(0);
  t.values[at] = v;
  t.bounds[at] = bound;
}
