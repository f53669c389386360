// A chart over time: lines, events, a cursor that all charts share, zoom by
// dragging, CSV and PNG.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { clock, isBytes, markOf, unitBytes, value } from "./figures";
import { byteTicks, timeLabels, timeSpace } from "./ticks";
import { save } from "./parts";
import { zoom } from "./range";
import { colour, lineColour, lineDash } from "./theme";
import type { Event } from "./types";

export interface Line {
  name: string;
  values: (number | null)[];
  bounds?: (number | null)[];
  /** Where a part of a sum is not known: the line is what is known, the truth is above it. */
  open?: boolean[];
}

export interface ChartData {
  times: number[];
  lines: Line[];
  unit: string;
  decimals: number;
}

interface Props {
  title: string;
  help?: string;
  note?: string; // beside the title
  remark?: string; // below the chart
  data: ChartData | null;
  events?: Event[];
  limit?: number | null;
  zero?: boolean; // begins at 0 and reaches the limit
  problem?: string;
  sync?: string;
  height?: number;
  start: number;
  end: number;
}

/** A doubtful part of a line is dashed: two series, with a point in common. */
function split(line: Line): { sure: (number | null)[]; unsure: (number | null)[] | null } {
  const b = line.bounds;
  if (!b || !b.some((x) => x)) return { sure: line.values, unsure: null };
  return {
    sure: line.values.map((v, i) => (b[i] && b[i + 1] !== 0 && b[i - 1] !== 0 ? null : b[i] ? null : v)),
    unsure: line.values.map((v, i) => (b[i] || b[i + 1] || b[i - 1] ? v : null)),
  };
}

export function Chart(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [dress, setDress] = useState(0); // counts changes of the theme
  const height = p.height ?? (innerWidth >= 1900 ? 240 : 180);
  const shape = p.data ? p.data.lines.map((l) => l.name + (split(l).unsure ? "~" : "")).join("\n") + p.data.unit : "";
  const live = useRef(p);
  live.current = p;
  const series = useMemo(() => {
    const out: uPlot.AlignedData = [[]];
    if (!p.data) return out;
    out[0] = p.data.times;
    for (const l of p.data.lines) {
      const { sure, unsure } = split(l);
      out.push(sure);
      if (unsure) out.push(unsure);
    }
    return out;
  }, [p.data]);

  useEffect(() => {
    const again = () => setDress((n) => n + 1);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    window.addEventListener("themechange", again);
    dark.addEventListener("change", again);
    return () => {
      window.removeEventListener("themechange", again);
      dark.removeEventListener("change", again);
    };
  }, []);

  useEffect(() => {
    if (!box.current || !p.data) return;
    const made = new uPlot(options(live, setCursor, box.current.clientWidth, height), series, box.current);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: box.current?.clientWidth ?? 300, height }));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape, dress, height]);

  useEffect(() => {
    plot.current?.setData(series, false);
    if (p.end > p.start) plot.current?.setScale("x", { min: p.start, max: p.end });
  }, [series, p.start, p.end, p.events]);

  const at = cursor ?? lastKnown(p.data);
  return (
    <figure class="chart" aria-label={p.title}>
      <figcaption>
        <b title={p.help}>{p.title}</b>
        <span class="when">{cursor !== null && p.data ? told(p, p.data.times[cursor]!) : p.note}</span>
        <span class="tools">
          <button onClick={() => p.data && save(p.title + ".csv", csv(p.data))} disabled={!p.data}>
            CSV
          </button>
          <button onClick={() => plot.current && png(p.title, plot.current)} disabled={!p.data}>
            PNG
          </button>
        </span>
      </figcaption>
      {p.problem && <p class="empty">{p.problem}</p>}
      {p.data && p.data.lines.length === 0 && <p class="empty">Nothing is known of this time.</p>}
      <div ref={box} class="plot" />
      {p.data && p.data.lines.length > 0 && <Legend data={p.data} at={at} remark={p.remark} />}
    </figure>
  );
}

/** The time under the cursor, and the event that is marked there. */
function told(p: Props, time: number): string {
  const near = (p.end - p.start) / 120;
  const distance = (e: Event) => Math.abs(Date.parse(e.time) / 1000 - time);
  const [event] = (p.events ?? []).filter((e) => distance(e) < near).sort((x, y) => distance(x) - distance(y));
  return clock(new Date(time * 1000)) + (event ? ` · ${event.text}` : "");
}

function Legend(p: { data: ChartData; at: number | null; remark?: string }) {
  return (
    <ul class={"legend" + (p.data.lines.length > 3 ? " many" : "")}>
      {p.data.lines.map((l, i) => {
        const v = p.at === null ? null : (l.values[p.at] ?? null);
        return (
          <li key={l.name}>
            <i style={{ background: lineColour(i) }} aria-hidden="true" /> {l.name}{" "}
            <b class="num">{v === null ? "–" : markOf(p.at === null ? null : l.bounds?.[p.at]) + value(v, p.data.unit, p.data.decimals)}</b>
          </li>
        );
      })}
      {p.remark && <li>{p.remark}</li>}
    </ul>
  );
}

function lastKnown(data: ChartData | null): number | null {
  if (!data) return null;
  for (let i = data.times.length - 1; i >= 0; i--) {
    if (data.lines.some((l) => l.values[i] !== null && l.values[i] !== undefined)) return i;
  }
  return null;
}

function options(live: { current: Props }, setCursor: (i: number | null) => void, width: number, height: number): uPlot.Options {
  const data = live.current.data!;
  const grid = { stroke: colour("grid"), width: 1 };
  const axis = { stroke: colour("muted"), grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
  const held = isBytes(data.unit) && !data.unit.includes("/");
  const series: uPlot.Series[] = [{}];
  data.lines.forEach((l, i) => {
    // What is held stays so until it changes: no slope between two samples.
    const base: uPlot.Series = { label: l.name, stroke: lineColour(i), width: 1.5, points: { show: false }, paths: held ? uPlot.paths.stepped!({ align: 1 }) : undefined };
    const ground = data.lines.length === 1 ? faint(lineColour(i)) : undefined;
    series.push({ ...base, dash: lineDash(i), fill: ground });
    if (split(l).unsure) series.push({ ...base, dash: [4, 3], fill: ground });
  });
  return {
    width: Math.max(width, 120),
    height,
    series,
    legend: { show: false },
    cursor: { sync: { key: live.current.sync ?? "time" }, drag: { x: true, y: false, setScale: false }, points: { size: 5 } },
    scales: {
      // The range that is asked for, from the first stroke on, whatever is known of it.
      x: { time: true, range: (_u, min, max) => (live.current.end > live.current.start ? [live.current.start, live.current.end] : [min, max]) },
      y: {
        range: (_u, min, max) => {
          const limit = live.current.limit ?? null;
          return live.current.zero && limit ? [0, Math.max(limit * 1.15, max ?? 0)] : around(min, max, limit ?? (held && !max ? 2 ** 30 / unitBytes(data.unit) : null), held || Boolean(live.current.zero));
        },
      },
    },
    axes: [
      { ...axis, space: timeSpace, values: timeLabels, size: (_u, values) => (values?.some((v) => v.includes("\n")) ? 42 : 28) },
      {
        ...axis,
        size: (_u, values) => Math.max(52, 14 + 6.4 * Math.max(0, ...(values ?? []).map((v) => v.length))),
        ...(isBytes(data.unit) ? { splits: (_u, _axis, min, max) => byteTicks(min, max, data.unit, height) } : { space: 34 }),
        values: (_u, ticks) => ticks.map((v) => value(v, data.unit, 0)),
      },
    ],
    hooks: {
      setCursor: [(u) => setCursor(u.cursor.idx ?? null)],
      setSelect: [
        (u) => {
          if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      drawAxes: [(u) => drawUnknown(u, live.current, held)],
      draw: [(u) => drawMarks(u, live.current)],
    },
  };
}

/** A colour as the ground below a line. */
const faint = (c: string): string => (/^#[0-9a-f]{6}$/i.test(c) ? c + "1c" : "transparent");

/** From 0 where that is near or means nothing, with room above. */
function around(min: number | null, max: number | null, limit: number | null, zero: boolean): [number, number] {
  if (min === null || max === null) return [0, limit ?? 1];
  if (max - min <= Math.abs(max) * 1e-6) return [min >= 0 ? 0 : min - 1, Math.max(max * 1.25, limit ?? 0) || 1];
  const low = min >= 0 && (zero || min < max * 0.8) ? 0 : min - (max - min || 1) * 0.1;
  const high = limit !== null && limit > max && limit < max * 3 ? limit * 1.15 : max + (max - low || 1) * 0.12;
  return [Math.max(low, min >= 0 ? 0 : low), high];
}

/** Above a sum of which a part is not known there is hatching, as wherever something is not known. */
function drawUnknown(u: uPlot, p: Props, held: boolean): void {
  const c = u.ctx;
  const { left, top, width, height } = u.bbox;
  const times = p.data?.times ?? [];
  const x = (i: number) => Math.min(Math.max(u.valToPos(times[i] ?? p.end, "x", true), left), left + width);
  const y = (v: number) => u.valToPos(v, "y", true);
  for (const line of p.data?.lines ?? []) {
    c.save();
    c.beginPath();
    line.open?.forEach((open, i) => {
      const v = line.values[i] ?? null;
      if (!open || v === null) return;
      // Between two points a line slopes, and what is held does not.
      const before = held ? v : (line.values[i - 1] ?? v);
      const after = held ? v : (line.values[i + 1] ?? v);
      const from = x(held || i === 0 ? i : i - 1);
      c.moveTo(from, top);
      c.lineTo(from, y(before));
      c.lineTo(x(i), y(v));
      c.lineTo(x(i + 1), y(after));
      c.lineTo(x(i + 1), top);
      c.closePath();
    });
    c.clip();
    c.strokeStyle = colour("edge");
    c.lineWidth = devicePixelRatio;
    c.beginPath();
    for (let at = left - height; at < left + width; at += 6 * devicePixelRatio) {
      c.moveTo(at, top + height);
      c.lineTo(at + height, top);
    }
    c.stroke();
    c.restore();
  }
}

/** Events as upright lines, the limit as a level one. */
function drawMarks(u: uPlot, p: Props): void {
  const c = u.ctx;
  const { left, top, width, height } = u.bbox;
  c.save();
  c.beginPath();
  c.rect(left, top, width, height);
  c.clip();
  c.lineWidth = devicePixelRatio;
  for (const e of p.events ?? []) {
    const x = u.valToPos(Date.parse(e.time) / 1000, "x", true);
    if (x < left || x > left + width) continue;
    c.strokeStyle = colour(e.level === "critical" ? "bad" : e.level === "warning" ? "warn" : "muted");
    c.setLineDash(e.level === "info" ? [2 * devicePixelRatio, 4 * devicePixelRatio] : []);
    c.globalAlpha = e.level === "info" ? 0.6 : 0.9;
    c.beginPath();
    c.moveTo(x, top);
    c.lineTo(x, top + height);
    c.stroke();
  }
  if (p.limit && p.data?.lines.length) {
    c.globalAlpha = 1;
    const y = u.valToPos(p.limit, "y", true);
    c.setLineDash([6 * devicePixelRatio, 4 * devicePixelRatio]);
    c.strokeStyle = colour("muted");
    c.beginPath();
    c.moveTo(left, y);
    c.lineTo(left + width, y);
    c.stroke();
    c.fillStyle = colour("muted");
    c.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    c.textAlign = "right";
    c.textBaseline = "bottom";
    c.fillText(`limit ${value(p.limit, p.data?.unit ?? "", 0)}`, left + width - 3 * devicePixelRatio, y - 2 * devicePixelRatio);
  }
  c.restore();
}

function csv(data: ChartData): Blob {
  const quote = (s: string) => `"${s.replaceAll('"', '""')}"`;
  const head = ["time", ...data.lines.flatMap((l) => [quote(`${l.name} (${data.unit})`), ...(l.bounds ? [quote(l.name + " bound")] : [])])];
  const names = ["exact", "at_least", "unsure"];
  const rows = data.times.map((t, i) =>
    [
      new Date(t * 1000).toISOString(),
      ...data.lines.flatMap((l) => [l.values[i] ?? "", ...(l.bounds ? [l.values[i] === null ? "" : (names[l.bounds[i] ?? 0] ?? "")] : [])]),
    ].join(","),
  );
  return new Blob([[head.join(","), ...rows].join("\n") + "\n"], { type: "text/csv" });
}

/** The picture as it is, with its title, on the page's own ground. */
function png(title: string, u: uPlot): void {
  const from = u.ctx.canvas;
  const room = 26 * devicePixelRatio;
  const to = document.createElement("canvas");
  to.width = from.width;
  to.height = from.height + room;
  const c = to.getContext("2d")!;
  c.fillStyle = colour("panel");
  c.fillRect(0, 0, to.width, to.height);
  c.drawImage(from, 0, room);
  c.fillStyle = colour("text");
  c.font = `${14 * devicePixelRatio}px system-ui, sans-serif`;
  c.fillText(`${title} · ${document.title}`, 8 * devicePixelRatio, 18 * devicePixelRatio);
  to.toBlob((b) => b && save(title + ".png", b));
}
