// Numbers as text, where the API does not say them already: axes, cursors,
// tooltips. The same forms as internal/field/words; a test compares them.

import { state } from "./store";
import type { Bound, SaidDevice, Value } from "./answers";
import type { Chip } from "./types";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

export function bytes(n: number): string {
  let step = 0;
  let v = Math.max(n, 0);
  while (v >= 1023.5 && step < units.length - 1) {
    v /= 1024;
    step++;
  }
  const decimals = step > 0 && (v < 9.95 || (step >= 3 && v < 99.95)) ? 1 : 0;
  return v.toFixed(decimals) + " " + units[step];
}

const binary: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** Whether a unit of the metric table is one of sizes, or of sizes in a time. */
export const isBytes = (unit: string): boolean => unit.split("/")[0]! in binary;

/** How many bytes a unit is. */
export const unitBytes = (unit: string): number => binary[unit.split("/")[0]!] ?? 1;

/** A value in a unit of the metric table, with the decimals of its form. */
export const value = (v: number | null | undefined, unit: string, decimals = 0): string => written(v, unit, () => decimals);

/** A number at an axis: as many decimals as it takes. */
export const tick = (v: number, unit: string): string => written(v, unit, () => (v % 1 === 0 || Math.abs(v) >= 10 ? 0 : Math.abs(v) < 1 ? 2 : 1));

function written(v: number | null | undefined, unit: string, decimals: () => number): string {
  if (v === null || v === undefined) return state.words?.nothing ?? "–";
  const [base = "", per] = unit.split("/");
  const size = binary[base];
  if (size !== undefined) return bytes(v * size) + (per ? "/" + per : "");
  const text = v.toFixed(decimals());
  return unit ? text + " " + (unit === "C" ? "°C" : unit) : text;
}

/** How a field is called: above its chart, and where room is short. */
/** Said where it is not known which line of a program made a block. */
export const noLine = (): string => state.words?.no_line ?? "";

export const title = (field: string): string => state.words?.fields[field]?.title ?? field;
export const head = (field: string): string => state.words?.fields[field]?.head ?? title(field);

/** A field of a device. */
export const field = (s: SaidDevice, name: string): Value => s.values[name] ?? { text: "–", of: "–", ratio: null };

export function mark(b: Bound | undefined | null): string {
  return (b && state.words?.marks[b]) || "";
}

const bounds: Bound[] = ["exact", "at_least", "unsure"];

/** The mark of a bound as the history has it: 0, 1, 2. */
export function markOf(n: number | null | undefined): string {
  return n ? mark(bounds[Math.min(n, 2)]) : "";
}

/** The word for a reading that is not there, and the reason. */
export function missing(why: string | undefined): { word: string; reason: string } {
  const [status = "", ...rest] = (why ?? "absent").split(":");
  return { word: state.words?.missing[status] ?? "–", reason: rest.join(":").trim() };
}

/** Where the sensors of a chip behind Ethernet are read, or why they are not. */
export function sensorsOf(c: Chip): string {
  if (c.sensors_from) return `read by ${c.sensors_from}`;
  const { reason } = missing(c.missing?.["remote_temperature_c"]);
  return reason || "ttmond does not read chips behind Ethernet; ttmon-server can ask tt-telemetry";
}

export function span(seconds: number): string {
  const s = Math.max(Math.floor(seconds), 0);
  if (s < 120) return s + " s";
  if (s < 7200) return Math.floor(s / 60) + " min";
  if (s < 48 * 3600) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86400) + " days";
}

const two = (n: number) => String(n).padStart(2, "0");

export function clock(t: Date): string {
  return `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}

export function moment(text: string): string {
  const t = new Date(text);
  return day(t) === moment.today() ? clock(t) : moment.full(t);
}
moment.today = () => day(new Date());
/** With its date, whatever day it is. */
moment.full = (t: Date) => day(t) + " " + clock(t);

const day = (t: Date): string => `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`;
