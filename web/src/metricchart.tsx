// Charts of metrics out of the daemon's history.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Chart, type ChartData } from "./chart";
import { span } from "./figures";
import type { Range } from "./range";
import { now, state } from "./store";
import type { Event, RangeAnswer } from "./answers";

/** Refreshes with every step, and no oftener than it pays. */
export function useRangeData(metrics: string[], bus: string, range: Range): { answer: RangeAnswer | null; problem: string } {
  const [answer, setAnswer] = useState<RangeAnswer | null>(null);
  const [problem, setProblem] = useState("");
  const beat = range.moving ? Math.floor(range.end / Math.max(5, (range.end - range.start) / 300)) : 0;
  const key = [metrics.join(","), bus, Math.round(range.end - range.start), range.moving ? beat : range.start + "/" + range.end].join("|");
  useEffect(() => {
    if (metrics.length === 0) return;
    const stop = new AbortController();
    const q = new URLSearchParams({
      metric: metrics.join(","),
      start: new Date(range.start * 1000).toISOString(),
      end: new Date(range.end * 1000).toISOString(),
    });
    if (bus) q.set("device", bus);
    if (byMost(range)) q.set("of", "most");
    get<RangeAnswer>("range?" + q, stop.signal)
      .then((a) => {
        setAnswer(a);
        setProblem("");
      })
      .catch((err: Error) => {
        if (!stop.signal.aborted) setProblem(err.message);
      });
    return () => stop.abort();
  }, [key]);
  return { answer, problem };
}

/** Over a long range a point is the most of its step: no peak falls between. */
export const byMost = (range: Range): boolean => range.end - range.start > 7500;

export function dataOf(answer: RangeAnswer | null, metrics: string[], nameOf: (metric: string, device: number | null) => string): ChartData | null {
  if (!answer) return null;
  const chosen = answer.series.filter((s) => metrics.includes(s.metric));
  const m = state.metrics.find((x) => x.name === metrics[0]);
  return {
    times: answer.times,
    away: answer.away,
    unit: chosen[0]?.unit ?? m?.unit ?? "",
    decimals: m?.decimals ?? 0,
    lines: chosen.map((s) => ({ name: nameOf(s.metric, s.device), values: s.values, bounds: s.bounds })),
  };
}

/** The events of a time, and why they are not known. */
export function useEvents(range: Range, bus: string): { events: Event[]; problem: string } {
  const [answer, setAnswer] = useState<{ events: Event[]; problem: string }>({ events: [], problem: "" });
  // What happened at the end of a stretch that ends now may be told a little later.
  const beat = range.moving || now() < range.end + 20 ? Math.floor(now() / 10) : 0;
  useEffect(() => {
    const stop = new AbortController();
    const q = new URLSearchParams({ since: new Date(range.start * 1000).toISOString(), limit: "500" });
    if (!range.moving) q.set("until", new Date(range.end * 1000).toISOString());
    if (bus) q.set("device", bus);
    get<{ events: Event[] }>("events?" + q, stop.signal)
      .then((a) => setAnswer({ events: a.events.sort((x, y) => Date.parse(x.time) - Date.parse(y.time)), problem: "" }))
      .catch((err: Error) => {
        if (!stop.signal.aborted) setAnswer((old) => ({ events: old.events, problem: err.message }));
      });
    return () => stop.abort();
  }, [bus, beat, range.moving ? range.end - range.start : range.start + range.end]);
  return answer;
}

/** The events that charts of some devices mark: theirs, and not those of the host or of others. */
export const ofDevices = (events: Event[], buses: string[]): Event[] => events.filter((e) => e.devices?.some((d) => buses.includes(d)));

/** The events that charts of a process mark: its own, and what happened to its devices. */
export const ofProcess = (events: Event[], pids: number[], buses: string[]): Event[] => events.filter((e) => (e.pid ? pids.includes(e.pid) : e.devices?.some((d) => buses.includes(d))));

export function MetricChart(p: { metrics: string[]; title: string; help?: string; answer: RangeAnswer | null; problem: string; range: Range; events: Event[]; limit?: number | null; zero?: boolean; height?: number; nameOf?: (metric: string, device: number | null) => string }) {
  const nameOf = p.nameOf ?? ((m, d) => (p.metrics.length > 1 ? m : d === null ? m : "device " + d));
  return (
    <Chart
      title={p.title}
      note={byMost(p.range) && p.answer ? `the most of each ${span(p.answer.step_s)}` : ""}
      help={p.help}
      data={dataOf(p.answer, p.metrics, nameOf)}
      problem={p.problem}
      events={p.events}
      limit={p.limit}
      zero={p.zero}
      start={p.range.start}
      end={p.range.end}
      height={p.height}
    />
  );
}
