// The table of processes: sorted, filtered, as a tree.

import { useMemo } from "preact/hooks";
import { A } from "./parts";
import { setQuery, useRoute } from "./route";
import { mark } from "./figures";
import { state } from "./store";
import type { Cell, Column, Said, SaidProcess } from "./answers";
import type { Cells, Process, Snapshot } from "./types";

interface Row {
  p: Process;
  s: SaidProcess;
  cells: Cells; // of all its devices, or of the one that is meant
  depth: number;
}

const cell = (r: Row, c: Column): Cell => r.cells[c.name] ?? { text: "–", n: null };

/** Ranks of columns: a telephone has up to the first; up to the second they always stand there; up to the third in the overview. */
const [narrow, always, usual] = [2, 4, 8];

/** Whether a row has something to show in a column. */
function has(r: Row, c: Column): boolean {
  const v = cell(r, c);
  if (!c.right) return v.text !== (state.words?.nothing ?? "–");
  return c.rank > 0 ? v.n !== null : (v.n ?? 0) > 0;
}

/** The columns to show. What no process has is left out, and the command has that room. */
function columnsOf(rows: Row[], brief: boolean, device: number | undefined): Column[] {
  const apart = device === undefined ? [] : ["device", "job"]; // on the page of a device
  return (state.words?.processes ?? []).filter((c) => {
    const fits = !brief || (c.rank > 0 && c.rank <= usual);
    return fits && !apart.includes(c.name) && ((c.rank > 0 && c.rank <= always) || rows.some((r) => has(r, c)));
  });
}

/** Whether a process is meant by a filter: each word is in one of its texts. */
function matches(r: Row, filter: string): boolean {
  const text = Object.values(r.s.values).map((c) => c.text).join(" ").toLowerCase() + " dev" + (r.s.values["device"]?.text ?? "");
  return filter.toLowerCase().split(/\s+/).every((w) => text.includes(w));
}

function sorted(rows: Row[], key: string, down: boolean): Row[] {
  const sign = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a.cells[key], b.cells[key]];
    const order = x?.n != null || y?.n != null ? (x?.n ?? -1) - (y?.n ?? -1) : (x?.text ?? "").localeCompare(y?.text ?? "", undefined, { numeric: true });
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
  const down = (q.get("order") ?? (state.words?.processes.find((c) => c.name === key)?.right ? "down" : "up")) === "down";
  const filter = q.get("filter") ?? "";
  const asTree = !p.brief && q.get("tree") === "1";
  const rows = useMemo(() => {
    let list = p.snap.processes.flatMap((proc, i): Row[] => {
      const s = p.said.processes[i]!;
      const use = proc.devices.findIndex((d) => d.index === p.device);
      return p.device !== undefined && use < 0 ? [] : [{ p: proc, s, cells: { ...s.values, ...s.uses[use]?.values }, depth: 0 }];
    });
    if (filter) list = list.filter((r) => matches(r, filter));
    list = sorted(list, key, down);
    return asTree ? tree(list) : list;
  }, [p.snap, p.said, key, down, filter, asTree, p.device]);
  const shown = columnsOf(rows, p.brief ?? false, p.device);
  const most = p.brief ? 30 : 1000;
  if (rows.length === 0) return <p class="empty">{filter ? "No process matches the filter." : "No process uses a device."}</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Processes">
      <table class={p.device === undefined ? "processes" : "processes beside"}>
        <thead>
          <tr>
            {shown.map((c) => (
              <th key={c.name} class={cls(c)} aria-sort={c.name === key ? (down ? "descending" : "ascending") : undefined}>
                <button onClick={() => setQuery({ sort: c.name, order: c.name === key && down ? "up" : c.right ? "down" : c.name === key ? "down" : "up" })}>
                  {!c.right && c.head}
                  <span class="arrow" aria-hidden="true">
                    {c.name === key ? (down ? "▾" : "▴") : ""}
                  </span>
                  {c.right && c.head}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((r) => (
            <tr key={r.p.pid + "/" + r.p.start_ticks}>
              {shown.map((c) => (
                <td key={c.name} class={cls(c)} title={titleOf(c, r)}>
                  {c.name === "pid" && r.p.pid ? (
                    <A to={`/process/${r.p.pid}`}>{cell(r, c).text}</A>
                  ) : c.name === "command" ? (
                    <span style={r.depth ? { paddingLeft: r.depth * 1.2 + "em" } : undefined}>
                      {r.depth > 0 && "└ "}
                      {cell(r, c).text}
                    </span>
                  ) : (
                    cell(r, c).text
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

const cls = (c: Column): string => [c.right ? "num" : "", c.rank > 0 && c.rank <= narrow ? "narrow" : "", "c-" + c.name].join(" ").trim();

function titleOf(c: Column, r: Row): string | undefined {
  const v = cell(r, c);
  if (c.name === "command") return v.text;
  if (v.why) return v.why;
  if (v.bound && mark(v.bound)) return r.s.uses.flatMap((u) => u.reasons).join("\n");
  return undefined;
}
