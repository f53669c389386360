// One run: what it was, what it took, what happened meanwhile, and how it differs
// from another.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Chart, type ChartData, type Line } from "./chart";
import { EventList } from "./events";
import { moment } from "./figures";
import { MetricChart, ofProcess, useEvents, useRangeData } from "./metricchart";
import { Empty, Panel } from "./parts";
import type { Range } from "./range";
import { report } from "./report";
import { setQuery, useRoute } from "./route";
import { RunTable, useRuns } from "./runs";
import type { Comparison, Run } from "./runtypes";
import { Parts } from "./sheet";
import type { Event, Sheet } from "./answers";

export function RunPage(p: { name: string }) {
  const { runs, sheets, problem } = useRuns("id=" + encodeURIComponent(p.name), true);
  const run = runs?.at(-1);
  const sheet = sheets?.at(-1);
  if (!run || !sheet) return <Empty>{problem || (runs ? `There is no run ${p.name}.` : "…")}</Empty>;
  return <Whole run={run} sheet={sheet} />;
}

/** The run's own span, with a little before and after. */
function spanOf(r: Run): Range {
  const start = Date.parse(r.first_seen) / 1000;
  const end = Date.parse(r.end.at ?? r.last_seen) / 1000;
  const room = Math.max(2, (end - start) * 0.03);
  return { start: start - room, end: end + room, moving: false, name: "" };
}

function Whole(p: { run: Run; sheet: Sheet }) {
  const r = p.run;
  const range = spanOf(r);
  const own = r.devices.filter((d) => d.bus_id);
  const bus = own.length === 1 ? own[0]!.bus_id! : "";
  const metrics = ["power.draw", "temperature.asic"];
  const { answer, problem } = useRangeData(metrics, bus, range);
  const { events: all, problem: unknown } = useEvents(range, bus);
  const events = ofProcess(all, r.processes.map((x) => x.pid), own.map((d) => d.bus_id!));
  const numbers = new Set(own.map((d) => d.index));
  const mine = answer && { ...answer, series: answer.series.filter((s) => s.device === null || numbers.has(s.device)) };
  return (
    <>
      <div class="title">
        <h2>run r{r.id}</h2>
        <span class="command">{r.row.cells.at(-1)!.text}</span>
        <button onClick={() => report(`run r${r.id}`)} title="this page as one HTML file">
          Report
        </button>
      </div>
      <Parts of={p.sheet} />
      <Against run={r} />
      <Panel title="While it ran">
        <div class="charts three">
          <Held runs={[r]} range={range} events={events} />
          <MetricChart metrics={["power.draw"]} title="Power of its devices" answer={mine} problem={problem} range={range} events={events} zero />
          <MetricChart metrics={["temperature.asic"]} title="Temperature of its devices" answer={mine} problem={problem} range={range} events={events} />
        </div>
      </Panel>
      <Panel title="What happened meanwhile">
        <EventList events={events} problem={unknown} />
      </Panel>
    </>
  );
}

interface HeldAnswer {
  points: { time: string; devices: { index: number; pools: Record<string, { bytes: number; bound: string }> }[] }[];
}

const boundNumber: Record<string, number> = { exact: 0, at_least: 1, unsure: 2 };

/** A figure over its own times: a value holds until the next. */
interface Steps {
  times: number[];
  values: number[];
  bounds: number[];
}

/** Of how many processes of a run what they held is added up. */
const mostProcesses = 16;

/** What the processes of a run held of DRAM, added up. */
async function heldBy(r: Run, signal: AbortSignal): Promise<Steps> {
  const own = spanOf(r);
  const parts = await Promise.all(
    r.processes.slice(0, mostProcesses).map(async (x): Promise<Steps> => {
      const q = new URLSearchParams({ start: new Date(own.start * 1000).toISOString(), end: new Date(own.end * 1000).toISOString(), points: "600", start_ticks: String(x.start_ticks) });
      const a = await get<HeldAnswer>(`processes/${x.pid}/history?${q}`, signal);
      const pools = a.points.map((y) => y.devices.map((d) => d.pools["dram"]).filter((d) => d !== undefined));
      return {
        times: a.points.map((y) => Date.parse(y.time) / 1000),
        values: pools.map((y) => y.reduce((sum, d) => sum + d.bytes, 0)),
        bounds: pools.map((y) => Math.max(0, ...y.map((d) => boundNumber[d.bound] ?? 2))),
      };
    }),
  );
  const some = parts.filter((x) => x.times.length > 0);
  if (some.length === 1) return some[0]!;
  const times = [...new Set(some.flatMap((x) => x.times))].sort((a, b) => a - b);
  const lines = some.map((x) => spread(x, times));
  return {
    times,
    values: times.map((_, i) => lines.reduce((sum, l) => sum + (l.values[i] ?? 0), 0)),
    bounds: times.map((_, i) => Math.max(...lines.map((l) => l.bounds[i] ?? 0))),
  };
}

/** DRAM that runs held over time, the later ones moved to begin with the first. */
function Held(p: { runs: Run[]; range: Range; events?: Event[] }) {
  const [lines, setLines] = useState<({ name: string } & Steps)[] | null>(null);
  const [problem, setProblem] = useState("");
  const key = p.runs.map((r) => r.id + ":" + r.last_seen).join(",");
  useEffect(() => {
    const stop = new AbortController();
    const base = Date.parse(p.runs[0]!.start) / 1000;
    Promise.all(
      p.runs.map(async (r) => {
        const held = await heldBy(r, stop.signal);
        const move = base - Date.parse(r.start) / 1000;
        return { ...held, name: "r" + r.id, times: held.times.map((t) => t + move) };
      }),
    )
      .then((l) => {
        setLines(l);
        setProblem("");
      })
      .catch((err: Error) => !stop.signal.aborted && setProblem(err.message));
    return () => stop.abort();
  }, [key]);
  const several = p.runs.length > 1;
  return <Chart title={several ? "DRAM that they held" : "DRAM that it held"} note={several ? "both from their start" : ""} since={several ? Date.parse(p.runs[0]!.start) / 1000 : undefined} data={lines && together(lines)} events={p.events} problem={problem} start={p.range.start} end={p.range.end} zero />;
}

/** A figure at other times; null before its first and after its last. */
function spread(l: Steps, times: number[]): { values: (number | null)[]; bounds: (number | null)[] } {
  const values: (number | null)[] = [];
  const bounds: (number | null)[] = [];
  let at = -1;
  for (const t of times) {
    while (at + 1 < l.times.length && l.times[at + 1]! <= t) at++;
    const outside = at < 0 || t > l.times.at(-1)!;
    values.push(outside ? null : l.values[at]!);
    bounds.push(outside ? 0 : l.bounds[at]!);
  }
  return { values, bounds };
}

/** Lines of their own times on one axis: a value holds until the next of the same line. */
function together(list: ({ name: string } & Steps)[]): ChartData {
  const times = [...new Set(list.flatMap((l) => l.times))].sort((a, b) => a - b);
  const lines: Line[] = list.filter((l) => l.times.length > 0).map((l) => ({ name: l.name, ...spread(l, times) }));
  return { times, lines, unit: "B", decimals: 0 };
}

/** How the run differs from another, or from the usual ones of the same command. */
function Against(p: { run: Run }) {
  const q = useRoute().query;
  const other = q.get("with") ?? "";
  const [c, setC] = useState<Comparison | null>(null);
  const [problem, setProblem] = useState("");
  const { runs: same } = useRuns(new URLSearchParams({ command: p.run.command ?? "", uid: String(p.run.uid), limit: "20" }).toString(), false);
  const others = (same ?? []).filter((r) => r.id !== p.run.id);
  const { runs: found, columns } = useRuns("id=" + encodeURIComponent(other || "r" + p.run.id), false);
  const ended = p.run.end.kind !== "running";
  const usual = others.some((r) => Date.parse(r.start) < Date.parse(p.run.start)); // there is something before it
  useEffect(() => {
    if (!p.run.command || (!other && !usual)) return;
    const stop = new AbortController();
    const ask = new URLSearchParams({ run: "r" + p.run.id });
    if (other) ask.set("with", other);
    get<Comparison>("runs/compare?" + ask, stop.signal)
      .then((a) => {
        setC(a);
        setProblem("");
      })
      .catch((err: Error) => {
        if (stop.signal.aborted) return;
        setC(null);
        setProblem(err.message);
      });
    return () => stop.abort();
  }, [p.run.id, other, usual, ended]);
  if (!p.run.command || (others.length === 0 && !other)) return null;
  const against = other ? found?.at(-1) : undefined;
  const range = spanOf(p.run);
  const longest = against ? Math.max(range.end, range.start + spanOf(against).end - spanOf(against).start) : range.end;
  return (
    <Panel
      title="Against before"
      tools={
        <label class="choice">
          <span>Compare with</span>
          <select value={other} onChange={(e) => setQuery({ with: e.currentTarget.value })}>
            <option value="">{usual ? "the usual" : "–"}</option>
            {[...others].reverse().map((r) => (
              <option key={r.id} value={"r" + r.id}>
                r{r.id} {moment(r.start)}
              </option>
            ))}
          </select>
        </label>
      }
    >
      {problem && <Empty>{problem}</Empty>}
      {c && (
        <>
          <p class="verdict body">
            <b>{c.text}</b>{" "}
            <span class="muted">
              than {c.a.runs.length > 1 ? `the median of ${c.a.runs.join(", ")}` : c.a.runs[0]}
            </span>
          </p>
          <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
            <table>
              <thead>
                <tr>
                  <th>Figure</th>
                  <th class="num">Before</th>
                  <th class="num">r{p.run.id}</th>
                  <th class="num">Change</th>
                </tr>
              </thead>
              <tbody>
                {c.figures
                  .filter((f) => f.change && f.device === null)
                  .map((f) => (
                    <tr key={f.name}>
                      <td>{f.title}</td>
                      <td class="num">{f.text_a}</td>
                      <td class="num">{f.text_b}</td>
                      <td class="num">{f.change}</td>
                    </tr>
                  ))}
              </tbody>
            </table>
          </div>
        </>
      )}
      {against && against.id !== p.run.id && (
        <div class="charts">
          <Held runs={[p.run, against]} range={{ ...range, end: longest }} />
        </div>
      )}
      {against && <RunTable runs={[against]} columns={columns} />}
    </Panel>
  );
}
