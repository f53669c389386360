// Where the memory is: who holds it, how full each pool is, what the dead left.

import { BankMap, Fit, type MapAnswer, useMap } from "./bankmap";
import { A, Bar, Choice, Empty, Panel, poolNames, Reasons } from "./parts";
import { bytes, mark, moment } from "./figures";
import { setQuery, useRoute } from "./route";
import { offers, type State } from "./store";
import { Treemap, type Tile } from "./treemap";
import { useRangeData } from "./metricchart";
import type { Device, PoolUse } from "./types";

export function MemoryPage(p: { s: State }) {
  const q = useRoute().query;
  const pool = q.get("pool") ?? "dram";
  const exact = exactPIDs(p.s);
  const chosen = Number(q.get("pid")) || exact[0] || 0;
  const found = useMap(chosen, p.s);
  return (
    <div class="memory">
      <div>
        <Panel title="Who holds what" tools={<Choice label="pool" value={pool} options={Object.keys(poolNames)} names={poolNames} choose={(v) => setQuery({ pool: v === "dram" ? "" : v })} />}>
          <Treemap tiles={tiles(p.s, pool, found.map)} />
        </Panel>
        <Allocators exact={exact} chosen={chosen} map={found.map} problem={found.problem} />
        <Dead s={p.s} />
      </div>
      <Pools s={p.s} pool={pool} />
    </div>
  );
}

/** The processes whose allocators are known. */
function exactPIDs(s: State): number[] {
  return s.snap!.processes.filter((x) => x.devices.some((d) => d.source === "uprobe" || d.source === "track")).map((x) => x.pid);
}

/** What a process holds of a pool of a device: by tag or call site, or else block by block. */
function inside(map: MapAnswer | null, pid: number, device: number, pool: string): Tile[] {
  if (!map || map.pid !== pid) return [];
  const here = (chip: string) => chip === `device ${device}` || chip.startsWith(`device ${device} `);
  const sites = map.sites.filter((x) => x.pool === pool && here(x.chip)).map((x): Tile => ({ name: x.tag ?? x.where ?? x.stack.at(-1) ?? "?", bytes: x.bytes, text: bytes(x.bytes), kind: "part" }));
  if (sites.length > 0) return sites.slice(0, 40);
  return map.pools
    .filter((x) => x.pool === pool && x.chips.some(here))
    .flatMap((x) => x.blocks.map(([addr, size, asked]): Tile => ({ name: "0x" + addr.toString(16), bytes: asked || size * x.banks, text: bytes(asked || size * x.banks), kind: "part" })))
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, 60);
}

/** Host → device → process → part, and what is not used. */
function tiles(s: State, pool: string, map: MapAnswer | null): Tile[] {
  const snap = s.snap!;
  const said = s.said!;
  return snap.devices.map((d): Tile => {
    const children: Tile[] = [];
    snap.processes.forEach((proc, i) => {
      proc.devices.forEach((u, j) => {
        const f = said.processes[i]?.uses[j]?.pools[pool];
        if (u.index !== d.index || !f?.bytes) return;
        children.push({ name: `${proc.pid} ${said.processes[i]!.command}`, bytes: f.bytes, text: f.text, to: "/process/" + proc.pid, kind: "process", children: inside(map, proc.pid, d.index, pool) });
      });
    });
    const use = d.memory[pool] as PoolUse | undefined;
    const held = children.reduce((n, c) => n + c.bytes, 0);
    const total = pool === "dram" ? (use?.total_bytes ?? null) : null;
    if (total !== null && total > held) {
      children.push({ name: "nobody's, as far as is known", bytes: total - held, text: "", kind: "rest" });
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
  // A column in which nobody has anything is not there.
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
              {peaks && <th class="num wide">Most in 24 h</th>}
              {holes && <th class="num wide">Largest hole</th>}
              {dead && <th class="num wide">Left by the dead</th>}
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
function Allocators(p: { exact: number[]; chosen: number; map: MapAnswer | null; problem: string }) {
  return (
    <Panel
      title="Banks and holes"
      tools={p.exact.length > 0 && <Choice label="process" value={String(p.chosen)} options={p.exact.map(String)} choose={(v) => setQuery({ pid: v })} />}
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
    <Panel title="Left by the dead">
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
      <p class="empty">It is in no figure above. ttmon stale says what can be removed.</p>
    </Panel>
  );
}
