// Where the memory is: who holds it, how full each pool is, what the dead left.

import { useRef } from "preact/hooks";
import { BankMap, Fit, useMap } from "./bankmap";
import type { MapAnswer, MapPool } from "./answers";
import { ageOf, fillOf } from "./holders";
import { A, Bar, Choice, Empty, Panel, poolNames, Reasons } from "./parts";
import { bytes, mark, moment, noLine } from "./figures";
import { setQuery, useRoute } from "./route";
import { offers, type State } from "./store";
import { Treemap, type Tile } from "./treemap";
import { useRangeData } from "./metricchart";
import { told } from "./types";
import type { Device, PoolUse } from "./types";

export function MemoryPage(p: { s: State }) {
  const q = useRoute().query;
  const pool = q.get("pool") ?? "dram";
  const device = p.s.snap!.devices.find((d) => d.bus_id === q.get("device"))?.index ?? null;
  const exact = exactPIDs(p.s, pool, device);
  const first = useRef({ of: "", pid: 0 });
  // The largest is shown first, and stays while sizes change.
  const of = `${pool} ${device}`;
  if (first.current.of !== of || !exact.includes(first.current.pid)) first.current = { of, pid: exact[0] ?? 0 };
  const chosen = Number(q.get("pid")) || first.current.pid;
  const found = useMap(chosen, p.s);
  const colours = processColours(p.s);
  return (
    <div class="memory">
      <div>
        <Panel title="Who holds what" tools={<Choice label="pool" value={pool} options={Object.keys(poolNames)} names={poolNames} choose={(v) => setQuery({ pool: v === "dram" ? "" : v })} />}>
          <Treemap tiles={tiles(p.s, pool, found.map, colours)} />
          <Owners s={p.s} pool={pool} colours={colours} />
        </Panel>
        <Allocators s={p.s} exact={exact} device={device} chosen={chosen} map={found.map} problem={found.problem} />
        <Dead s={p.s} />
      </div>
      <Pools s={p.s} pool={pool} />
    </div>
  );
}

/** A command without the folders of its program and files: "python model.py --batch 8". */
const shortly = (command: string): string => command.replaceAll(/(^|\s)\/\S*\/(?=[^\s/])/g, "$1");

/** What a process holds of a pool, of one device or of all. */
function heldBy(s: State, i: number, pool: string, device: number | null): number {
  return s.snap!.processes[i]!.devices.reduce((n, u, j) => n + (device === null || u.index === device ? (s.said?.processes[i]?.uses[j]?.values[pool]?.n ?? 0) : 0), 0);
}

/** The processes whose allocators are known, those that hold most first. */
function exactPIDs(s: State, pool: string, device: number | null): number[] {
  return s
    .snap!.processes.map((x, i) => ({ x, held: heldBy(s, i, pool, device) }))
    .filter(({ x }) => x.devices.some((d) => (d.source === "uprobe" || d.source === "track") && (device === null || d.index === device)))
    .sort((a, b) => b.held - a.held || a.x.pid - b.x.pid)
    .map(({ x }) => x.pid);
}

/** A colour for each process, in the order in which they started; the ninth and later ones have shades of the first. */
function processColours(s: State): Map<number, string> {
  const order = [...s.snap!.processes].sort((a, b) => a.start_ticks - b.start_ticks || a.pid - b.pid);
  const shades = [(c: string) => c, (c: string) => `color-mix(in srgb, ${c} 50%, var(--text))`, (c: string) => `color-mix(in srgb, ${c} 45%, var(--panel))`];
  return new Map(order.map((x, i) => [x.pid, shades[Math.floor(i / 8) % shades.length]!(`var(--line${(i % 8) + 1})`)]));
}

/** Whose the colours of the areas are: each process once. */
function Owners(p: { s: State; pool: string; colours: Map<number, string> }) {
  const list = p.s
    .snap!.processes.map((x, i) => ({ x, i, held: heldBy(p.s, i, p.pool, null) }))
    .filter((o) => o.held > 0)
    .sort((a, b) => b.held - a.held);
  if (list.length === 0) return null;
  return (
    <ul class="owners" aria-label="Processes by colour">
      {list.map(({ x, i, held }) => (
        <li key={x.pid}>
          <A to={"/process/" + x.pid} title={told(p.s.said!.processes[i], "command")}>
            <i class="swatch" style={{ background: p.colours.get(x.pid)! }} aria-hidden="true" /> <span class="line">{shortly(told(p.s.said!.processes[i], "command"))}</span>
          </A>{" "}
          <b class="num">{inAll(p.s, i, p.pool, held)}</b> <span class="muted">{x.pid}</span>
        </li>
      ))}
    </ul>
  );
}

/** A sum of figures, with the mark of the one that is least sure. */
function inAll(s: State, i: number, pool: string, held: number): string {
  const uses = s.said!.processes[i]!.uses.map((u) => u.values[pool]);
  const unsure = uses.some((f) => f?.bound === "unsure");
  const least = uses.some((f) => f?.bound === "at_least" || (f && f.n === null));
  return mark(unsure ? "unsure" : least ? "at_least" : "exact") + bytes(held);
}

/** What a process holds of a pool of a device: by line, or else block by block. */
function inside(map: MapAnswer | null, pid: number, device: number, pool: string): Tile[] {
  if (!map || map.pid !== pid) return [];
  const here = (chip: string) => chip === `device ${device}` || chip.startsWith(`device ${device} `);
  const pools = map.pools.filter((x) => x.pool === pool && x.chips.some(here));
  if (pools.some((x) => x.holders.some((h) => h.number > 0))) return byLine(pools, here);
  return pools
    .flatMap((x) => x.blocks.map(([addr, size, asked, born]): Tile => ({ name: "0x" + addr.toString(16), bytes: asked || size * x.banks, text: bytes(asked || size * x.banks), kind: "part", about: ageOf(born) })))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 60);
}

/** What the lines of a program hold on the chips of a device. */
function byLine(pools: MapPool[], here: (chip: string) => boolean): Tile[] {
  const lines = new Map<string, { number: number; bytes: number; blocks: number; born: number; tensors: Set<string>; grew: boolean }>();
  for (const x of pools) {
    for (const h of x.holders) {
      const name = h.line || (h.other_lines ? `${h.other_lines} other lines` : noLine());
      const of = lines.get(name) ?? { number: h.number, bytes: 0, blocks: 0, born: 0, tensors: new Set<string>(), grew: false };
      of.bytes += h.bytes * x.chips.filter(here).length;
      of.blocks += h.blocks;
      of.born = Math.min(of.born || Infinity, h.oldest_ms || Infinity);
      of.grew ||= h.grew;
      for (const s of h.sites) if (s.tensor) of.tensors.add(s.tensor);
      lines.set(name, of);
    }
  }
  return [...lines].map(([name, of]): Tile => {
    const tensor = of.tensors.size === 1 ? [...of.tensors][0] : of.tensors.size > 1 ? `${of.tensors.size} kinds of tensors` : "";
    const about = [tensor, of.blocks === 1 ? "1 block" : `${of.blocks} blocks`, of.born && of.born < Infinity ? "oldest " + ageOf(of.born) : "age not known", of.grew ? "grew step by step" : ""];
    return { name, bytes: of.bytes, text: bytes(of.bytes), kind: "part", colour: fillOf(of.number), about: about.filter(Boolean).join(" · ") };
  });
}

/** Host → device → process → part, and what is not used. */
function tiles(s: State, pool: string, map: MapAnswer | null, colours: Map<number, string>): Tile[] {
  const snap = s.snap!;
  const said = s.said!;
  return snap.devices.map((d): Tile => {
    const children: Tile[] = [];
    snap.processes.forEach((proc, i) => {
      proc.devices.forEach((u, j) => {
        const f = said.processes[i]?.uses[j]?.values[pool];
        if (u.index !== d.index || !f?.n) return;
        children.push({ name: `${shortly(told(said.processes[i], "command"))} (${proc.pid})`, whose: String(proc.pid), bytes: f.n, text: f.text, to: "/process/" + proc.pid, kind: "process", colour: colours.get(proc.pid), about: told(said.processes[i], "user"), children: inside(map, proc.pid, d.index, pool) });
      });
    });
    const use = d.memory[pool] as PoolUse | undefined;
    const held = children.reduce((n, c) => n + c.bytes, 0);
    const total = pool === "dram" ? (use?.total_bytes ?? null) : null;
    if (total !== null && total > held) {
      children.push({ name: "free, as far as known", bytes: total - held, text: "", kind: "rest" });
    }
    return { name: snap.devices.length > 8 ? String(d.index) : `device ${d.index} ${d.board ?? d.arch}`, short: String(d.index), bytes: Math.max(total ?? 0, held), text: said.devices[snap.devices.indexOf(d)]?.pools[pool]?.text ?? "", to: "/device/" + d.bus_id, kind: "device", children };
  });
}

function Pools(p: { s: State; pool: string }) {
  const snap = p.s.snap!;
  const said = p.s.said!;
  const minute = Math.ceil(Date.parse(snap.time) / 60000) * 60;
  const { answer } = useRangeData(offers("/v1/range") ? ["memory.used"] : [], "", { start: minute - 86400, end: minute, moving: false, name: "24h" });
  const peak = (d: Device) => {
    const series = answer?.series.find((x) => x.bus_id === d.bus_id);
    let most = -1;
    let at = 0;
    series?.values.forEach((v, i) => {
      if (v !== null && v > most) [most, at] = [v, i];
    });
    if (!series || most < 0) return nothing;
    const b = series.bounds?.[at];
    return (b ? mark(b === 1 ? "at_least" : "unsure") : "") + bytes(most * 2 ** 20);
  };
  // A column without values is not shown.
  const holes = snap.devices.some((d) => [d.memory[p.pool], ...d.chips.map((c) => c.memory[p.pool])].some((x) => hole(x) !== nothing));
  const dead = said.devices.some((d) => d.stale || d.chips.some((c) => c.stale));
  const peaks = p.pool === "dram" && offers("/v1/range");
  return (
    <Panel title="Devices and chips">
      <div class="scroll" tabIndex={0} role="region" aria-label="Memory of devices">
        <table class="memtable">
          <thead>
            <tr>
              <th>Device</th>
              <th class="barcol">{poolNames[p.pool] ?? p.pool}</th>
              <th class="num">In use</th>
              {peaks && <th class="num wide">24 h peak</th>}
              {holes && <th class="num wide">Largest hole</th>}
              {dead && <th class="num wide">Left by exited processes</th>}
            </tr>
          </thead>
          <tbody>
            {snap.devices.flatMap((d, i) => {
              const s = said.devices[i]!;
              const rows = [
                <tr key={d.bus_id}>
                  <td>
                    <A to={"/device/" + d.bus_id}>
                      {d.index} {s.name}
                    </A>
                  </td>
                  <td class="barcol">
                    <Bar figure={s.pools[p.pool]!} label={p.pool} />
                  </td>
                  <td class="num">{s.pools[p.pool]!.text}</td>
                  {peaks && <td class="num wide">{peak(d)}</td>}
                  {holes && <td class="num wide">{hole(d.memory[p.pool])}</td>}
                  {dead && <td class="num wide">{s.stale || nothing}</td>}
                </tr>,
              ];
              if (s.chips.length > 1) {
                s.chips.forEach((c, j) =>
                  rows.push(
                    <tr key={d.bus_id + j} class="chiprow">
                      <td>└ chip {c.name || j}</td>
                      <td class="barcol">
                        <Bar figure={c.pools[p.pool]!} label={"chip " + (c.name || j)} />
                      </td>
                      <td class="num">{c.pools[p.pool]!.text}</td>
                      {peaks && <td class="num wide" />}
                      {holes && <td class="num wide">{hole(d.chips[j]?.memory[p.pool])}</td>}
                      {dead && <td class="num wide">{c.stale || nothing}</td>}
                    </tr>,
                  ),
                );
              }
              return rows;
            })}
          </tbody>
        </table>
      </div>
      <Reasons list={[...new Set(said.devices.flatMap((d) => d.reasons))]} />
    </Panel>
  );
}

const nothing = "–";

function hole(use: unknown): string {
  const n = (use as PoolUse | undefined)?.largest_free_bytes;
  return n === null || n === undefined ? nothing : bytes(n);
}

/** The banks of one process whose allocator is known exactly. */
function Allocators(p: { s: State; exact: number[]; device: number | null; chosen: number; map: MapAnswer | null; problem: string }) {
  const names = Object.fromEntries(p.s.snap!.processes.map((x, i) => [String(x.pid), `${shortly(told(p.s.said!.processes[i], "command"))} (${x.pid})`]));
  const listed = p.chosen && !p.exact.includes(p.chosen) ? [p.chosen, ...p.exact] : p.exact;
  const devices = { "": "all", ...Object.fromEntries(p.s.snap!.devices.map((d) => [d.bus_id, `${d.index} ${d.board ?? d.arch}`])) };
  const bus = p.s.snap!.devices.find((d) => d.index === p.device)?.bus_id ?? "";
  return (
    <Panel
      title="Banks and holes"
      tools={
        p.exact.length > 0 && (
          <>
            {p.s.snap!.devices.length > 1 && <Choice label="device" value={bus} options={Object.keys(devices)} names={devices} choose={(v) => setQuery({ device: v, pid: "" })} />}
            <Choice label="process" value={String(p.chosen)} options={listed.map(String)} names={names} choose={(v) => setQuery({ pid: v })} />
          </>
        )
      }
    >
      {!p.chosen && <Empty>No process here has an allocator that is watched: only sums are known. Programs started with ttmon run, or while ttmond runs as root, show their blocks.</Empty>}
      {p.chosen > 0 && !p.map && <Empty>{p.problem || "…"}</Empty>}
      {p.map && (
        <>
          <div class="body">
            {p.map.pools.map((x, i) => (
              <BankMap key={i} pool={x} />
            ))}
          </div>
          <Fit pid={p.chosen} />
          <Reasons list={p.map.doubts} />
        </>
      )}
    </Panel>
  );
}

function Dead(p: { s: State }) {
  const ghosts = p.s.snap!.ghosts;
  if (ghosts.length === 0) return null;
  return (
    <Panel title="Left by exited processes">
      <div class="scroll" tabIndex={0} role="region" aria-label="Memory of dead processes">
        <table>
          <thead>
            <tr>
              <th>Device</th>
              <th class="num">PID</th>
              <th>Name</th>
              <th class="num">DRAM</th>
              <th class="num">L1</th>
              <th>Last written</th>
            </tr>
          </thead>
          <tbody>
            {ghosts.map((g, i) => (
              <tr key={i}>
                <td>{g.index ?? "–"}</td>
                <td class="num">{g.pid}</td>
                <td>{g.name || "–"}</td>
                <td class="num">{g.dram_bytes === null ? "–" : mark(g.dram_bound) + bytes(g.dram_bytes)}</td>
                <td class="num">{g.l1_bytes === null ? "–" : bytes(g.l1_bytes)}</td>
                <td>{g.updated ? moment(g.updated) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="empty">It is in no figure above. ttmon mem --stale says what can be removed.</p>
    </Panel>
  );
}
