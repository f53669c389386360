// A chart over time: lines, events, a cursor that all charts share, zoom by
// dragging or with the keyboard, CSV and PNG.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { clock, isBytes, markOf, moment, span, unitBytes, tick, value } from "./figures";
import { byteTicks, elapsed, elapsedTicks, timeLabels, timeSpace } from "./ticks";
import { save } from "./parts";
import { zoom } from "./range";
import { now, state } from "./store";
import { colour, lineColour, lineDash } from "./theme";
import type { Event } from "./answers";

export interface Line {
  name: string;
  values: (number | null)[];
  bounds?: (number | null)[];
  /** Where a part of a sum is not known: the line is what is known, the truth is above it. */
  open?: boolean[];
}

export interface ChartData {
  times: number[];
  /** Where there is no sample: the host was away. */
  away?: boolean[];
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
  /** The axis is the time since this moment, not the time of day: of things that were at different times. */
  since?: number;
}

/**
 * A line is drawn twice: all of it in a light stroke, and what is exact on top in
 * a strong one. So doubt is seen as a lighter line, however often it comes and
 * goes, and never as dashes.
 */
export function layers(line: Line): { all: (number | null)[]; exact: (number | null)[] | null } {
  const b = line.bounds;
  if (!b || !b.some((x, i) => x && line.values[i] !== null)) return { all: line.values, exact: null };
  return { all: line.values, exact: line.values.map((v, i) => (b[i] ? null : v)) };
}

export function Chart(p: Props) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const [dress, setDress] = useState(0); // counts changes of the theme
  const height = p.height ?? (innerWidth >= 1900 ? 240 : 180);
  const shape = p.data ? p.data.lines.map((l) => l.name + (layers(l).exact ? "~" : "")).join("\n") + p.data.unit : "";
  const live = useRef(p);
  live.current = p;
  const series = useMemo(() => {
    const out: uPlot.AlignedData = [[]];
    if (!p.data) return out;
    out[0] = p.data.times;
    for (const l of p.data.lines) {
      const { all, exact } = layers(l);
      out.push(all);
      if (exact) out.push(exact);
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

  return (
    <figure class="chart" aria-label={p.title}>
      <figcaption>
        <b title={p.help}>{p.title}</b>
        <span class="when">{cursor !== null && p.data ? told(p, p.data.times[cursor]!) : p.note}</span>
        <span class="tools">
          <button onClick={() => p.data && save(fileName(p, "csv"), csv(p.data, p.since))} disabled={!p.data}>
            CSV
          </button>
          <button onClick={() => plot.current && png(p, plot.current)} disabled={!p.data}>
            PNG
          </button>
        </span>
      </figcaption>
      {p.problem && <p class="empty">{p.problem}</p>}
      {p.data && p.data.lines.length === 0 && <p class="empty">No data for this period.</p>}
      <div
        ref={box}
        class="plot"
        {...(p.data && p.data.lines.length > 0 && {
          tabIndex: 0,
          role: "slider",
          "aria-label": p.title + " over time",
          "aria-valuemin": 0,
          "aria-valuemax": p.data.times.length,
          "aria-valuenow": (cursor ?? -1) + 1,
          "aria-valuetext": cursor === null ? "" : reading(p, cursor),
        })}
        onKeyDown={(e) => plot.current && press(e, plot.current, p, cursor)}
        onBlur={() => plot.current && cursor !== null && moveCursor(plot.current, -10, -10)}
      />
      {p.data && p.data.lines.length > 0 && <Legend data={p.data} at={cursor} end={p.end} remark={p.remark} />}
    </figure>
  );
}

/** The values at a time, in a sentence. */
function reading(p: Props, at: number): string {
  const d = p.data!;
  const values = d.lines.map((l) => `${l.name} ${l.values[at] == null ? "not known" : markOf(l.bounds?.[at]) + value(l.values[at]!, d.unit, d.decimals)}`);
  return [told(p, d.times[at]!), ...values].join(", ");
}

/** Moves the cursor of all charts. The types of uPlot lack the last argument: that the others follow. */
function moveCursor(u: uPlot, left: number, top: number): void {
  (u.setCursor as (at: { left: number; top: number }, fire: boolean, others: boolean) => void)({ left, top }, true, true);
}

/** The cursor of all charts, by the keyboard: ← → a sample, with Shift ten, Home, End; + − zoom around it. */
function press(e: KeyboardEvent, u: uPlot, p: Props, cursor: number | null): void {
  const times = p.data?.times ?? [];
  // From the first time of which something is known to the last.
  const shown = times.flatMap((t, i) => (t >= p.start && t <= p.end && p.data!.lines.some((l) => l.values[i] != null) ? [i] : []));
  if (shown.length === 0 || e.ctrlKey || e.metaKey || e.altKey) return;
  const first = shown[0]!;
  const last = shown.at(-1)!;
  const by = e.shiftKey ? 10 : 1;
  const to: Record<string, number> = { ArrowRight: cursor === null ? first : cursor + by, ArrowLeft: cursor === null ? last : cursor - by, Home: first, End: last };
  if (e.key in to) {
    const at = times[Math.min(Math.max(to[e.key]!, first), last)]!;
    moveCursor(u, u.valToPos(at, "x"), u.over.clientHeight / 2);
  } else if (e.key === "+" || e.key === "=" || e.key === "-") {
    const middle = cursor === null ? (p.start + p.end) / 2 : times[cursor]!;
    const half = ((p.end - p.start) / 2) * (e.key === "-" ? 2 : 0.5);
    zoom(middle - half, Math.min(middle + half, now()));
  } else if (e.key === "Escape") moveCursor(u, -10, -10);
  else return;
  e.preventDefault();
}

/** The time under the cursor, and the event that is marked there. */
function told(p: Props, time: number): string {
  const near = (p.end - p.start) / 120;
  const distance = (e: Event) => Math.abs(Date.parse(e.time) / 1000 - time);
  const [event] = (p.events ?? []).filter((e) => distance(e) < near).sort((x, y) => distance(x) - distance(y));
  return (p.since === undefined ? clock(new Date(time * 1000)) : `${elapsed(time - p.since)} since the start`) + (event ? ` · ${event.text}` : "");
}

/** The values under the cursor, or the present ones: what is not known any more says since when. */
function Legend(p: { data: ChartData; at: number | null; end: number; remark?: string }) {
  return (
    <ul class={"legend" + (p.data.lines.length > 3 ? " many" : "")}>
      {p.data.lines.map((l, i) => (
        <li key={l.name}>
          <i style={{ background: lineColour(i) }} aria-hidden="true" /> {l.name} <Reading data={p.data} line={l} at={p.at} end={p.end} />
        </li>
      ))}
      {p.remark && <li>{p.remark}</li>}
    </ul>
  );
}

function Reading(p: { data: ChartData; line: Line; at: number | null; end: number }) {
  const text = (i: number) => markOf(p.line.bounds?.[i]) + value(p.line.values[i] ?? null, p.data.unit, p.data.decimals);
  if (p.at !== null) return <b class="num">{p.line.values[p.at] == null ? "–" : text(p.at)}</b>;
  const { index, age } = newest(p.data, p.line, p.end);
  if (index < 0) return <b class="num">–</b>;
  if (age === 0) return <b class="num">{text(index)}</b>;
  return (
    <>
      <b class="num">–</b>{" "}
      <span class="stale">
        {text(index)} {span(age)} ago
      </span>
    </>
  );
}

/** The last value that is known of a line, and how old it is; 0: it is the present one. */
export function newest(data: ChartData, line: Line, end: number): { index: number; age: number } {
  let index = data.times.length - 1;
  while (index >= 0 && line.values[index] == null) index--;
  if (index < 0) return { index, age: 0 };
  // The step that is under way may have no sample yet.
  const step = data.times.length > 1 ? data.times.at(-1)! - data.times.at(-2)! : 0;
  const age = Math.min(end, data.times.at(-1)! + step) - data.times[index]!;
  return { index, age: age > 3 * step + 5 ? age : 0 };
}

function options(live: { current: Props }, setCursor: (i: number | null) => void, width: number, height: number): uPlot.Options {
  const data = live.current.data!;
  const grid = { stroke: colour("grid"), width: 1 };
  const axis = { stroke: colour("muted"), grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
  const held = isBytes(data.unit) && !data.unit.includes("/");
  const series: uPlot.Series[] = [{}];
  data.lines.forEach((l, i) => {
    // A value holds until the next sample: no invented slope.
    const base: uPlot.Series = { label: l.name, stroke: lineColour(i), width: 1.5, dash: lineDash(i), points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) };
    const ground = data.lines.length === 1 ? translucent(lineColour(i), 0.11) : undefined;
    const { exact } = layers(l);
    series.push(exact ? { ...base, stroke: translucent(lineColour(i), 0.45), fill: ground } : { ...base, fill: ground });
    if (exact) series.push(base);
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
      live.current.since === undefined
        ? { ...axis, space: timeSpace, values: timeLabels, size: (_u, values) => (values?.some((v) => v.includes("\n")) ? 42 : 28) }
        : { ...axis, size: 28, splits: (u, _axis, min, max) => elapsedTicks(live.current.since!, min, max, u.width), values: (_u, ticks) => ticks.map((t) => elapsed(t - live.current.since!)) },
      {
        ...axis,
        size: (_u, values) => Math.max(52, 14 + 6.4 * Math.max(0, ...(values ?? []).map((v) => v.length))),
        ...(isBytes(data.unit) ? { splits: (_u, _axis, min, max) => byteTicks(min, max, data.unit, height) } : { space: 34 }),
        values: (_u, ticks) => ticks.map((v) => tick(v, data.unit)),
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
      drawAxes: [(u) => drawUnknown(u, live.current)],
      draw: [(u) => drawMarks(u, live.current)],
    },
  };
}

/** A colour through which what is behind it is seen. */
const translucent = (c: string, share: number): string =>
  /^#[0-9a-f]{6}$/i.test(c)
    ? c +
      Math.round(share * 255)
        .toString(16)
        .padStart(2, "0")
    : c;

/** From 0 where that is near or means nothing, with room above. */
function around(min: number | null, max: number | null, limit: number | null, zero: boolean): [number, number] {
  if (min === null || max === null) return [0, limit ?? 1];
  if (max - min <= Math.abs(max) * 1e-6) return [min >= 0 ? 0 : min - 1, Math.max(max * 1.25, limit ?? 0) || 1];
  const low = min >= 0 && (zero || min < max * 0.8) ? 0 : min - (max - min || 1) * 0.1;
  const high = limit !== null && limit > max && limit < max * 3 ? limit * 1.15 : max + (max - low || 1) * 0.12;
  return [Math.max(low, min >= 0 ? 0 : low), high];
}

/** What is not known is hatched: above a sum of which a part is missing, and wherever the host was away. */
function drawUnknown(u: uPlot, p: Props): void {
  const { left, top, width } = u.bbox;
  const times = p.data?.times ?? [];
  const x = (i: number) => Math.min(Math.max(u.valToPos(times[i] ?? p.end, "x", true), left), left + width);
  const box = (i: number, bottom: number) => u.ctx.rect(x(i), top, x(i + 1) - x(i), bottom - top);
  for (const line of p.data?.lines ?? []) {
    hatch(u, () =>
      line.open?.forEach((open, i) => {
        const v = line.values[i] ?? null;
        if (open && v !== null) box(i, u.valToPos(v, "y", true));
      }),
    );
  }
  hatch(u, () => p.data?.away?.forEach((away, i) => away && box(i, top + u.bbox.height)));
}

/** Hatches what is outlined. */
function hatch(u: uPlot, outline: () => void): void {
  const c = u.ctx;
  const { left, top, width, height } = u.bbox;
  c.save();
  c.beginPath();
  outline();
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
    // A solid line with a ground above it: the cursor's are dashed, and events stand upright.
    c.setLineDash([]);
    c.strokeStyle = colour("muted");
    c.beginPath();
    c.moveTo(left, y);
    c.lineTo(left + width, y);
    c.stroke();
    c.fillStyle = translucent(colour("muted"), 0.12);
    c.fillRect(left, top, width, Math.max(y - top, 0));
    c.fillStyle = colour("muted");
    c.font = `${10 * devicePixelRatio}px system-ui, sans-serif`;
    c.textAlign = "right";
    c.textBaseline = "bottom";
    c.fillText(`limit ${tick(p.limit, p.data?.unit ?? "")}`, left + width - 3 * devicePixelRatio, y - 2 * devicePixelRatio);
  }
  c.restore();
}

function csv(data: ChartData, since?: number): Blob {
  const quote = (s: string) => `"${s.replaceAll('"', '""')}"`;
  const head = [since === undefined ? "time" : quote("seconds since the start"), ...data.lines.flatMap((l) => [quote(`${l.name} (${data.unit})`), ...(l.bounds ? [quote(l.name + " bound")] : [])])];
  const names = ["exact", "at_least", "unsure"];
  const rows = data.times.map((t, i) =>
    [
      since === undefined ? new Date(t * 1000).toISOString() : (t - since).toFixed(3),
      ...data.lines.flatMap((l) => [l.values[i] ?? "", ...(l.bounds ? [l.values[i] === null ? "" : (names[l.bounds[i] ?? 0] ?? "")] : [])]),
    ].join(","),
  );
  return new Blob([[head.join(","), ...rows].join("\n") + "\n"], { type: "text/csv" });
}

const hostName = (): string => state.snap?.host.name ?? "";

/** "lab-3 Power 2026-11-16 12.00.03.png": of which host, what, and when. */
function fileName(p: Props, ending: string): string {
  const at = moment.full(new Date(p.end * 1000)).replaceAll(":", ".");
  return [hostName(), p.title, at].filter(Boolean).join(" ").replaceAll("/", "-") + "." + ending;
}

/** The picture as it is, on the page's own ground: above it title, host and time, below it whose the lines are. */
function png(p: Props, u: uPlot): void {
  const from = u.ctx.canvas;
  const one = devicePixelRatio;
  const font = (size: number, weight = "") => `${weight} ${size * one}px system-ui, sans-serif`.trim();
  const to = document.createElement("canvas");
  to.width = from.width;
  let c = to.getContext("2d")!;
  c.font = font(12);
  const names = p.data!.lines.map((l) => {
    const { index, age } = newest(p.data!, l, p.end);
    const last = index < 0 ? "–" : markOf(l.bounds?.[index]) + value(l.values[index] ?? null, p.data!.unit, p.data!.decimals) + (age > 0 ? ` ${span(age)} ago` : "");
    return `${l.name} ${last}`;
  });
  const rows = rowsOf(names.map((n) => c.measureText(n).width + 34 * one), to.width - 16 * one);
  const above = 42 * one;
  const line = 18 * one;
  to.height = from.height + above + (Math.max(0, ...rows.map((r) => r.row)) + 1) * line + 8 * one;
  c = to.getContext("2d")!; // a new size forgets the font
  c.fillStyle = colour("panel");
  c.fillRect(0, 0, to.width, to.height);
  c.drawImage(from, 0, above);
  c.fillStyle = colour("text");
  c.font = font(14, "600");
  c.fillText([p.title, hostName()].filter(Boolean).join(" · "), 8 * one, 17 * one);
  c.fillStyle = colour("muted");
  c.font = font(12);
  c.fillText(`${moment.full(new Date(p.start * 1000))} to ${moment.full(new Date(p.end * 1000))}${p.note ? " · " + p.note : ""}`, 8 * one, 34 * one);
  names.forEach((name, i) => {
    const { left, row } = rows[i]!;
    const y = above + from.height + (row + 0.7) * line;
    c.strokeStyle = lineColour(i);
    c.lineWidth = 3 * one;
    c.setLineDash(lineDash(i).map((n) => n * one));
    c.beginPath();
    c.moveTo(8 * one + left, y - 4 * one);
    c.lineTo(8 * one + left + 16 * one, y - 4 * one);
    c.stroke();
    c.fillStyle = colour("text");
    c.fillText(name, 8 * one + left + 20 * one, y);
  });
  to.toBlob((b) => b && save(fileName(p, "png"), b));
}

/** Where things of some widths go that are written in rows. */
export function rowsOf(widths: number[], room: number): { left: number; row: number }[] {
  let left = 0;
  let row = 0;
  return widths.map((w) => {
    if (left > 0 && left + w > room) {
      left = 0;
      row++;
    }
    const at = { left, row };
    left += w;
    return at;
  });
}
