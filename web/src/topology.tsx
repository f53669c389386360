// How boards and chips are connected.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { arrange, cellOf, type Group } from "./arrange";
import { LinkTable, type Topology } from "./linktable";
import { A, Empty, health, Panel, StateOf, useWidth } from "./parts";
import { ShadeChoice, shadeOfChip } from "./overview";
import { useRoute } from "./route";
import type { State } from "./store";
import { moment, sensorsOf } from "./figures";
import type { Level, Mesh, MeshEnd, SheetTable } from "./answers";
import type { Device } from "./types";

export function TopologyPage(p: { s: State }) {
  const by = useRoute().query.get("by") ?? "temperature";
  const [top, setTop] = useState<Topology | null>(null);
  const [mesh, setMesh] = useState<Mesh | null>(null);
  const [links, setLinks] = useState<SheetTable | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    get<Mesh>("mesh" + (p.s.at ? "?at=" + encodeURIComponent(p.s.at) : ""), stop.signal)
      .then(setMesh)
      .catch(() => {}); // the next snapshot asks again
    if (!p.s.at)
      get<SheetTable>("topology/links", stop.signal)
        .then(setLinks)
        .catch(() => {});
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
        <Broken mesh={mesh} />
        <Graph s={p.s} top={top} mesh={mesh} by={by} />
        {p.s.snap && <RemoteChips devices={p.s.snap.devices} />}
        <p class="empty remote">
          {top
            ? top.described_by
              ? `Ethernet links as UMD described them in ${top.described_by}${top.described ? ", " + moment(top.described) : ""}.${top.unplaced_links ? ` ${top.unplaced_links} links lead to chips that are behind none of these devices.` : ""}`
              : "Ethernet links are not known: UMD writes them down when a program opens the boards."
            : problem || "…"}
        </p>
      </Panel>
      <LinkTable of={p.s.at ? mesh?.table : (links ?? mesh?.table)} />
      {top && top.pairs.length > 0 && top.pairs.length < 600 && <Matrix s={p.s} top={top} />}
    </>
  );
}

/** How many broken links are listed above the drawing; the table below has all. */
const mostListed = 8;

/** What is wrong with links, and what that cuts off: above the drawing, the worst first. */
function Broken(p: { mesh: Mesh | null }) {
  const m = p.mesh;
  if (!m || m.text === "") return null;
  const bad = m.links.filter((l) => rank(l.level) > rank("ok")).sort((a, b) => rank(b.level) - rank(a.level));
  return (
    <div class="links">
      <p class={health(m.level)}>
        <b>{m.text}</b>
        {m.lost && <> · {m.lost}</>}
      </p>
      {bad.length > 0 && (
        <ul>
          {bad.slice(0, mostListed).map((l) => (
            <li key={l.name} class={health(l.level)}>
              ✕ {l.name}: {l.text}
            </li>
          ))}
          {bad.length > mostListed && <li>and {bad.length - mostListed} more, in the table of links</li>}
        </ul>
      )}
    </div>
  );
}

/** Where the sensors of chips behind Ethernet are read, or why they are not. */
function RemoteChips(p: { devices: Device[] }) {
  const from = new Map<string, string[]>();
  for (const d of p.devices)
    for (const c of d.chips) {
      if (c.remote) from.set(sensorsOf(c), [...(from.get(sensorsOf(c)) ?? []), d.index + (c.name ?? "")]);
    }
  return (
    <>
      {[...from].map(([source, chips]) => (
        <p key={source} class="empty remote">
          Remote chips {chips.join(", ")}: {source}.
        </p>
      ))}
    </>
  );
}

interface Spot {
  key: string;
  device: Device;
  chip: string;
  nth: number; // of the device's chips
  x: number;
  y: number;
}

interface Board {
  name: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

const cellW = 116;
const cellH = 66;
const gap = 24;

interface Seat {
  key: string;
  device: Device;
  chip: string;
  nth: number;
}

interface Box extends Group {
  name: string;
  seats: Seat[];
}

/** Boards and trays with their chips, in the order of devices. */
function boxes(devices: Device[]): Box[] {
  const groups = new Map<string, Device[]>();
  for (const d of devices) {
    const key = d.tray ? `tray ${d.tray}` : d.serial ? `board ${d.serial}` : d.bus_id;
    groups.set(key, [...(groups.get(key) ?? []), d]);
  }
  return [...groups].map(([key, list]) => {
    const seats = list.flatMap((d) => (d.chips.length > 0 ? d.chips.map((c, nth) => ({ key: d.index + "/" + (c.name ?? ""), device: d, chip: c.name ?? "", nth })) : [{ key: d.index + "/", device: d, chip: "", nth: 0 }]));
    return { name: key.startsWith("tray") ? key : `${list[0]!.board ?? list[0]!.arch}`, seats, chips: seats.map((s) => s.key), columns: Math.min(seats.length, 4) };
  });
}

const boxWidth = (b: Group) => b.columns * cellW + 16;
const boxHeight = (b: Group) => Math.ceil(b.chips.length / b.columns) * cellH + 34;

/** A tray's chips in two rows of four, a board's side by side; as many of them in a row as there is room for. */
function layout(list: Box[], joins: [string, string][], room: number): { spots: Spot[]; boards: Board[]; w: number; h: number } {
  const wide = Math.max(...list.map(boxWidth)) + gap;
  const high = Math.max(...list.map(boxHeight)) + gap;
  // Up to four are mirrored and moved so that their links are short, two in a row.
  const most = list.length <= 4 && joins.length > 0 ? 2 : Math.max(1, list.length);
  const across = Math.max(1, Math.min(most, Math.floor((room - 12) / (wide * 0.72)), list.length));
  const placed = arrange(list, joins, across);
  const spots: Spot[] = [];
  const boards: Board[] = [];
  list.forEach((b, i) => {
    const p = placed[i]!;
    const x = 10 + (p.place % across) * wide;
    const y = 10 + Math.floor(p.place / across) * high;
    boards.push({ name: b.name, x, y, w: boxWidth(b), h: boxHeight(b) });
    b.seats.forEach((seat, nth) => {
      const [column, row] = cellOf(b, nth, p);
      spots.push({ ...seat, x: x + 8 + (column + 0.5) * cellW, y: y + 26 + (row + 0.5) * cellH });
    });
  });
  return { spots, boards, w: across * wide - gap + 20, h: Math.ceil(list.length / across) * high - gap + 20 };
}

/** The pairs of chips that are joined, whatever their links do: a drawing stays as it is when one breaks. */
function joinsOf(top: Topology | null, mesh: Mesh | null): [string, string][] {
  const key = (device: number, chip: string) => device + "/" + chip;
  const list = [
    ...(mesh?.links ?? []).flatMap((l) => (l.b ? [[key(l.a.device, l.a.chip), key(l.b.device, l.b.chip)]] : [])),
    ...(top?.links ?? []).map((l) => [key(l.from.index, l.from.chip), key(l.to.index, l.to.chip)]),
  ];
  return [...new Set(list.map((ends) => ends.sort().join(" ")))].sort().map((s) => s.split(" ") as [string, string]);
}

function Graph(p: { s: State; top: Topology | null; mesh: Mesh | null; by: string }) {
  const snap = p.s.snap!;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const list = boxes(snap.devices);
  const joins = joinsOf(p.top, p.mesh);
  const { spots, boards, w, h } = useMemo(() => layout(list, joins, width), [list.map((b) => b.chips.join(" ")).join("|"), joins.join("|"), width]);
  if (snap.devices.length === 0) return <Empty>There is no device.</Empty>;
  const scale = Math.min(1.6, (width - 12) / w);
  const joined = edges(p.top, p.mesh, spots);
  return (
    <div ref={box} class="scroll" tabIndex={0} role="region" aria-label="Chips and links">
      <svg class="graph" width={w * scale} height={h * scale} viewBox={`0 0 ${w} ${h}`} role="group" aria-label={`${spots.length} chips, ${joined.length} joined pairs`}>
        {boards.map((b, i) => (
          <rect key={i} class="board" x={b.x} y={b.y} width={b.w} height={b.h} rx="10" />
        ))}
        {joined.map((j) => (
          <Line key={j.a.key + j.b.key} of={j} />
        ))}
        {boards.map((b, i) => (
          <text key={i} class="boardname" x={b.x + 10} y={b.y + 17}>
            {b.name}
          </text>
        ))}
        {spots.map((sp) => (
          <ChipSpot key={sp.key} s={p.s} mesh={p.mesh} by={p.by} at={sp} />
        ))}
        {joined.map((j) => j.mark && <Mark key={j.a.key + j.b.key} of={j} />)}
      </svg>
    </div>
  );
}

/** What joins two chips, as a line. */
function Line(p: { of: Joined }) {
  const j = p.of;
  return (
    <path class={"edge " + j.level} d={curve(j.a, j.b)} style={{ strokeWidth: Math.min(1 + j.n * 0.8, 6) }}>
      <title>{j.title}</title>
    </path>
  );
}

/** How many channels of a broken link are left, on top of it. */
function Mark(p: { of: Joined }) {
  const [x, y] = middle(p.of.a, p.of.b);
  return (
    <text class={"edgemark " + p.of.level} x={x} y={y + 4} text-anchor="middle" aria-hidden="true">
      {p.of.mark}
    </text>
  );
}

function ChipSpot(p: { s: State; mesh: Mesh | null; by: string; at: Spot }) {
  const { at } = p;
  const said = p.s.said!.devices[p.s.snap!.devices.findIndex((d) => d.index === at.device.index)];
  if (!said) return null;
  const shade = shadeOfChip(p.by, at.device, said, at.nth);
  const chip = at.device.chips[at.nth];
  const lost = p.mesh?.cut_off.some((e) => e.device === at.device.index && e.chip === at.chip) ?? false;
  // What is wrong with a device is wrong with its own chip; a remote one has links of its own.
  const remote = chip?.remote && at.device.state === "ok" ? linkLevel(p.mesh, at) : undefined;
  const level = remote ?? said.level;
  const text = level === "ok" ? brief(shade.text) : remote ? (remote === "critical" ? "link down" : "weak link") : said.state;
  const unread = chip?.remote && text === "–" ? "not read" : text;
  return (
    <A to={"/device/" + at.device.bus_id}>
      <title>{`${label(at)}: ${remote && level !== "ok" ? text : said.state}, ${shade.text}${chip?.remote ? `; ${sensorsOf(chip)}` : ""}`}</title>
      <g class={"spot " + health(level) + (lost ? " lost" : "")}>
        <rect class={"heat " + (shade.level === null ? "none" : "h" + shade.level)} x={at.x - 42} y={at.y - 22} width="84" height="44" rx="7" />
        <rect class="plate" x={at.x - 38} y={at.y - 18} width="76" height="36" rx="5" />
        <text x={at.x} y={at.y - 3} text-anchor="middle" class="n">
          {at.device.index} {at.chip}
        </text>
        <text x={at.x} y={at.y + 12} text-anchor="middle">
          {unread}
        </text>
      </g>
    </A>
  );
}

/** How the links of a chip do: as bad as the worst of them. */
function linkLevel(mesh: Mesh | null, at: Spot): Level {
  const here = (e: MeshEnd | null) => e?.device === at.device.index && e.chip === at.chip;
  const own = (mesh?.links ?? []).filter((l) => here(l.a) || here(l.b)).map((l) => l.level);
  return own.find((l) => l === "critical") ?? own.find((l) => l === "warning") ?? "ok";
}

interface Joined {
  a: Spot;
  b: Spot;
  n: number;
  level: Level;
  title: string;
  mark: string; // of one that is broken
}

const levels: Level[] = ["info", "ok", "warning", "critical"];
const rank = (level: Level): number => levels.indexOf(level);

/** What joins two chips: as the firmware tells, or else as UMD wrote it down. */
function edges(top: Topology | null, mesh: Mesh | null, spots: Spot[]): Joined[] {
  const at = (device: number, chip: string) => spots.find((s) => s.key === device + "/" + chip) ?? spots.find((s) => s.device.index === device);
  const out = new Map<string, Joined>();
  const add = (a: Spot | undefined, b: Spot | undefined, j: Omit<Joined, "a" | "b">) => {
    if (!a || !b || a === b) return;
    const key = [a.key, b.key].sort().join("-");
    const old = out.get(key);
    if (old) old.n += j.n;
    else out.set(key, { a, b, ...j });
  };
  for (const l of mesh?.links ?? []) {
    const mark = l.level === "critical" ? "✕" : l.level === "warning" ? `${l.up}/${l.all}` : "";
    if (l.b) add(at(l.a.device, l.a.chip), at(l.b.device, l.b.chip), { n: l.all, level: l.level, title: `${l.name}: ${l.text}`, mark });
  }
  const read = new Set(out.keys());
  for (const l of top?.links ?? []) {
    const a = at(l.from.index, l.from.chip);
    const b = at(l.to.index, l.to.chip);
    if (a && b && !read.has([a.key, b.key].sort().join("-"))) add(a, b, { n: 1, level: "info", title: `${label(a)} and ${label(b)}: state not known`, mark: "" });
  }
  // The broken ones are drawn last, above the others.
  return [...out.values()].sort((x, y) => rank(x.level) - rank(y.level));
}

/** "61/85 W" without its limit: "61 W". */
const brief = (text: string) => text.replace(/\/\S+/, "");

const label = (s: Spot) => `device ${s.device.index}${s.chip ? " " + s.chip : ""}`;

/** How far a line leaves the straight way: one that passes other chips does. */
const bend = (a: Spot, b: Spot): number => (Math.hypot(b.x - a.x, b.y - a.y) > cellW * 1.5 ? 0.12 : 0);

function curve(a: Spot, b: Spot): string {
  const by = bend(a, b);
  return `M${a.x} ${a.y}Q${(a.x + b.x) / 2 - (b.y - a.y) * by} ${(a.y + b.y) / 2 + (b.x - a.x) * by} ${b.x} ${b.y}`;
}

/** The middle of that curve. */
function middle(a: Spot, b: Spot): [number, number] {
  const by = bend(a, b) / 2;
  return [(a.x + b.x) / 2 - (b.y - a.y) * by, (a.y + b.y) / 2 + (b.x - a.x) * by];
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
              <th scope="col">Device</th>
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
    <Panel title="PCIe distance between devices">
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
