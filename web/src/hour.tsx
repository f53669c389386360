// The hour before the moment that is shown, as charts: each device a line, or
// all together where they are many.

import { Chart, type ChartData, type Line } from "./chart";
import { span } from "./figures";
import { ofDevices, useEvents } from "./metricchart";
import { Panel } from "./parts";
import { now, type State } from "./store";
import { type Kind, lastHour, length, type Trail } from "./trail";
import type { Device } from "./types";

/** So many devices have a line each. */
const each = 8;

interface Shown {
  kind: Kind;
  title: string;
  all: string; // its title, and the name of its line, where devices are many
  line: string;
  unit: string;
  join: (known: number[]) => number;
}

const sum = (known: number[]) => known.reduce((a, b) => a + b, 0);

const shown: Shown[] = [
  { kind: "power", title: "Power", all: "Power, all devices", line: "all devices", unit: "W", join: sum },
  { kind: "temperature", title: "Temperature", all: "Temperature, the hottest", line: "hottest device", unit: "C", join: (known) => Math.max(...known) },
  { kind: "dram", title: "DRAM in use", all: "DRAM in use, all devices", line: "all devices", unit: "MiB", join: sum },
];

export function HourCharts(p: { s: State }) {
  const hour = lastHour();
  const devices = p.s.snap!.devices;
  const end = hour.times.at(-1) ?? 0;
  // Asked for again every half a minute, and when another moment is shown.
  const last = end || Math.floor(now());
  const until = p.s.at ? last : Math.ceil(last / 30) * 30;
  const { events } = useEvents({ name: "hour", start: until - length, end: until, moving: !p.s.at }, "");
  if (hour.times.length < 2) return null;
  // What is known, at least five minutes of it.
  const known = hour.times.find((_, i) => shown.some((x) => [...hour.trails[x.kind].values()].some((t) => (t.values[i] ?? null) !== null))) ?? end;
  const start = Math.max(end - length, Math.min(known, end - 300));
  const marks = ofDevices(events, devices.map((d) => d.bus_id));
  const name = end - start > length - 120 ? "hour" : span(end - start);
  return (
    <Panel title={p.s.at ? `The ${name} before` : `The last ${name}`}>
      <div class="charts three">
        {shown.map((x) => {
          const few = devices.length <= each;
          const trails = hour.trails[x.kind];
          const lines = few ? devices.flatMap((d) => lineOf(d, devices.length, trails.get(d.bus_id))) : [joined(x, devices, trails, hour.times.length)];
          const data: ChartData = { times: [...hour.times], lines, unit: x.unit, decimals: 0 };
          const open = lines.some((l) => l.open?.some((o, i) => o && l.values[i] !== null && hour.times[i]! >= start));
          return <Chart key={x.kind} events={marks} title={few ? x.title : x.all} remark={open ? "hatched: a device is unknown" : ""} data={data} start={start} end={end} zero />;
        })}
      </div>
    </Panel>
  );
}

function lineOf(d: Device, of: number, t: Trail | undefined): Line[] {
  return t ? [{ name: of > 1 ? `${d.index} ${d.board ?? d.arch}` : (d.board ?? d.arch), values: [...t.values], bounds: [...t.bounds] }] : [];
}

/** All devices in one line. Where one of them is not known it is at least so much, and no dip. */
function joined(x: Shown, devices: Device[], trails: Map<string, Trail>, n: number): Line {
  const values: (number | null)[] = [];
  const bounds: number[] = [];
  const open: boolean[] = [];
  for (let i = 0; i < n; i++) {
    const known: number[] = [];
    let bound = 0;
    for (const d of devices) {
      const t = trails.get(d.bus_id);
      const v = t?.values[i] ?? null;
      if (v !== null) known.push(v);
      bound = Math.max(bound, v === null ? 1 : (t?.bounds[i] ?? 0));
    }
    values.push(known.length > 0 ? x.join(known) : null);
    bounds.push(bound);
    open.push(known.length < devices.length);
  }
  return { name: x.line, values, bounds, open };
}
