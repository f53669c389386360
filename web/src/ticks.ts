// Where the axes of charts have their ticks, and how those are written.

import type uPlot from "uplot";
import { unitBytes } from "./figures";

/** Sizes have ticks at powers of two: 8, 16, 24 GiB rather than 9.8, 19.5, 29.3. */
export function byteTicks(min: number, max: number, unit: string, height: number): number[] {
  const size = unitBytes(unit);
  const room = Math.max(2, Math.floor(height / 34));
  const step = 2 ** Math.max(0, Math.ceil(Math.log2(((max - min) * size) / room))) / size;
  const out: number[] = [];
  for (let v = Math.ceil(min / step) * step; v <= max; v += step) out.push(v);
  return out;
}

const two = (n: number) => String(n).padStart(2, "0");

/** The time of day; the date where a day begins, and below the first tick of a range that is not all of today. */
export function timeLabels(_u: uPlot, ticks: number[], _axis: number, _space: number, step: number): string[] {
  const today = new Date().toDateString();
  let day = today;
  return ticks.map((t) => {
    const at = new Date(t * 1000);
    const date = `${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    if (step >= 86400) return date;
    const time = `${two(at.getHours())}:${two(at.getMinutes())}` + (step < 60 ? ":" + two(at.getSeconds()) : "");
    const fresh = at.toDateString() !== day;
    day = at.toDateString();
    return fresh ? `${time}\n${date}` : time;
  });
}

/** The room that a time of day needs: more where it has seconds. */
export function timeSpace(_u: uPlot, _axis: number, min: number, max: number, width: number): number {
  const pixels = (30 * width) / (max - min); // of half a minute
  return pixels >= 58 ? 58 : 44;
}

const elapsedSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

/** Ticks at round times since a moment. */
export function elapsedTicks(since: number, min: number, max: number, width: number): number[] {
  const room = Math.max(2, Math.floor(width / 64));
  let step = elapsedSteps.find((s) => (max - min) / s <= room) ?? 86400;
  while ((max - min) / step > room) step *= 2;
  const out: number[] = [];
  for (let t = since + Math.ceil((min - since) / step) * step; t <= max; t += step) if (t >= since) out.push(t);
  return out;
}

/** A time since a moment: 0:07, 12:00, 1:02:03. */
export function elapsed(seconds: number): string {
  const s = Math.round(Math.max(0, seconds));
  const hours = Math.floor(s / 3600);
  return (hours > 0 ? `${hours}:${two(Math.floor(s / 60) % 60)}` : String(Math.floor(s / 60))) + ":" + two(s % 60);
}
