// The last hour of each device for the sparklines: from the history once, then
// from what comes in.

import { get } from "./api";
import { onSnapshot, state } from "./store";
import type { RangeAnswer } from "./types";

const step = 30; // seconds
const points = 120;

type Trail = Map<string, (number | null)[]>;

const trails: Record<"power" | "temperature" | "dram", Trail> = { power: new Map(), temperature: new Map(), dram: new Map() };
const names = { "power.draw": "power", "temperature.asic": "temperature", "memory.used": "dram" } as const;
let last = 0;
let begun = false;

export type Kind = keyof typeof trails;

export function trail(kind: Kind, bus: string): (number | null)[] {
  begin();
  return trails[kind].get(bus) ?? [];
}

function begin(): void {
  if (begun) return;
  begun = true;
  const end = new Date();
  const q = new URLSearchParams({
    metric: Object.keys(names).join(","),
    start: new Date(end.getTime() - points * step * 1000).toISOString(),
    end: end.toISOString(),
    step: step + "s",
  });
  get<RangeAnswer>("range?" + q)
    .then((a) => {
      for (const s of a.series) {
        const kind = names[s.metric as keyof typeof names];
        if (kind) trails[kind].set(s.bus_id, s.values.slice(-points));
      }
    })
    .catch(() => {
      // no history: the lines begin now
    });
  onSnapshot((snap) => {
    const now = Date.parse(snap.time) / 1000;
    const fresh = now - last >= step;
    if (fresh) last = now;
    snap.devices.forEach((d, i) => {
      const dram = state.said?.devices[i]?.pools["dram"]?.bytes ?? null;
      put("power", d.bus_id, d.power_w, fresh);
      put("temperature", d.bus_id, d.temperature_c, fresh);
      put("dram", d.bus_id, dram === null ? null : dram / 2 ** 20, fresh);
    });
  });
}

function put(kind: Kind, bus: string, v: number | null, fresh: boolean): void {
  const old = trails[kind].get(bus) ?? [];
  if (fresh || old.length === 0) trails[kind].set(bus, [...old.slice(1 - points), v]);
  else old[old.length - 1] = v;
}
