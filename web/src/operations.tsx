// What runs on the chips: operations by the share of the time that they take.

import { moment } from "./figures";
import { A, Empty, Panel } from "./parts";
import type { ChipWork, Gap, Operation, Process } from "./types";

/** A time of programs, as terminals show it: "342 µs", "1.9 ms", "4.2 s". */
export function programTime(ns: number): string {
  const three = (n: number) => (n < 9.95 ? n.toFixed(1) : n.toFixed(0));
  if (ns < 1e3) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return three(ns / 1e3) + " µs";
  if (ns < 1e9) return three(ns / 1e6) + " ms";
  return three(ns / 1e9) + " s";
}

function operationName(o: Operation): string {
  if (o.others) return `(${o.others} others)`;
  return o.name || "(no name known)";
}

interface Row {
  key: string;
  pid: number;
  chip: string;
  share: number | null;
  mark: string;
  op: Operation | null; // null: the time between programs
}

/** The mark of the shares of a chip, as ChipWork.ShareBound in internal/model has it. */
function shareMark(c: ChipWork): string {
  if (c.busy_bound === "at_least" && c.cause !== "unreported") return "≥";
  return c.busy_bound === undefined || c.busy_bound === "exact" ? "" : "~";
}

/** The rows of some processes on some device, those that take most first. */
function rowsOf(list: Process[], device: number | undefined): Row[] {
  const rows: Row[] = [];
  for (const p of list) {
    for (const c of p.work?.chips ?? []) {
      if (device !== undefined && c.index !== device) continue;
      const chip = `${c.index ?? "–"}${c.chip ?? ""}`;
      const mark = shareMark(c);
      for (const op of c.operations) rows.push({ key: `${p.pid} ${c.chip_id} ${op.name} ${op.others ?? ""}`, pid: p.pid, chip, share: op.share_ratio, mark, op });
      if (c.late_ratio) rows.push({ key: `${p.pid} ${c.chip_id} late`, pid: p.pid, chip, share: c.late_ratio, mark: mark && "~", op: null });
    }
  }
  return rows.sort((a, b) => (b.share ?? 0) - (a.share ?? 0) || (b.op?.time_ns ?? 0) - (a.op?.time_ns ?? 0));
}

const most = 12;

/** The operations of processes, of one device or of all. Nothing where none are reported. */
export function Operations(p: { processes: Process[]; device?: number }) {
  const rows = rowsOf(p.processes, p.device);
  if (rows.length === 0) return null;
  const share = ({ share: v, mark }: Row) => {
    if (v === null) return "–";
    if (v > 0 && v < 0.0005) return "<0.1 %";
    return mark + (mark === "≥" ? Math.floor(1000 * v) / 10 : 100 * v).toFixed(1) + " %";
  };
  return (
    <Panel title="Operations">
      <table class="operations">
        <thead>
          <tr>
            <th scope="col" class="num">Share</th>
            <th scope="col">Operation</th>
            <th scope="col" class="num">Calls/s</th>
            <th scope="col" class="num">Mean</th>
            <th scope="col" class="num">Longest</th>
            <th scope="col">Dev</th>
            <th scope="col">Process</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((r) => (
            <tr key={r.key}>
              <td class="num">{share(r)}</td>
              <td>{r.op ? operationName(r.op) : "(between programs: the host is late)"}</td>
              <td class="num">{r.op && r.op.calls_per_s !== null ? r.op.calls_per_s.toFixed(0) : ""}</td>
              <td class="num">{r.op && r.op.calls > 0 ? programTime(r.op.time_ns / r.op.calls) : ""}</td>
              <td class="num">{r.op ? programTime(r.op.longest_ns) : ""}</td>
              <td>{r.chip}</td>
              <td>
                <A to={"/process/" + r.pid}>{r.pid}</A>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > most && <Empty>and {rows.length - most} more: ttmon ops</Empty>}
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
