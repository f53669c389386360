// How boards and chips hang together.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { A, Empty, health, Panel, StateOf, useWidth } from "./parts";
import { ShadeChoice, shadeOfChip } from "./overview";
import { useRoute } from "./route";
import type { State } from "./store";
import { moment } from "./figures";
import type { Device, Level } from "./types";

interface End {
  index: number;
  chip: string;
  channel: number;
}

interface Topology {
  described_by: string | null;
  described: string | null;
  unplaced_links: number;
  pairs: { from: number; to: number; pcie: string; ethernet_links: number | null }[];
  links: { from: End; to: End }[];
}

interface MeshEnd {
  device: number;
  chip: string;
}

/** Which links are up, as far as the firmware tells. */
interface Mesh {
  text: string;
  level: Level;
  links: { a: MeshEnd; b: MeshEnd | null; up: number; all: number; level: Level; name: string; text: string }[];
  cut_off: MeshEnd[];
  lost: string;
}

export function TopologyPage(p: { s: State }) {
  const by = useRoute().query.get("by") ?? "temperature";
  const [top, setTop] = useState<Topology | null>(null);
  const [mesh, setMesh] = useState<Mesh | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    get<Mesh>("mesh" + (p.s.at ? "?at=" + encodeURIComponent(p.s.at) : ""), stop.signal)
      .then(setMesh)
      .catch(() => {}); // the next snapshot asks again
    return () => stop.abort();
  }, [p.s.snap?.time]);
  const beat = Math.floor(p.s.received / 10000);
  useEffect(() => {
    get<Topology>("topology")
      .then(setTop)
      .catch((err: Error) => setProblem(err.message));
  }, [beat]);
  return (
    <>
      <Panel title="Boards, chips and the links between them" tools={<ShadeChoice by={by} />}>
        <Graph s={p.s} top={top} mesh={mesh} by={by} />
        <Broken mesh={mesh} />
        <p class="empty">
          {top
            ? top.described_by
              ? `Ethernet links as UMD described them in ${top.described_by}${top.described ? ", " + moment(top.described) : ""}.${top.unplaced_links ? ` ${top.unplaced_links} links lead to chips that are behind none of these devices.` : ""}`
              : "Ethernet links are not known: UMD writes them down when a program opens the boards."
            : problem || "…"}
        </p>
      </Panel>
      {top && top.pairs.length > 0 && top.pairs.length < 600 && <Matrix s={p.s} top={top} />}
    </>
  );
}

/** What is wrong with links, and what that cuts off. */
function Broken(p: { mesh: Mesh | null }) {
  const m = p.mesh;
  if (!m || m.text === "") return null;
  const bad = m.links.filter((l) => l.level === "critical" || l.level === "warning");
  return (
    <div class="links">
      <p class={health(m.level)}>
        <b>{m.text}</b>
        {m.lost && <> · {m.lost}</>}
      </p>
      {bad.length > 0 && (
        <ul>
          {bad.map((l) => (
            <li key={l.name} class={health(l.level)}>
              ✕ {l.name}: {l.text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface Spot {
  key: string;
  device: Device;
  chip: string;
  nth: number; // of the device's chips
  x: number;
  y: number;
  board: string;
}

const cellW = 104;
const cellH = 62;

/** Chips in rows: a board's side by side, a tray's in two rows of four; as many boards in a row as there is room for. */
function layout(devices: Device[], room: number): { spots: Spot[]; boards: { name: string; x: number; y: number; w: number; h: number }[]; w: number; h: number } {
  const groups = new Map<string, Device[]>();
  for (const d of devices) {
    const key = d.tray ? `tray ${d.tray}` : d.serial ? `board ${d.serial}` : d.bus_id;
    groups.set(key, [...(groups.get(key) ?? []), d]);
  }
  const spots: Spot[] = [];
  const boards = [];
  let x = 10;
  let y = 10;
  let tall = 0;
  let right = 0;
  // Trays stand two by two, or one below the other: more than two in a row would tangle their links.
  const tray = 4 * cellW + 40;
  const width = !devices.some((d) => d.tray) ? room : room >= 2 * tray ? 2 * tray + 20 : tray + 20;
  for (const [name, list] of groups) {
    const chips = list.flatMap((d) => (d.chips.length > 0 ? d.chips.map((c, nth) => ({ d, chip: c.name ?? "", nth })) : [{ d, chip: "", nth: 0 }]));
    const columns = Math.min(chips.length, 4);
    const rows = Math.ceil(chips.length / columns);
    const w = columns * cellW + 16;
    const h = rows * cellH + 34;
    if (x + w > width - 8 && x > 10) {
      x = 10;
      y += tall + 24;
      tall = 0;
    }
    boards.push({ name: name.startsWith("tray") ? name : `${list[0]!.board ?? list[0]!.arch}`, x, y, w, h });
    chips.forEach(({ d, chip, nth }, i) => {
      spots.push({ key: d.index + "/" + chip, device: d, chip, nth, board: name, x: x + 8 + (i % columns) * cellW + cellW / 2, y: y + 26 + Math.floor(i / columns) * cellH + cellH / 2 });
    });
    x += w + 24;
    tall = Math.max(tall, h);
    right = Math.max(right, x);
  }
  return { spots, boards, w: right, h: y + tall + 10 };
}

function Graph(p: { s: State; top: Topology | null; mesh: Mesh | null; by: string }) {
  const snap = p.s.snap!;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { spots, boards, w, h } = layout(snap.devices, width);
  const scale = Math.min(1.6, (width - 12) / w);
  const joined = edges(p.top, p.mesh, spots);
  const lost = (sp: Spot) => p.mesh?.cut_off.some((e) => e.device === sp.device.index && e.chip === sp.chip) ?? false;
  if (snap.devices.length === 0) return <Empty>There is no device.</Empty>;
  return (
    <div ref={box} class="scroll" tabIndex={0} role="region" aria-label="Chips and links">
      <svg class="graph" width={w * scale} height={h * scale} viewBox={`0 0 ${w} ${h}`} role="group" aria-label={`${spots.length} chips, ${joined.length} joined pairs`}>
        {boards.map((b, i) => (
          <rect key={i} class="board" x={b.x} y={b.y} width={b.w} height={b.h} rx="10" />
        ))}
        {joined.map((j) => (
          <g key={j.a.key + j.b.key} class={"edge " + j.level}>
            <path d={curve(j.a, j.b)} style={{ strokeWidth: Math.min(1 + j.n * 0.8, 6) }}>
              <title>{j.title}</title>
            </path>
          </g>
        ))}
        {boards.map((b, i) => (
          <text key={i} class="boardname" x={b.x + 10} y={b.y + 17}>
            {b.name}
          </text>
        ))}
        {spots.map((sp) => {
          const i = snap.devices.indexOf(sp.device);
          const said = p.s.said!.devices[i]!;
          const shade = shadeOfChip(p.by, sp.device, said, sp.nth);
          return (
            <A key={sp.key} to={"/device/" + sp.device.bus_id}>
              <title>{`${label(sp)}: ${said.state}, ${shade.text}`}</title>
              <g class={"spot " + health(said.level) + (lost(sp) ? " lost" : "")}>
                <rect class={"heat " + (shade.level === null ? "none" : "h" + shade.level)} x={sp.x - 42} y={sp.y - 22} width="84" height="44" rx="7" />
                <rect class="plate" x={sp.x - 38} y={sp.y - 18} width="76" height="36" rx="5" />
                <text x={sp.x} y={sp.y - 3} text-anchor="middle" class="n">
                  {sp.device.index} {sp.chip}
                </text>
                <text x={sp.x} y={sp.y + 12} text-anchor="middle">
                  {said.level === "ok" ? brief(shade.text) : said.state}
                </text>
              </g>
            </A>
          );
        })}
      </svg>
    </div>
  );
}

interface Joined {
  a: Spot;
  b: Spot;
  n: number;
  level: string;
  title: string;
}

/** What joins two chips: as the firmware tells, or else as UMD wrote it down. */
function edges(top: Topology | null, mesh: Mesh | null, spots: Spot[]): Joined[] {
  const at = (device: number, chip: string) => spots.find((s) => s.key === device + "/" + chip) ?? spots.find((s) => s.device.index === device);
  const out = new Map<string, Joined>();
  const add = (a: Spot | undefined, b: Spot | undefined, n: number, level: string, title: string) => {
    if (!a || !b || a === b) return;
    const key = [a.key, b.key].sort().join("-");
    const old = out.get(key);
    if (old) old.n += n;
    else out.set(key, { a, b, n, level, title });
  };
  for (const l of mesh?.links ?? []) if (l.b) add(at(l.a.device, l.a.chip), at(l.b.device, l.b.chip), l.all, l.level, `${l.name}: ${l.text}`);
  const told = new Set(out.keys());
  for (const l of top?.links ?? []) {
    const a = at(l.from.index, l.from.chip);
    const b = at(l.to.index, l.to.chip);
    if (a && b && !told.has([a.key, b.key].sort().join("-"))) add(a, b, 1, "info", `${label(a)} and ${label(b)}: state not known`);
  }
  // The broken ones are drawn last, above the others.
  const order = ["info", "ok", "warning", "critical"];
  return [...out.values()].sort((x, y) => order.indexOf(x.level) - order.indexOf(y.level));
}

/** "61/85 W" without its limit: "61 W". */
const brief = (text: string) => text.replace(/\/\S+/, "");

const label = (s: Spot) => `device ${s.device.index}${s.chip ? " " + s.chip : ""}`;

function curve(a: Spot, b: Spot): string {
  const dx = b.x - a.x;
  const dy = b.y - a.y;
  const far = Math.hypot(dx, dy) > cellW * 1.5;
  const bend = far ? 0.12 : 0;
  return `M${a.x} ${a.y}Q${(a.x + b.x) / 2 - dy * bend} ${(a.y + b.y) / 2 + dx * bend} ${b.x} ${b.y}`;
}

const pcie: Record<string, string> = {
  X: "itself",
  PIX: "at most one PCIe switch",
  PXB: "several switches",
  PHB: "one host bridge",
  NODE: "host bridges of one NUMA node",
  SYS: "the link between NUMA nodes",
  "?": "not known",
};

function Matrix(p: { s: State; top: Topology }) {
  const devices = p.s.snap!.devices.map((d) => d.index);
  const find = (a: number, b: number) => p.top.pairs.find((x) => (x.from === a && x.to === b) || (x.from === b && x.to === a));
  const used = [...new Set(p.top.pairs.map((x) => x.pcie))];
  const table = (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label="Matrix of devices">
        <table class="matrix">
          <thead>
            <tr>
              <th />
              {devices.map((d) => (
                <th key={d} scope="col">
                  {d}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {devices.map((a) => (
              <tr key={a}>
                <th scope="row">
                  {a} <StateOf of={p.s.said!.devices[p.s.snap!.devices.findIndex((d) => d.index === a)]} />
                </th>
                {devices.map((b) => {
                  const x = find(a, b);
                  return <td key={b}>{a === b ? "·" : x ? (x.ethernet_links ? `${x.ethernet_links} eth` : x.pcie) : "?"}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="empty">
        {used.map((d) => `${d}: ${pcie[d] ?? d}`).join(" · ")}
        {p.top.links.length > 0 && " · n eth: n Ethernet links"}
      </p>
    </>
  );
  return (
    <Panel title="Between each two devices">
      {devices.length <= 16 ? (
        table
      ) : (
        <details class="more">
          <summary>the matrix of {devices.length} devices</summary>
          {table}
        </details>
      )}
    </Panel>
  );
}
