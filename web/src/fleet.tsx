// Many hosts: a row each, a cell for each chip, the worst first.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { Choice, Empty, health, Panel } from "./parts";
import { HostLinks, HostLinksPanel } from "./hostlinks";
import { head, mark, markOf, moment, title, value } from "./figures";
import type { Bound } from "./answers";
import { setQuery, useRoute } from "./route";
import { state } from "./store";
import { colour } from "./theme";

type Cell = [number, number, number | null, number | null];

interface Figures {
  devices: number;
  hottest_c: number | null;
  power_w: number | null;
  power_bound: Bound;
  busy: number | null;
  busy_bound: Bound;
  dram_used_bytes: number | null;
  dram_used_bound: Bound;
  dram_bytes: number | null;
}

interface Host extends Figures {
  name: string;
  address?: string;
  level: string;
  reason?: string;
  alerts: number;
  jobs?: string[];
}

interface Fleet {
  time: string;
  metric: string;
  unit: string;
  range: [number | null, number | null];
  states: string[];
  levels: string[];
  marks: string[];
  total: Figures;
  hosts: Host[];
  chips: Record<string, number>;
  alerts: { name: string; severity: string; count: number }[];
  links?: HostLinks | null; // not from an older server
  simulated?: number;
}

/** The devices of hosts, as far as they were asked for. */
type Cells = Map<string, Cell[]>;

const usual = ["temperature.asic", "power.draw", "memory.used", "clocks.ai", "busy", "activity.estimate", "pcie.rx", "heartbeat.age", "memory.stale"];
const rowHeight = 22;
const cellWidth = 16;
const refresh = 10_000;

// The sums of a host, in words.
const hottest = (f: Figures): string => value(f.hottest_c, "C");
const power = (f: Figures): string => (f.power_w !== null && f.power_w >= 10_000 ? mark(f.power_bound) + value(f.power_w / 1000, "kW", 1) : (f.power_w === null ? "" : mark(f.power_bound)) + value(f.power_w, "W"));
const busy = (f: Figures): string => (f.busy === null ? value(null, "") : mark(f.busy_bound) + value(f.busy * 100, "%"));
const gib = (n: number): string => (n / 2 ** 30).toFixed(1);
const dram = (f: Figures): string => (f.dram_used_bytes === null || f.dram_bytes === null ? value(null, "") : `${mark(f.dram_used_bound)}${gib(f.dram_used_bytes)}/${gib(f.dram_bytes)} GiB`);

interface Column {
  name: () => string;
  width: number;
  least: number; // the width of the table from which on there is room for it
  text: (h: Host) => string;
  left?: boolean;
}

const columns: Column[] = [
  { name: () => "Hottest", width: 66, least: 0, text: hottest },
  { name: () => head("power.draw"), width: 76, least: 560, text: power },
  { name: () => head("busy"), width: 62, least: 640, text: busy },
  { name: () => head("memory.used"), width: 136, least: 760, text: dram },
  { name: () => "What is wrong", width: 220, least: 1060, text: (h) => h.reason ?? "", left: true },
];
const shown = (width: number): Column[] => columns.filter((c) => width >= c.least);

export function FleetPage() {
  const q = useRoute().query;
  const metric = q.get("metric") ?? "temperature.asic";
  const filter = (q.get("filter") ?? "").toLowerCase();
  const [fleet, setFleet] = useState<Fleet | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const ask = () => {
      if (document.hidden) return;
      get<Fleet>("fleet?metric=" + encodeURIComponent(metric), stop.signal)
        .then((f) => {
          setFleet(f);
          setProblem("");
        })
        .catch((err: Error) => !stop.signal.aborted && setProblem(err.message));
    };
    ask();
    const again = setInterval(ask, refresh);
    return () => {
      stop.abort();
      clearInterval(again);
    };
  }, [metric]);
  const hosts = useMemo(() => (fleet?.hosts ?? []).filter((h) => !filter || h.name.toLowerCase().includes(filter) || h.jobs?.some((j) => j.toLowerCase().includes(filter))), [fleet, filter]);
  const metrics = [...new Set([...usual, ...state.metrics.filter((m) => m.kind === "gauge").map((m) => m.name)])];
  return (
    <>
      {problem && <p class={"banner " + (fleet ? "bad" : "info")}>{problem}{fleet ? `: what is shown is of ${moment(fleet.time)}` : ""}</p>}
      {fleet && (
        <>
          <Sums fleet={fleet} />
          {fleet.links?.trouble.map((t) => (
            <p key={t} class="banner bad">
              Links: {t}
            </p>
          ))}
          <Panel
            title={`Hosts, the worst first (${hosts.length})`}
            tools={<Choice label="coloured by" value={metric} options={metrics} names={Object.fromEntries(metrics.map((m) => [m, title(m)]))} choose={(v) => setQuery({ metric: v === "temperature.asic" ? "" : v })} />}
          >
            <HeatMap fleet={fleet} hosts={hosts} />
          </Panel>
          <HostLinksPanel links={fleet.links} time={fleet.time} />
        </>
      )}
      {!fleet && !problem && <Empty>asking the engine …</Empty>}
    </>
  );
}

/** All hosts together. */
function Sums(p: { fleet: Fleet }) {
  const { fleet } = p;
  const level = (word: string) => health(fleet.levels[fleet.states.indexOf(word)]);
  return (
    <p class="totals fleetsums">
      <span>
        <b>{fleet.hosts.length}</b> hosts
      </span>
      <span>
        <b>{fleet.total.devices}</b> devices
      </span>
      {Object.entries(fleet.chips).map(([k, n]) => (
        <span key={k} class={level(k)}>
          <b>{n}</b> {k}
        </span>
      ))}
      <span>
        hottest <b>{hottest(fleet.total)}</b>
      </span>
      <span>
        <b>{power(fleet.total)}</b>
      </span>
      <span>
        busy <b>{busy(fleet.total)}</b>
      </span>
      <span>
        DRAM <b>{dram(fleet.total)}</b>
      </span>
      {fleet.alerts.map((a) => (
        <span key={a.name + a.severity} class={a.severity === "critical" ? "bad" : ""}>
          <b>{a.count}</b> × {a.name}
        </span>
      ))}
      {fleet.simulated ? <span>{fleet.simulated} of the hosts are simulated</span> : null}
    </p>
  );
}

/** The ends of the scale of colours. */
function extent(fleet: Fleet): [number, number] {
  const [low, high] = fleet.range;
  if (low === null || high === null) return [0, 1];
  return [low > 0 && low < high * 0.5 ? 0 : low, high === low ? low + 1 : high];
}

// Hosts are asked about in blocks, so that scrolling by a row asks for nothing.
const block = 25;
const most = 100;

/** Asks for the devices of the rows in view, again with every new answer. */
function useCells(fleet: Fleet, hosts: Host[], rows: [number, number]): Cells {
  const kept = useRef<{ metric: string; cells: Cells }>({ metric: fleet.metric, cells: new Map() });
  const [, drawAgain] = useState(0);
  if (kept.current.metric !== fleet.metric) kept.current = { metric: fleet.metric, cells: new Map() };
  const from = Math.floor(rows[0] / block) * block;
  const names = hosts.slice(from, Math.min(from + most, Math.ceil((rows[1] + 1) / block) * block)).map((h) => h.name);
  const key = names.join("\n");
  useEffect(() => {
    if (names.length === 0) return;
    const stop = new AbortController();
    const due = setTimeout(() => {
      const query = new URLSearchParams({ metric: fleet.metric });
      for (const n of names) query.append("host", n);
      get<{ hosts: Record<string, Cell[]> }>("fleet/cells?" + query, stop.signal)
        .then((a) => {
          for (const [name, cells] of Object.entries(a.hosts)) kept.current.cells.set(name, cells);
          drawAgain((n) => n + 1);
        })
        .catch(() => {}); // the next answer about the fleet says what is wrong
    }, 80);
    return () => {
      clearTimeout(due);
      stop.abort();
    };
  }, [key, fleet]);
  return kept.current.cells;
}

interface Palette {
  heat: string[];
  none: string;
  bad: string;
  warn: string;
  text: string;
  muted: string;
  edge: string;
  panel: string;
}

function palette(): Palette {
  const probe = document.createElement("i");
  document.body.append(probe);
  const heat = Array.from({ length: 8 }, (_, i) => {
    probe.className = "heat h" + i;
    return getComputedStyle(probe).backgroundColor;
  });
  probe.remove();
  return { heat, none: colour("raised"), bad: colour("bad"), warn: colour("warn"), text: colour("text"), muted: colour("muted"), edge: colour("edge"), panel: colour("panel") };
}

/** Only the rows in sight are drawn and asked for: thousands of hosts cost what a screenful does. */
function HeatMap(p: { fleet: Fleet; hosts: Host[] }) {
  const scroll = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState("");
  const [chosen, setChosen] = useState(0);
  const [rows, setRows] = useState<[number, number]>([0, 40]);
  const cells = useCells(p.fleet, p.hosts, rows);
  const range = useMemo(() => extent(p.fleet), [p.fleet]);
  const widest = useMemo(() => p.hosts.reduce((n, h) => Math.max(n, h.devices), 0), [p.hosts]);
  const drawing: Drawing = { fleet: p.fleet, hosts: p.hosts, cells, range, widest, chosen };
  useEffect(() => {
    const box = scroll.current;
    if (!box) return;
    let due = 0;
    const draw = () => {
      due = 0;
      const first = Math.floor(box.scrollTop / rowHeight);
      const last = first + Math.ceil(box.clientHeight / rowHeight);
      if (first !== rows[0] || last !== rows[1]) setRows([first, last]);
      if (canvas.current) paint(canvas.current, box, drawing);
    };
    const soon = () => {
      if (!due) due = requestAnimationFrame(draw);
    };
    soon();
    box.addEventListener("scroll", soon, { passive: true });
    const watch = new ResizeObserver(soon);
    watch.observe(box);
    window.addEventListener("themechange", soon);
    return () => {
      cancelAnimationFrame(due);
      box.removeEventListener("scroll", soon);
      watch.disconnect();
      window.removeEventListener("themechange", soon);
    };
  });
  const host = p.hosts[Math.min(chosen, p.hosts.length - 1)];
  const at = (e: MouseEvent): [number, number] => {
    const r = scroll.current!.getBoundingClientRect();
    return [Math.floor((e.clientY - r.top - rowHeight + scroll.current!.scrollTop) / rowHeight), e.clientX - r.left];
  };
  const say = (e: MouseEvent) => {
    const [row, x] = at(e);
    const h = p.hosts[row];
    const width = scroll.current!.clientWidth;
    const c = h && cells.get(h.name)?.[Math.floor((x - nameWidth(width)) / step(width, widest))];
    setHover(h ? h.name + (c ? ` device ${c[0]}: ${p.fleet.states[c[1]]}, ${markOf(c[3])}${value(c[2], p.fleet.unit)}` : h.reason ? ": " + h.reason : "") : "");
  };
  const keys = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(p.hosts.length - 1, chosen + by));
    setChosen(next);
    const box = scroll.current!;
    if (next * rowHeight < box.scrollTop) box.scrollTop = next * rowHeight;
    if ((next + 2) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (next + 2) * rowHeight - box.clientHeight;
  };
  if (p.hosts.length === 0) return <Empty>No host matches.</Empty>;
  return (
    <>
      <p class="lead body">
        <span class="scale">
          {value(range[0], p.fleet.unit)}
          {Array.from({ length: 8 }, (_, i) => (
            <i key={i} class={"heat h" + i} />
          ))}
          {value(range[1], p.fleet.unit)}
        </span>
        <span class="muted">✕ lost ■ hung ↻ resetting</span>
        <span class="hovered num">{hover}</span>
      </p>
      <div
        ref={scroll}
        class="fleet"
        style={{ "--rows": (p.hosts.length + 1) * rowHeight + 4 + "px" }}
        tabIndex={0}
        role="listbox"
        aria-label={`${p.hosts.length} hosts, the worst first; arrows choose one`}
        aria-activedescendant="chosen-host"
        onKeyDown={keys}
        onMouseMove={say}
        onMouseLeave={() => setHover("")}
        onClick={(e) => {
          const row = at(e)[0];
          if (row >= 0 && row < p.hosts.length) setChosen(row);
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: (p.hosts.length + 1) * rowHeight + "px" }} />
        {host && (
          <span id="chosen-host" role="option" aria-selected="true" class="unseen">
            {host.name}, {host.devices} devices, {host.reason || "nothing is wrong"}, hottest {hottest(host)}, {power(host)}, busy {busy(host)}, DRAM {dram(host)}
          </span>
        )}
      </div>
      {host && <HostDetail host={host} cells={cells.get(host.name) ?? []} fleet={p.fleet} />}
    </>
  );
}

const nameWidth = (width: number) => (width < 600 ? 110 : width < 900 ? 150 : 210);
const step = (width: number, widest: number) => {
  const room = width - nameWidth(width) - 16 - shown(width).reduce((n, c) => n + c.width, 0);
  return Math.max(4, Math.min(cellWidth + 8, room / Math.max(widest, 1)));
};

interface Drawing {
  fleet: Fleet;
  hosts: Host[];
  cells: Cells;
  range: [number, number];
  widest: number;
  chosen: number;
}

function paint(canvas: HTMLCanvasElement, box: HTMLElement, p: Drawing): void {
  const scale = devicePixelRatio;
  const width = box.clientWidth;
  const height = box.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const c = canvas.getContext("2d")!;
  c.scale(scale, scale);
  const ink = palette();
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  const first = Math.floor(box.scrollTop / rowHeight);
  for (let row = first; row < Math.min(p.hosts.length, first + Math.ceil(height / rowHeight) + 1); row++) {
    const y = (row + 1) * rowHeight - box.scrollTop;
    if (row === p.chosen) {
      c.fillStyle = ink.none;
      c.fillRect(0, y, width, rowHeight);
    }
    paintRow(c, p, p.hosts[row]!, y, width, ink);
  }
  // The headings stay while rows pass below them.
  c.fillStyle = ink.panel;
  c.fillRect(0, 0, width, rowHeight);
  c.fillStyle = ink.muted;
  c.fillText("Host", 8, rowHeight / 2);
  c.fillText("Devices", nameWidth(width), rowHeight / 2);
  eachColumn(c, width, (col, x, room) => c.fillText(col.name(), x, rowHeight / 2, room));
}

/** Calls draw with where the text of each column begins or, of numbers, ends. */
function eachColumn(c: CanvasRenderingContext2D, width: number, draw: (col: Column, x: number, room: number) => void): void {
  const list = shown(width);
  let x = width - 8 - list.reduce((n, col) => n + col.width, 0);
  for (const col of list) {
    c.textAlign = col.left ? "left" : "right";
    draw(col, col.left ? x + 14 : x + col.width, col.width - 14);
    x += col.width;
  }
  c.textAlign = "left";
}

function paintRow(c: CanvasRenderingContext2D, p: Drawing, h: Host, y: number, width: number, ink: Palette): void {
  const left = nameWidth(width);
  const w = step(width, p.widest);
  const tone = h.level === "critical" ? ink.bad : h.level === "warning" ? ink.warn : ink.text;
  c.fillStyle = tone;
  c.fillText((h.alerts > 0 ? "▲ " : "") + h.name, 8, y + rowHeight / 2, left - 14);
  eachColumn(c, width, (col, x, room) => {
    c.fillStyle = col.left ? tone : ink.text;
    c.fillText(col.text(h), x, y + rowHeight / 2, room);
  });
  const cells = p.cells.get(h.name);
  if (!cells) {
    c.fillStyle = ink.muted;
    c.fillText(`${h.devices} devices`, left, y + rowHeight / 2);
    return;
  }
  cells.forEach((cell, i) => {
    const x = left + i * w;
    const level = p.fleet.levels[cell[1]];
    if (level === "ok") {
      const v = cell[2];
      c.fillStyle = v === null ? ink.none : ink.heat[Math.min(7, Math.max(0, Math.floor(((v - p.range[0]) / (p.range[1] - p.range[0])) * 8)))]!;
      c.fillRect(x, y + 2, w - (w > 6 ? 2 : 1), rowHeight - 4);
      return;
    }
    c.fillStyle = level === "critical" ? ink.bad : ink.warn;
    c.fillRect(x, y + 2, w - (w > 6 ? 2 : 1), rowHeight - 4);
    c.fillStyle = ink.panel;
    if (w > 9) c.fillText(p.fleet.marks[cell[1]] ?? "?", x + (w - 2) / 2 - 5, y + rowHeight / 2);
  });
}

function HostDetail(p: { host: Host; cells: Cell[]; fleet: Fleet }) {
  const { host, cells, fleet } = p;
  return (
    <section class="hostdetail" aria-label={"host " + host.name}>
      <h3>
        {host.name}{" "}
        {host.address && (
          <a href={host.address} rel="noreferrer">
            its own page
          </a>
        )}
      </h3>
      {host.reason && <p class={health(host.level)}>{host.reason}</p>}
      <p class="num">
        {host.devices} devices · hottest {hottest(host)} · {power(host)} · busy {busy(host)} · DRAM {dram(host)}
      </p>
      {host.jobs && <p class="muted">{host.jobs.join(" · ")}</p>}
      <ul>
        {cells.map((c) => (
          <li key={c[0]} class={health(fleet.levels[c[1]])}>
            <b>{c[0]}</b> {fleet.states[c[1]]} <span class="num">{markOf(c[3]) + value(c[2], fleet.unit)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
