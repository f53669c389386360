// Who uses the devices: all of them, and one of them.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { AllFacts, useFacts } from "./facts";
import { BankMap, Fit, Flame, useMap } from "./bankmap";
import type { MapAnswer, MapPool, Site } from "./answers";
import { Chart, type ChartData } from "./chart";
import { A, Empty, Panel, poolNames, Reasons } from "./parts";
import { ofProcess, useEvents } from "./metricchart";
import { Gaps, Operations } from "./operations";
import { ProcessTable } from "./processtable";
import { type Range, RangeChoice, useRange } from "./range";
import { setQuery, useRoute } from "./route";
import type { State } from "./store";
import { bytes, clock, span } from "./figures";
import type { SaidProcess } from "./answers";
import { type Process, told } from "./types";

export function ProcessesPage(p: { s: State }) {
  const q = useRoute().query;
  const tree = q.get("tree") === "1";
  return (
    <Panel
      title={`Processes (${p.s.snap!.processes.length})`}
      tools={
        <button aria-pressed={tree} onClick={() => setQuery({ tree: tree ? "" : "1" })}>
          tree
        </button>
      }
    >
      <ProcessTable snap={p.s.snap!} said={p.s.said!} />
    </Panel>
  );
}

export function ProcessPage(p: { s: State; name: string }) {
  const snap = p.s.snap!;
  const i = snap.processes.findIndex((x) => String(x.pid) === p.name);
  const proc = snap.processes[i];
  const said = p.s.said?.processes[i];
  const range = useRange(proc?.start_time ? Date.parse(proc.start_time) / 1000 : undefined);
  const { map, problem } = useMap(Number(p.name), p.s);
  return (
    <>
      <div class="title">
        <h2>process {p.name}</h2>
        {said && <span class="command">{told(said, "command")}</span>}
      </div>
      {proc && said ? <Identity p={proc} s={said} state={p.s} /> : <Empty>Process {p.name} uses no device at this moment.</Empty>}
      {proc && <Operations said={p.s.said!} pid={proc.pid} />}
      {proc && <Gaps process={proc} />}
      <Panel title="Memory over time" tools={<RangeChoice range={range} />}>
        <Past pid={Number(p.name)} ticks={proc?.start_ticks ?? 0} buses={busesOf(p.s, proc)} range={range} now={proc && said ? present(snap.time, proc, said) : null} />
      </Panel>
      <Panel title="Its banks">
        {map ? <Banks map={map} /> : <Empty>{problem || "…"}</Empty>}
      </Panel>
      {map && map.pools.length > 0 && (
        <Panel title="Would it fit?">
          <Fit pid={Number(p.name)} />
        </Panel>
      )}
      {map && map.sites.length > 0 && (
        <Panel title="Who in the program holds it">
          <Flame sites={map.sites} />
          <Sites map={map} />
        </Panel>
      )}
    </>
  );
}

function Identity(p: { p: Process; s: SaidProcess; state: State }) {
  const { p: proc, s, state } = p;
  const sources = [...new Set(s.uses.map((u) => u.source))];
  const facts = useFacts(state, { pid: String(proc.pid) });
  return (
    <div class="two">
      <Panel>
        <AllFacts of={facts} />
      </Panel>
      <Panel title="What it holds">
        <div class="scroll" tabIndex={0} role="region" aria-label="What it holds">
          <table>
            <thead>
              <tr>
                <th>Device</th>
                <th class="num">DRAM</th>
                <th class="num">L1</th>
                <th class="num">Trace</th>
                <th class="num">CB</th>
                {sources.length > 1 && <th>According to</th>}
              </tr>
            </thead>
            <tbody>
              {s.uses.map((u, i) => {
                const d = p.state.snap!.devices.find((x) => x.index === proc.devices[i]?.index);
                return (
                  <tr key={i}>
                    <td>{d ? <A to={"/device/" + d.bus_id}>{d.index} <span class="board">{d.board}</span></A> : "–"}</td>
                    {["dram", "l1", "trace", "cb"].map((k) => (
                      <td key={k} class="num">
                        {u.values[k]?.text}
                      </td>
                    ))}
                    {sources.length > 1 && <td class="wrap">{u.source}</td>}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
        <Reasons list={[...(sources.length === 1 && sources[0] ? ["according to " + sources[0]] : []), ...new Set(s.uses.flatMap((u) => u.reasons))]} />
      </Panel>
    </div>
  );
}

interface Point {
  time: string;
  devices: { index: number; pools: Record<string, { bytes: number; bound: string }> }[];
}

interface PastAnswer {
  every_change_since: string | null;
  step_s: number;
  points: Point[];
}

/** What it holds now, as the last point. */
function present(time: string, p: Process, s: SaidProcess): Point {
  const devices = p.devices.flatMap((d, i) => {
    const f = s.uses[i]?.values["dram"];
    return d.index === null || !f || f.n === null ? [] : [{ index: d.index, pools: { dram: { bytes: f.n, bound: f.bound ?? "exact" } } }];
  });
  return { time, devices };
}

const boundNumber: Record<string, number> = { exact: 0, at_least: 1, unsure: 2 };

/** The bus ids of a process's devices. */
function busesOf(s: State, p: Process | undefined): string[] {
  return s.snap!.devices.filter((d) => p?.devices.some((u) => u.index === d.index)).map((d) => d.bus_id);
}

/** What it held, device by device: every change of the last hour, and before that from the snapshots that are kept. */
function Past(p: { pid: number; ticks: number; buses: string[]; range: Range; now: Point | null }) {
  const [past, setPast] = useState<PastAnswer | null>(null);
  const [problem, setProblem] = useState("");
  const beat = p.range.moving ? Math.floor(p.range.end / 5) : p.range.end;
  useEffect(() => {
    const stop = new AbortController();
    const q = new URLSearchParams({ start: new Date(p.range.start * 1000).toISOString(), end: new Date(p.range.end * 1000).toISOString(), points: "600" });
    if (p.ticks) q.set("start_ticks", String(p.ticks));
    get<PastAnswer>(`processes/${p.pid}/history?${q}`, stop.signal)
      .then((a) => {
        setPast(a);
        setProblem("");
      })
      .catch((err: Error) => !stop.signal.aborted && setProblem(err.message));
    return () => stop.abort();
  }, [p.pid, p.ticks, beat, p.range.end - p.range.start]);
  const { events } = useEvents(p.range, "");
  const known = past?.points ?? [];
  const points = p.now && p.range.moving && Date.parse(p.now.time) > Date.parse(known.at(-1)?.time ?? "1970-01-01") ? [...known, p.now] : known;
  return <Chart title="DRAM by device" note={past ? resolution(past) : ""} data={past && pastData(points)} events={ofProcess(events, [p.pid], p.buses)} problem={problem} start={p.range.start} end={p.range.end} height={200} />;
}

/** How closely it is known: what came and went between two moments is not seen. */
function resolution(a: PastAnswer): string {
  const since = a.every_change_since ? Date.parse(a.every_change_since) : Infinity;
  const before = a.points.map((x) => Date.parse(x.time)).filter((t) => t < since);
  const gaps = before.slice(1).map((t, i) => t - before[i]!);
  const middle = gaps.sort((x, y) => x - y)[Math.floor(gaps.length / 2)];
  const fine = a.step_s > 0 ? `the most of each ${span(Math.max(1, Math.round(a.step_s)))}` : "every change";
  if (middle === undefined) return since < Infinity ? fine : "";
  const coarse = `a moment every ${span(Math.round(middle / 1000))}`;
  return since < Infinity && a.points.length > before.length ? `${fine}; before ${clock(new Date(since))} ${coarse}` : coarse;
}

function pastData(points: Point[]): ChartData {
  const devices = [...new Set(points.flatMap((x) => x.devices.map((d) => d.index)))].sort((x, y) => x - y).slice(0, 32);
  const of = (i: number, k: number) => points[k]?.devices.find((d) => d.index === i)?.pools["dram"];
  return {
    times: points.map((x) => Date.parse(x.time) / 1000),
    unit: "B",
    decimals: 0,
    lines: devices.map((i) => ({
      name: "device " + i,
      values: points.map((_, k) => of(i, k)?.bytes ?? null),
      bounds: points.map((_, k) => boundNumber[of(i, k)?.bound ?? "exact"] ?? 2),
    })),
  };
}

function Banks(p: { map: MapAnswer }) {
  return (
    <div class="body">
      {p.map.pools.map((pool, i) => (
        <BankMap key={i} pool={pool} />
      ))}
      {p.map.pools.length === 0 && <Empty>It has no allocator that is known.</Empty>}
      <Reasons list={p.map.doubts} />
    </div>
  );
}

/** Call sites of one line together, on all chips: the largest first. */
function byLine(sites: Site[], pools: MapPool[]): (Site & { grew: boolean })[] {
  const grown = new Set(pools.flatMap((x) => x.holders.filter((h) => h.grew).map((h) => x.pool + " " + h.line)));
  const lines = new Map<string, Site & { grew: boolean }>();
  for (const s of sites) {
    const key = JSON.stringify([s.pool, s.tag, s.where ?? s.stack]);
    const of = lines.get(key);
    if (of) {
      of.bytes += s.bytes;
      of.blocks += s.blocks;
    } else lines.set(key, { ...s, grew: grown.has(s.pool + " " + s.holder) });
  }
  return [...lines.values()].sort((a, b) => b.bytes - a.bytes);
}

function Sites(p: { map: MapAnswer }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Call sites">
      <table>
        <thead>
          <tr>
            <th class="num">Bytes</th>
            <th class="num">Blocks</th>
            <th>Pool</th>
            <th>Tag</th>
            <th>Where</th>
          </tr>
        </thead>
        <tbody>
          {byLine(p.map.sites, p.map.pools).slice(0, 50).map((s, i) => (
            <tr key={i}>
              <td class="num">{bytes(s.bytes)}</td>
              <td class="num">{s.blocks}</td>
              <td>{poolNames[s.pool] ?? s.pool}</td>
              <td>{s.tag ?? "–"}</td>
              <td class="wrap" title={s.stack.join("\n")}>
                {s.where ?? s.stack.at(-1) ?? "–"}
                {s.grew && <span class="warn"> grew step by step</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
