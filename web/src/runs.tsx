// The programs that used devices, finished ones too: all of them, by job, one of
// them, and one against another.

import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "./api";
import { moment } from "./figures";
import { Choice, Empty, Panel } from "./parts";
import { RunPage } from "./run";
import { go, setQuery, useRoute } from "./route";
import { useBeat } from "./beat";
import { now } from "./store";
import type { Sheet, SheetColumn, SheetTable } from "./answers";
import { Table } from "./sheet";
import type { Run } from "./runtypes";

interface RunsState {
  runs: Run[] | null; // each with its row of the table
  columns: SheetColumn[];
  sheets?: Sheet[]; // all about each, where it was asked for by its name
  more: boolean;
  problem: string;
}

/** Asks for runs; again every few seconds where some may still run. */
export function useRuns(query: string, live: boolean): RunsState {
  const [answer, setAnswer] = useState<RunsState>({ runs: null, columns: [], more: false, problem: "" });
  const beat = useBeat(live ? 5000 : 0);
  useEffect(() => {
    const stop = new AbortController();
    get<{ runs: Run[]; table: SheetTable; sheets?: Sheet[]; more: boolean }>("runs?" + query, stop.signal)
      .then((a) => setAnswer({ ...a, runs: a.runs.map((r, i) => ({ ...r, row: a.table.rows[i]! })), columns: a.table.columns, problem: "" }))
      .catch((err: Error) => !stop.signal.aborted && setAnswer((old) => ({ ...old, problem: err.message })));
    return () => stop.abort();
  }, [query, beat]);
  return answer;
}

const days: Record<string, number> = { "1d": 1, "2d": 2, "7d": 7, "30d": 30, "90d": 90 };
const kinds = ["all", "running", "failed", "leaked"] as const;

/** What the address asks for. */
function queryOf(q: URLSearchParams): string {
  const out = new URLSearchParams({ limit: "500" });
  const since = days[q.get("since") ?? "1d"] ?? 1;
  // To the minute, so that it is the same question for a while.
  out.set("since", new Date(Math.floor(now() / 60) * 60000 - since * 86400000).toISOString());
  const kind = q.get("kind") ?? "all";
  if (kind !== "all") out.set(kind, "true");
  if (q.get("filter")) out.set("text", q.get("filter")!);
  return out.toString();
}

export function RunsPage() {
  const route = useRoute();
  if (route.name) return <RunPage name={route.name} key={route.name} />;
  const q = route.query;
  const { runs, columns, more, problem } = useRuns(queryOf(q), true);
  const byJob = q.get("by") === "job";
  return (
    <Panel
      title={runs ? `${byJob ? "Jobs" : "Runs"} (${byJob ? jobsOf(runs).length : runs.length}${more ? "+" : ""})` : "Runs"}
      tools={
        <>
          <Choice label="Since" value={q.get("since") ?? "1d"} options={Object.keys(days)} choose={(v) => setQuery({ since: v })} />
          <Choice label="Show" value={(q.get("kind") ?? "all") as (typeof kinds)[number]} options={kinds} choose={(v) => setQuery({ kind: v === "all" ? "" : v })} />
          <button aria-pressed={byJob} onClick={() => setQuery({ by: byJob ? "" : "job" })}>
            by job
          </button>
        </>
      }
    >
      {problem && <Empty>{problem}</Empty>}
      {runs && (byJob ? <JobTable runs={runs} columns={columns} /> : <RunTable runs={runs} columns={columns} />)}
      {!runs && !problem && <Empty>…</Empty>}
    </Panel>
  );
}

/** Runs as a table, the newest first. */
export function RunTable(p: { runs: Run[]; columns: SheetColumn[] }) {
  const [picked, setPicked] = useState<string[]>([]);
  if (p.runs.length === 0) return <Empty>No program used a device in this time.</Empty>;
  const pick = (id: string) => {
    const other = picked.filter((x) => x !== id);
    if (picked.includes(id) || other.length === 0) return setPicked(picked.includes(id) ? other : [id]);
    const order = p.runs.map((r) => String(r.id)); // oldest first
    const [before, after] = [id, other[0]!].sort((a, b) => order.indexOf(a) - order.indexOf(b));
    return go(`/runs/r${after}?with=r${before}`);
  };
  const runs = [...p.runs].reverse();
  const box = (_: unknown, at: number) => {
    const id = String(runs[at]!.id);
    return <input type="checkbox" checked={picked.includes(id)} onChange={() => pick(id)} aria-label={`compare run r${id} with another`} />;
  };
  const columns = [{ name: "compare", head: "Compare", help: "pick two to compare them" }, ...p.columns];
  const rows = runs.map((r) => ({ ...r.row, cells: [{ text: "", n: null }, ...r.row.cells] }));
  return <Table of={{ columns, rows }} label="Runs" class="runs" instead={{ compare: box }} />;
}

interface Job {
  id: string;
  runs: Run[];
}

/** The jobs of runs, the one that ran last first. */
export function jobsOf(runs: Run[]): Job[] {
  const jobs = new Map<string, Job>();
  for (const r of runs) {
    if (!r.job) continue;
    const key = r.job.kind + " " + r.job.id;
    const j = jobs.get(key) ?? { id: r.job.id, runs: [] };
    j.runs.push(r);
    jobs.set(key, j);
  }
  return [...jobs.values()].sort((a, b) => Date.parse(b.runs.at(-1)!.last_seen) - Date.parse(a.runs.at(-1)!.last_seen));
}

/** Runs by the job that they belong to. */
function JobTable(p: { runs: Run[]; columns: SheetColumn[] }) {
  const jobs = useMemo(() => jobsOf(p.runs), [p.runs]);
  const said = (r: Run, column: string) => r.row.cells[p.columns.findIndex((c) => c.name === column)]!.text;
  if (jobs.length === 0) return <Empty>No job of Slurm or Kubernetes used a device in this time.</Empty>;
  return (
    <>
      {jobs.map((j) => (
        <details class="job" key={j.id} open={jobs.length < 8}>
          <summary>
            <b>{said(j.runs[0]!, "job")}</b> {[...new Set(j.runs.map((r) => said(r, "user")))].join(", ")} · {j.runs.length} {j.runs.length === 1 ? "run" : "runs"} · since {moment(j.runs[0]!.start)}
            {j.runs.some((r) => r.end.kind === "running") ? " · running" : ""}
            {j.runs.some((r) => r.left.length > 0) ? " · left memory behind" : ""}
          </summary>
          <RunTable runs={j.runs} columns={p.columns} />
        </details>
      ))}
    </>
  );
}
