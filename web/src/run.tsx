// One run: what it was, what it took, what happened meanwhile, and how it differs
// from another.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Chart, type ChartData, type Line } from "./chart";
import { EventList } from "./events";
import { bytes, mark, moment, span } from "./figures";
import { MetricChart, ofProcess, useEvents, useRangeData } from "./metricchart";
import { A, Empty, Panel, poolNames } from "./parts";
import type { Range } from "./range";
import { report } from "./report";
import { setQuery, useRoute } from "./route";
import { RunTable, useRuns } from "./runs";
import type { Comparison, Run, RunPool } from "./runtypes";
import type { Event } from "./answers";

export function RunPage(p: { name: string }) {
  const { runs, problem } = useRuns("id=" + encodeURIComponent(p.name), true);
  const run = runs?.at(-1);
  if (!run) return <Empty>{problem || (runs ? `There is no run ${p.name}.` : "…")}</Empty>;
  return <Whole run={run} />;
}

/** The run's own span, with a little before and after. */
function spanOf(r: Run): Range {
  const start = Date.parse(r.first_seen) / 1000;
  const end = Date.parse(r.end.at ?? r.last_seen) / 1000;
  const room = Math.max(2, (end - start) * 0.03);
  return { start: start - room, end: end + room, moving: false, name: "" };
}

function Whole(p: { run: Run }) {
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
        <span class="command">{r.said.command}</span>
        <span class={r.failed || r.left.length > 0 ? "warn" : ""}>{r.end.text}</span>
        <button onClick={() => report(`run r${r.id}`)} title="this page as one HTML file">
          Report
        </button>
      </div>
      <div class="two">
        <Panel title="What it was">
          <Facts run={r} />
        </Panel>
        <Panel title="What it held">
          <Memory run={r} />
        </Panel>
      </div>
      <Lines run={r} />
      <Against run={r} />
      <Panel title="Its devices">
        <Devices run={r} />
      </Panel>
      <Work run={r} />
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
      {r.neighbours.length > 0 && (
        <Panel title="Who shared its devices">
          <ul class="reasons">
            {r.neighbours.map((n) => (
              <li key={n.id}>
                <A to={"/runs/r" + n.id}>r{n.id}</A> {n.name ?? "a process that is hidden from you"} ({n.user ?? "–"}), {n.devices.length === 1 ? "device" : "devices"} {n.devices.join(", ")}, for {span(n.seconds)}
              </li>
            ))}
            {r.more_neighbours && <li>and others</li>}
          </ul>
        </Panel>
      )}
    </>
  );
}

/** A table of texts; the columns whose names end with a dot are numbers. */
function Texts(p: { label: string; heads: string[]; rows: string[][] }) {
  const num = p.heads.map((h) => (h.endsWith(".") ? "num" : "wrap"));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={p.label}>
      <table>
        <thead>
          <tr>
            {p.heads.map((h, i) => (
              <th key={h} class={num[i] === "num" ? "num" : ""}>
                {h.replace(/\.$/, "")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {p.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, k) => (
                <td key={k} class={num[k]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The lines of code that held the most at the peak, or why they are not known. */
function Lines(p: { run: Run }) {
  const { lines, lines_note: note } = p.run.said;
  if (!lines?.length && !note) return null;
  return (
    <Panel title="Lines of code at the peak">
      {lines && lines.length > 0 && <Texts label="Lines of code at the peak" heads={["Line", "Pool", "At the peak.", "Allocations."]} rows={lines.map((l) => [l.line, l.pool, l.at_peak, l.allocations])} />}
      {note && <Empty>{note}</Empty>}
    </Panel>
  );
}

/** What its chips did, and when they did nothing. */
function Work(p: { run: Run }) {
  const { operations, gaps, gap_notes: notes } = p.run.said;
  if (!operations?.length && !gaps?.length && !notes?.length) return null;
  return (
    <div class="two">
      {operations && operations.length > 0 && (
        <Panel title="Operations that took most time">
          <Texts label="Operations" heads={["Operation", "Time.", "Calls.", "Mean."]} rows={operations.map((o) => [o.operation, o.time, o.calls, o.mean])} />
        </Panel>
      )}
      {(gaps?.length || notes?.length) && (
        <Panel title="Longest gaps between programs">
          {gaps && gaps.length > 0 && <Texts label="Gaps" heads={["Length.", "Device", "Ended after.", "Operation before"]} rows={gaps.map((g) => [g.length, g.device, g.ended_after, g.after])} />}
          {notes?.map((n) => <Empty key={n}>{n}</Empty>)}
        </Panel>
      )}
    </div>
  );
}

function Facts(p: { run: Run }) {
  const r = p.run;
  const failure = r.allocation_failures?.failure;
  const failures = failure ? <A to={"/failures/" + failure}>{r.said.failures}</A> : r.said.failures;
  const facts: [string, ComponentChildren][] = [
    ["User", r.said.user],
    ["Belongs to", r.said.reach || "–"],
    ["Job", r.said.job],
    ["Host", r.host ?? "–"],
    ["tt-metal", r.release ?? "–"],
    ["Began", <time dateTime={r.start}>{moment(r.start)}</time>],
    ["Ended", r.end.at && <time dateTime={r.end.at}>{moment(r.end.at)}</time>],
    ["Took", r.said.took],
    ["Not observed", r.unseen_s ? span(r.unseen_s) : "–"],
    ["Energy", r.said.energy],
    ["Busy", r.said.busy ?? r.said.activity],
    ["Failed allocations", failures],
    ["Processes", r.processes.map((x) => x.pid).join(" ")],
  ];
  return (
    <>
      <dl class="facts">
        {facts
          .filter(([, v]) => v && v !== "–")
          .map(([k, v]) => (
            <div key={k}>
              <dt>{k}</dt>
              <dd>{v}</dd>
            </div>
          ))}
      </dl>
      {r.left.map((l) => (
        <p class="warn body" key={l.region + l.pid}>
          process {l.pid} left {l.text} in {l.region}
        </p>
      ))}
    </>
  );
}

function Memory(p: { run: Run }) {
  const rows: { name: string; pool: string; of: RunPool }[] = [];
  const add = (name: string, memory: Record<string, RunPool>) => {
    for (const [pool, of] of Object.entries(memory)) if (of.peak_bytes > 0 || pool === "dram") rows.push({ name, pool, of });
  };
  for (const d of p.run.devices) {
    const name = d.index < 0 ? "–" : `${d.index} ${d.board ?? ""}`;
    add(name, d.memory);
    for (const c of d.chips ?? []) add(`${name} ${c.name ?? c.id}`, c.memory);
  }
  if (rows.length === 0) return <Empty>No source accounted for its memory.</Empty>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="What it held">
      <table>
        <thead>
          <tr>
            <th>Device</th>
            <th>Pool</th>
            <th class="num">Peak</th>
            <th class="num">Mean</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((x, i) => (
            <tr key={i}>
              <td>{x.name}</td>
              <td>{poolNames[x.pool] ?? x.pool}</td>
              <td class="num">{mark(x.of.peak_bound) + bytes(x.of.peak_bytes)}</td>
              <td class="num">{x.of.mean_text ?? "N/A"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Devices(p: { run: Run }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Its devices">
      <table>
        <thead>
          <tr>
            <th>Device</th>
            <th class="num">Open</th>
            <th class="num">Power, mean</th>
            <th class="num">most</th>
            <th class="num">Energy</th>
            <th class="num">Hottest</th>
            <th class="num">AICLK, mean</th>
            <th class="num">Busy</th>
            <th class="num">PCIe to</th>
            <th class="num">from</th>
            <th>Trouble</th>
          </tr>
        </thead>
        <tbody>
          {p.run.devices.map((d) => (
            <tr key={d.index}>
              <td>{d.bus_id ? <A to={"/device/" + d.bus_id}>{d.index} <span class="board">{d.board}</span></A> : "–"}</td>
              <td class="num">{d.said.open}</td>
              <td class="num">{d.said.power}</td>
              <td class="num">{d.said.power_max}</td>
              <td class="num">{d.said.energy}</td>
              <td class="num">{d.said.hottest}</td>
              <td class="num">{d.said.aiclk}</td>
              <td class="num">{d.said.busy}</td>
              <td class="num">{d.said.pcie_to}</td>
              <td class="num">{d.said.pcie_from}</td>
              <td class="wrap">{d.said.trouble}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
  const { runs: found } = useRuns("id=" + encodeURIComponent(other || "r" + p.run.id), false);
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
      {against && <RunTable runs={[against]} />}
    </Panel>
  );
}
