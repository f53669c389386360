// The stretch of time that charts show: in the address, chosen by buttons or
// by dragging over a chart.

import { setQuery, useRoute } from "./route";
import { now, state } from "./store";

export const lengths: Record<string, number> = { "5m": 300, "15m": 900, "1h": 3600, "6h": 21600, "24h": 86400, "7d": 604800, "30d": 2592000 };

/** The name of the range of a recording: all of it. */
const whole = "recording";

export interface Range {
  start: number; // Unix seconds
  end: number;
  moving: boolean; // its end is now
  name: string;
}

/** The range in the address. Without one it is an hour, or the shortest that reaches back to since. */
export function useRange(since?: number): Range {
  const q = useRoute().query;
  const from = Date.parse(q.get("from") ?? "") / 1000;
  const to = Date.parse(q.get("to") ?? "") / 1000;
  if (from < to) return { start: from, end: to, moving: false, name: "" };
  if (state.span && !q.get("range")) return { start: state.span[0], end: state.span[1], moving: false, name: whole };
  const at = Date.parse(state.at) / 1000;
  const end = at > 0 ? at + 60 : now();
  const name = lengths[q.get("range") ?? ""] ? q.get("range")! : fitting(since ? end - since : 3600);
  return { start: end - lengths[name]!, end, moving: !(at > 0), name };
}

/** The shortest range that is so long, up to an hour. */
export function fitting(seconds: number): string {
  return ["5m", "15m"].find((name) => lengths[name]! >= seconds) ?? "1h";
}

let zoomed = 0;

/** Shows a part of the time. Charts that share a cursor all tell of the same drag: it counts once. */
export function zoom(start: number, end: number): void {
  if (end - start < 5 || performance.now() - zoomed < 300) return;
  zoomed = performance.now();
  setQuery({ from: new Date(start * 1000).toISOString(), to: new Date(end * 1000).toISOString(), range: "" }, true);
}

export function RangeChoice(p: { range: Range }) {
  return (
    <div class="segments" role="group" aria-label="Range">
      {state.span && (
        <button aria-pressed={p.range.name === whole} onClick={() => setQuery({ range: "", from: "", to: "" }, true)}>
          {whole}
        </button>
      )}
      {Object.keys(lengths).map((name) => (
        <button key={name} aria-pressed={p.range.name === name} onClick={() => setQuery({ range: name, from: "", to: "" }, true)}>
          {name}
        </button>
      ))}
      {p.range.name === "" && (
        <button aria-pressed="true" onClick={() => setQuery({ from: "", to: "" }, true)} title="back from the zoom">
          zoomed ✕
        </button>
      )}
    </div>
  );
}
