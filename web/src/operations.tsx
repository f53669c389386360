// What runs on the chips: operations by the share of the time that they take.

import { moment } from "./figures";
import { A, Empty, Panel } from "./parts";
import { Table } from "./sheet";
import { state } from "./store";
import type { Said } from "./answers";
import type { ChipWork, Gap, Process } from "./types";

/** A time of programs, as terminals show it: "342 µs", "1.9 ms", "4.2 s". */
function programTime(ns: number): string {
  const three = (n: number) => (n < 9.95 ? n.toFixed(1) : n.toFixed(0));
  if (ns < 1e3) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return three(ns / 1e3) + " µs";
  if (ns < 1e9) return three(ns / 1e6) + " ms";
  return three(ns / 1e9) + " s";
}

const most = 12;

/** The operations of a process, or on a device. Nothing where none are reported. */
export function Operations(p: { said: Said; pid?: number; device?: number }) {
  const list = p.said.operations.filter((o) => (p.pid === undefined || o.pid === p.pid) && (p.device === undefined || o.device === p.device));
  const columns = state.words?.operations;
  if (list.length === 0 || !columns) return null;
  const process = (_: unknown, at: number) => <A to={"/process/" + list[at]!.pid}>{list[at]!.pid}</A>;
  return (
    <Panel title="Operations">
      <Table of={{ columns, rows: list.slice(0, most) }} label="Operations" class="operations" instead={{ process }} />
      {list.length > most && <Empty>and {list.length - most} more: ttmon ops</Empty>}
    </Panel>
  );
}

const mostGaps = 5;

/** The longest times between two programs of a process, over its chips. Nothing where none are listed. */
export function Gaps(p: { process: Process }) {
  const rows: { c: ChipWork; g: Gap }[] = [];
  for (const c of p.process.work?.chips ?? []) for (const g of c.gaps ?? []) rows.push({ c, g });
  if (rows.length === 0) return null;
  rows.sort((a, b) => b.g.length_ns - a.g.length_ns);
  const unsure = rows.slice(0, mostGaps).some((r) => r.c.gaps_cause);
  return (
    <Panel title="Longest gaps between programs">
      <table class="operations">
        <thead>
          <tr>
            <th scope="col" class="num">Length</th>
            <th scope="col">Until</th>
            <th scope="col">After</th>
            <th scope="col">Dev</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, mostGaps).map(({ c, g }, i) => (
            <tr key={i}>
              <td class="num">{(c.gaps_cause ? "~" : "") + programTime(g.length_ns)}</td>
              <td>{g.end ? moment(g.end) : "–"}</td>
              <td>{g.after || "(no name known)"}</td>
              <td>{`${c.index ?? "–"}${c.chip ?? ""}`}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {unsure && <Empty>~: a program that was not reported may have run in it</Empty>}
    </Panel>
  );
}
