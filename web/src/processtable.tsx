// The table of processes: sorted, filtered, as a tree.

import { useMemo } from "preact/hooks";
import { A } from "./parts";
import { setQuery, useRoute } from "./route";
import { mark } from "./figures";
import type { Figure, Pools, Process, Said, SaidBusy, SaidProcess, Snapshot } from "./types";

interface Row {
  p: Process;
  s: SaidProcess;
  pools: Pools; // of all its devices, or of the one that is meant
  busy: SaidBusy; // of the busiest chip, likewise
  depth: number;
}

interface Column {
  key: string;
  name: string;
  num?: boolean;
  brief?: boolean; // in the overview too
  narrow?: boolean; // on a telephone too
  text: (r: Row) => string;
  rank: (r: Row) => number | string;
}

const size = (f: Figure | undefined): number => f?.bytes ?? -1;
const devices = (p: Process): string => ranges(p.devices.flatMap((d) => (d.index === null ? [] : [d.index])));

function ranges(list: number[]): string {
  const sorted = [...new Set(list)].sort((a, b) => a - b);
  const out: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let j = i;
    while (j + 1 < sorted.length && sorted[j + 1] === sorted[j]! + 1) j++;
    out.push(j > i + 1 ? `${sorted[i]}-${sorted[j]}` : sorted.slice(i, j + 1).join(","));
    i = j + 1;
  }
  return out.join(",") || "–";
}

const pool = (key: string, name: string, brief: boolean, narrow = false): Column => ({
  key,
  name,
  num: true,
  brief,
  narrow,
  text: (r) => r.pools[key]?.text ?? "",
  rank: (r) => size(r.pools[key]),
});

const columns: Column[] = [
  { key: "pid", name: "PID", num: true, brief: true, narrow: true, text: (r) => String(r.p.pid || "–"), rank: (r) => r.p.pid },
  { key: "user", name: "User", brief: true, text: (r) => r.s.user, rank: (r) => r.s.user },
  { key: "dev", name: "Dev", brief: true, narrow: true, text: (r) => devices(r.p), rank: (r) => r.p.devices[0]?.index ?? 999 },
  pool("dram", "DRAM", true, true),
  pool("l1", "L1", true),
  pool("l1_small", "L1 small", false),
  pool("trace", "Trace", false),
  pool("cb", "CB", false),
  pool("kernel", "Kernels", false),
  { key: "busy", name: "Busy", num: true, brief: true, text: (r) => r.busy.text, rank: (r) => r.busy.ratio ?? -1 },
  { key: "cpu", name: "CPU", num: true, brief: true, text: (r) => r.s.cpu, rank: (r) => r.p.cpu_percent ?? -1 },
  { key: "rss", name: "RSS", num: true, text: (r) => r.s.rss, rank: (r) => r.p.rss_bytes ?? -1 },
  { key: "time", name: "Time", num: true, brief: true, text: (r) => r.s.age, rank: (r) => -Date.parse(r.p.start_time ?? "") || 0 },
  { key: "job", name: "Job", brief: true, text: (r) => r.s.job, rank: (r) => r.s.job },
  { key: "command", name: "Command", brief: true, narrow: true, text: (r) => r.s.command, rank: (r) => r.s.command },
];

/** Whether a process is meant by a filter: each word is in one of its texts. */
function matches(r: Row, filter: string): boolean {
  const text = columns.map((c) => c.text(r)).join(" ").toLowerCase() + " dev" + devices(r.p);
  return filter.toLowerCase().split(/\s+/).every((w) => text.includes(w));
}

function sorted(rows: Row[], key: string, down: boolean): Row[] {
  const column = columns.find((c) => c.key === key) ?? columns[3]!;
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const x = column.rank(a);
    const y = column.rank(b);
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return sign * order || a.p.pid - b.p.pid;
  });
}

/** Children below their parents. */
function tree(rows: Row[]): Row[] {
  const there = new Set(rows.map((r) => r.p.pid));
  const out: Row[] = [];
  const add = (parent: number, depth: number) => {
    for (const r of rows) {
      if (there.has(r.p.ppid) && r.p.ppid !== r.p.pid ? r.p.ppid === parent : parent === -1) {
        out.push({ ...r, depth });
        if (depth < 20) add(r.p.pid, depth + 1);
      }
    }
  };
  add(-1, 0);
  return out;
}

export function ProcessTable(p: { snap: Snapshot; said: Said; brief?: boolean; device?: number }) {
  const q = useRoute().query;
  const key = q.get("sort") ?? "dram";
  const down = (q.get("order") ?? (key === "dram" || key === "l1" || key === "busy" || key === "cpu" || key === "rss" ? "down" : "up")) === "down";
  const filter = q.get("filter") ?? "";
  const asTree = !p.brief && q.get("tree") === "1";
  const rows = useMemo(() => {
    let list = p.snap.processes.flatMap((proc, i): Row[] => {
      const s = p.said.processes[i]!;
      const use = proc.devices.findIndex((d) => d.index === p.device);
      return p.device !== undefined && use < 0 ? [] : [{ p: proc, s, pools: s.uses[use]?.pools ?? s.pools, busy: s.uses[use]?.busy ?? s.busy, depth: 0 }];
    });
    if (filter) list = list.filter((r) => matches(r, filter));
    list = sorted(list, key, down);
    return asTree ? tree(list) : list;
  }, [p.snap, p.said, key, down, filter, asTree, p.device]);
  // Where no process is in a job, or reports programs, the command has that room.
  const jobs = p.snap.processes.some((x) => x.container || x.slurm_job || x.systemd_unit);
  const works = p.snap.processes.some((x) => x.work?.chips.length);
  const shown = columns.filter((c) => (!p.brief || c.brief) && (c.key !== "busy" || works) && (c.key !== "job" || (jobs && p.device === undefined)) && (c.key !== "dev" || p.device === undefined));
  const most = p.brief ? 30 : 1000;
  if (rows.length === 0) return <p class="empty">{filter ? "No process matches the filter." : "No process uses a device."}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Processes">
      <table class={p.device === undefined ? "processes" : "processes beside"}>
        <thead>
          <tr>
            {shown.map((c) => (
              <th key={c.key} class={cls(c)} aria-sort={c.key === key ? (down ? "descending" : "ascending") : undefined}>
                <button onClick={() => setQuery({ sort: c.key, order: c.key === key && down ? "up" : c.num ? "down" : c.key === key ? "down" : "up" })}>
                  {!c.num && c.name}
                  <span class="arrow" aria-hidden="true">
                    {c.key === key ? (down ? "▾" : "▴") : ""}
                  </span>
                  {c.num && c.name}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((r) => (
            <tr key={r.p.pid + "/" + r.p.start_ticks}>
              {shown.map((c) => (
                <td key={c.key} class={cls(c)} title={titleOf(c, r)}>
                  {c.key === "pid" && r.p.pid ? (
                    <A to={`/process/${r.p.pid}`}>{c.text(r)}</A>
                  ) : c.key === "command" ? (
                    <span style={r.depth ? { paddingLeft: r.depth * 1.2 + "em" } : undefined}>
                      {r.depth > 0 && "└ "}
                      {c.text(r)}
                    </span>
                  ) : (
                    c.text(r)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && (
        <p class="empty">
          and {rows.length - most} more: <A to="/processes">all of them</A>
        </p>
      )}
    </div>
  );
}

const cls = (c: Column): string => [c.num ? "num" : "", c.narrow ? "narrow" : "", "c-" + c.key].join(" ").trim();

function titleOf(c: Column, r: Row): string | undefined {
  if (c.key === "command") return c.text(r);
  if (c.key === "busy") return r.busy.why || "a program of it ran in this share of the time";
  const f = r.pools[c.key];
  if (f && mark(f.bound)) return r.s.uses.flatMap((u) => u.reasons).join("\n");
  return undefined;
}
