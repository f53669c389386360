// Many hosts: a row each, a cell for each chip, the worst first.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { Choice, Empty, health, marks, Panel } from "./parts";
import { markOf, moment, value } from "./figures";
import { setQuery, useRoute } from "./route";
import { state } from "./store";
import { colour } from "./theme";

type Cell = [number, number, number | null, number | null];

interface Host {
  name: string;
  address?: string;
  alerts: number;
  jobs?: string[];
  cells: Cell[];
}

interface Fleet {
  time: string;
  metric: string;
  unit: string;
  states: string[];
  levels: string[];
  hosts: Host[];
  chips: Record<string, number>;
  alerts: { name: string; severity: string; count: number }[];
}

const usual = ["temperature.asic", "power.draw", "memory.used", "clocks.ai", "busy", "activity.estimate", "pcie.rx", "heartbeat.age", "memory.stale"];
const rowHeight = 22;
const cellWidth = 16;

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
    const again = setInterval(ask, 10_000);
    return () => {
      stop.abort();
      clearInterval(again);
    };
  }, [metric]);
  const hosts = useMemo(() => (fleet?.hosts ?? []).filter((h) => !filter || h.name.toLowerCase().includes(filter) || h.jobs?.some((j) => j.toLowerCase().includes(filter))), [fleet, filter]);
  const metrics = [...new Set([...usual, ...state.metrics.filter((m) => m.kind === "gauge").map((m) => m.name)])];
  const devices = fleet ? Object.values(fleet.chips).reduce((a, b) => a + b, 0) : 0;
  return (
    <>
      {problem && <p class={"banner " + (fleet ? "bad" : "info")}>{problem}{fleet ? `: what is shown is of ${moment(fleet.time)}` : ""}</p>}
      {fleet && (
        <>
          <p class="totals fleetsums">
            <span>
              <b>{fleet.hosts.length}</b> hosts
            </span>
            <span>
              <b>{devices}</b> devices
            </span>
            {Object.entries(fleet.chips).map(([k, n]) => (
              <span key={k} class={k === "hung" || k === "lost" ? "bad" : ""}>
                <b>{n}</b> {k}
              </span>
            ))}
            {fleet.alerts.map((a) => (
              <span key={a.name} class={a.severity === "critical" ? "bad" : ""}>
                <b>{a.count}</b> × {a.name}
              </span>
            ))}
          </p>
          <Panel
            title={`Hosts, the worst first (${hosts.length})`}
            tools={<Choice label="coloured by" value={metric} options={metrics} choose={(v) => setQuery({ metric: v === "temperature.asic" ? "" : v })} />}
          >
            <HeatMap fleet={fleet} hosts={hosts} />
          </Panel>
        </>
      )}
      {!fleet && !problem && <Empty>asking the engine …</Empty>}
    </>
  );
}

/** Low and high of what is shown, for the colours. */
function extent(fleet: Fleet): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const h of fleet.hosts) {
    for (const c of h.cells) {
      if (c[2] === null) continue;
      if (c[2] < low) low = c[2];
      if (c[2] > high) high = c[2];
    }
  }
  if (low > high) return [0, 1];
  return [Math.min(low, low > 0 && low < high * 0.5 ? 0 : low), high === low ? low + 1 : high];
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

/** Only the rows in sight are drawn: thousands of hosts cost what a screenful does. */
function HeatMap(p: { fleet: Fleet; hosts: Host[] }) {
  const scroll = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState("");
  const [chosen, setChosen] = useState(0);
  const range = useMemo(() => extent(p.fleet), [p.fleet]);
  const widest = useMemo(() => p.hosts.reduce((n, h) => Math.max(n, h.cells.length), 0), [p.hosts]);
  const draw = () => {
    if (scroll.current && canvas.current) paint(canvas.current, scroll.current, p, range, chosen);
  };
  useEffect(() => {
    let due = 0;
    const soon = () => {
      if (!due) due = requestAnimationFrame(() => ((due = 0), draw()));
    };
    soon();
    const box = scroll.current!;
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
  }, [p.fleet, p.hosts, range, chosen]);
  const host = p.hosts[Math.min(chosen, p.hosts.length - 1)];
  const at = (e: MouseEvent): [number, number] => {
    const r = scroll.current!.getBoundingClientRect();
    return [Math.floor((e.clientY - r.top + scroll.current!.scrollTop) / rowHeight), e.clientX - r.left];
  };
  const say = (e: MouseEvent) => {
    const [row, x] = at(e);
    const h = p.hosts[row];
    const c = h?.cells[Math.floor((x - nameWidth(scroll.current!.clientWidth)) / step(scroll.current!.clientWidth, widest))];
    setHover(h ? h.name + (c ? ` device ${c[0]}: ${p.fleet.states[c[1]]}, ${markOf(c[3])}${value(c[2], p.fleet.unit)}` : "") : "");
  };
  const keys = (e: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    const next = Math.max(0, Math.min(p.hosts.length - 1, chosen + by));
    setChosen(next);
    const box = scroll.current!;
    if (next * rowHeight < box.scrollTop) box.scrollTop = next * rowHeight;
    if ((next + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (next + 1) * rowHeight - box.clientHeight;
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
        tabIndex={0}
        role="listbox"
        aria-label={`${p.hosts.length} hosts, the worst first; arrows choose one`}
        aria-activedescendant="chosen-host"
        onKeyDown={keys}
        onMouseMove={say}
        onMouseLeave={() => setHover("")}
        onClick={(e) => setChosen(at(e)[0])}
      >
        <canvas ref={canvas} aria-hidden="true" />
        <div style={{ height: p.hosts.length * rowHeight + "px" }} />
        {host && (
          <span id="chosen-host" role="option" aria-selected="true" class="unseen">
            {host.name}, {host.cells.length} devices, {host.alerts} alerts
          </span>
        )}
      </div>
      {host && <HostDetail host={host} fleet={p.fleet} />}
    </>
  );
}

const nameWidth = (width: number) => (width < 600 ? 110 : 210);
const step = (width: number, widest: number) => Math.max(6, Math.min(cellWidth + 8, (width - nameWidth(width) - 8) / Math.max(widest, 1)));

function paint(canvas: HTMLCanvasElement, box: HTMLElement, p: { fleet: Fleet; hosts: Host[] }, range: [number, number], chosen: number): void {
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
  const left = nameWidth(width);
  const widest = p.hosts.reduce((n, h) => Math.max(n, h.cells.length), 0);
  const w = step(width, widest);
  for (let row = first; row < Math.min(p.hosts.length, first + Math.ceil(height / rowHeight) + 1); row++) {
    const h = p.hosts[row]!;
    const y = row * rowHeight - box.scrollTop;
    if (row === chosen) {
      c.fillStyle = ink.none;
      c.fillRect(0, y, width, rowHeight);
    }
    c.fillStyle = h.alerts > 0 ? ink.bad : ink.text;
    c.fillText((h.alerts > 0 ? "▲ " : "") + h.name, 8, y + rowHeight / 2, left - 14);
    h.cells.forEach((cell, i) => {
      const x = left + i * w;
      const trouble = p.fleet.states[cell[1]];
      const level = p.fleet.levels[cell[1]];
      if (level === "ok") {
        const v = cell[2];
        c.fillStyle = v === null ? ink.none : ink.heat[Math.min(7, Math.max(0, Math.floor(((v - range[0]) / (range[1] - range[0])) * 8)))]!;
        c.fillRect(x, y + 2, w - 2, rowHeight - 4);
        return;
      }
      c.fillStyle = level === "critical" ? ink.bad : ink.warn;
      c.fillRect(x, y + 2, w - 2, rowHeight - 4);
      c.fillStyle = ink.panel;
      if (w > 9) c.fillText(marks[trouble ?? ""] ?? "?", x + (w - 2) / 2 - 5, y + rowHeight / 2);
    });
  }
}

function HostDetail(p: { host: Host; fleet: Fleet }) {
  const { host, fleet } = p;
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
      {host.jobs && <p class="muted">{host.jobs.join(" · ")}</p>}
      <ul>
        {host.cells.map((c) => (
          <li key={c[0]} class={health(fleet.levels[c[1]])}>
            <b>{c[0]}</b> {fleet.states[c[1]]} <span class="num">{markOf(c[3]) + value(c[2], fleet.unit)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
