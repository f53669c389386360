// Allocators: a bank along its addresses, what would fit, who holds it.

import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { bytes, clock } from "./figures";
import { setQuery, useRoute } from "./route";
import { state, type State } from "./store";
import { colour } from "./theme";

export interface MapPool {
  pool: string;
  what: string;
  state: string;
  exact: boolean;
  chips: string[];
  base_address: number;
  bank_capacity: number;
  bank_cut_bytes: number;
  banks: number;
  peak: string;
  blocks: [number, number, number, number, number][];
  left_out: number;
}

export interface Site {
  pool: string;
  chip: string;
  tag?: string;
  where?: string;
  stack: string[];
  bytes: number;
  blocks: number;
  bytes_text?: string;
}

export interface MapAnswer {
  pid: number;
  pools: MapPool[];
  doubts: string[];
  fits: string[];
  sites: Site[];
}

/** The allocators of a process, every two seconds. Only a recording has those of another moment. */
export function useMap(pid: number, s: State): { map: MapAnswer | null; problem: string } {
  const [map, setMap] = useState<MapAnswer | null>(null);
  const [problem, setProblem] = useState("");
  const beat = s.link === "live" ? Math.floor(s.received / 2000) : 0;
  useEffect(() => {
    if (!pid) {
      setMap(null);
      return;
    }
    if (s.at && !s.recording) {
      setMap(null);
      setProblem("Blocks are not kept: they are known of now only.");
      return;
    }
    if (s.me && s.me.sees === "public") {
      setMap(null);
      setProblem(s.me.text);
      return;
    }
    const stop = new AbortController();
    get<MapAnswer>(`processes/${pid}/map${s.at ? "?at=" + encodeURIComponent(s.at) : ""}`, stop.signal)
      .then((m) => {
        for (const x of m.sites) x.bytes_text = bytes(x.bytes);
        // A pool that was never used, and whose size nobody told, is nothing to look at.
        m.pools = m.pools.filter((x) => x.bank_capacity > 0 || x.blocks.length > 0);
        setMap(m);
        setProblem("");
      })
      .catch((err: Error) => {
        if (stop.signal.aborted) return;
        setMap(null);
        setProblem(err.message);
      });
    return () => stop.abort();
  }, [pid, beat, s.at, s.me]);
  return { map, problem };
}

const hex = (n: number) => "0x" + n.toString(16);

export function BankMap(p: { pool: MapPool }) {
  const { pool } = p;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hover, setHover] = useState("");
  const draw = () => canvas.current && drawBank(canvas.current, pool);
  useEffect(() => {
    draw();
    const watch = new ResizeObserver(draw);
    if (canvas.current) watch.observe(canvas.current);
    window.addEventListener("themechange", draw);
    return () => {
      watch.disconnect();
      window.removeEventListener("themechange", draw);
    };
  }, [pool]);
  const look = (x: number, width: number) => {
    const at = pool.base_address + (x / width) * pool.bank_capacity;
    const b = pool.blocks.find(([addr, size]) => addr <= at && at < addr + size);
    if (!b) {
      setHover(pool.exact ? "free at " + hex(Math.floor(at)) : "nothing known at " + hex(Math.floor(at)));
      return;
    }
    const asked = b[2] ? `, asked ${bytes(b[2])}` : "";
    const born = b[3] ? `, since ${clock(new Date(b[3]))}` : "";
    setHover(`${hex(b[0])}: ${bytes(b[1])} a bank${asked}${born}`);
  };
  return (
    <figure class="bank">
      <figcaption>
        <b>{pool.what}</b> {pool.state}
        {pool.exact ? <span class="exact"> exact</span> : <span class="muted"> not all blocks are known</span>}
        {pool.peak && <span class="muted"> · most {pool.peak}</span>}
      </figcaption>
      {pool.bank_capacity > 0 ? (
        <canvas
          ref={canvas}
          role="img"
          aria-label={`map of ${pool.what}: ${pool.state}`}
          onMouseMove={(e) => look(e.offsetX, e.currentTarget.clientWidth)}
          onMouseLeave={() => setHover("")}
        />
      ) : (
        <p class="muted">Its size is not known.</p>
      )}
      <p class="under">
        <span>0</span>
        <span class="hover">{hover || (pool.blocks.length + pool.left_out === 1 ? "1 block" : `${pool.blocks.length + pool.left_out} blocks`)}</span>
        <span>{bytes(pool.bank_capacity)}</span>
      </p>
    </figure>
  );
}

function drawBank(canvas: HTMLCanvasElement, pool: MapPool): void {
  const scale = devicePixelRatio;
  const width = (canvas.width = Math.max(1, Math.round(canvas.clientWidth * scale)));
  const height = (canvas.height = Math.round(canvas.clientHeight * scale));
  const c = canvas.getContext("2d")!;
  c.fillStyle = colour("raised");
  c.fillRect(0, 0, width, height);
  const x = (addr: number) => ((addr - pool.base_address) / pool.bank_capacity) * width;
  if (pool.bank_cut_bytes) {
    c.fillStyle = colour("edge");
    c.fillRect(0, 0, (pool.bank_cut_bytes / pool.bank_capacity) * width, height);
  }
  const fill = colour("fill");
  const other = colour("line1");
  pool.blocks.forEach(([addr, size], i) => {
    const left = x(addr);
    const w = Math.max(x(addr + size) - left, 0.6 * scale);
    c.fillStyle = i % 2 ? other : fill;
    c.globalAlpha = 0.92;
    c.fillRect(left, 0, w, height);
  });
  c.globalAlpha = 1;
}

export function Fit(p: { pid: number }) {
  const q = useRoute().query;
  const size = q.get("fit") ?? "";
  const [answer, setAnswer] = useState<string[]>([]);
  const pool = q.get("pool") ?? "dram";
  const tensor = /^[\d\s]+,/.test(size);
  const shard = tensor ? (q.get("shard") ?? "") : "";
  useEffect(() => {
    if (!size) {
      setAnswer([]);
      return;
    }
    const stop = new AbortController();
    const ask = new URLSearchParams({ [tensor ? "shape" : "fit"]: size, pool });
    if (shard) ask.set("shard", shard);
    if (state.at) ask.set("at", state.at);
    const wait = setTimeout(() => {
      get<MapAnswer>(`processes/${p.pid}/map?${ask}`, stop.signal)
        .then((m) => setAnswer(m.fits.length > 0 ? m.fits : ["It has no allocator for that."]))
        .catch((err: Error) => !stop.signal.aborted && setAnswer([err.message]));
    }, 250);
    return () => {
      clearTimeout(wait);
      stop.abort();
    };
  }, [size, shard, pool, p.pid]);
  return (
    <div class="body fit">
      <label>
        a buffer of <input value={size} placeholder="512M, or a shape: 1,1,4096,4096" onInput={(e) => setQuery({ fit: e.currentTarget.value })} />
      </label>
      {tensor && (
        <label>
          {" "}
          in shards of{" "}
          <input class="shard" value={shard} placeholder="none, 64x512, height:8, block:4x4" onInput={(e) => setQuery({ shard: e.currentTarget.value })} />
        </label>
      )}
      <label>
        {" "}
        in{" "}
        <select value={pool} onChange={(e) => setQuery({ pool: e.currentTarget.value })}>
          {["dram", "l1", "l1_small", "trace"].map((x) => (
            <option key={x}>{x}</option>
          ))}
        </select>
      </label>
      <ul role="status">
        {answer.map((a) => (
          <li key={a}>{a}</li>
        ))}
      </ul>
    </div>
  );
}

interface Node {
  name: string;
  bytes: number;
  children: Map<string, Node>;
}

/** A frame without the folders of its file. */
const shortly = (frame: string): string => frame.replace(/\([^()]*\/([^/()]+)\)$/, "($1)");

/** The program's stacks, as wide as the bytes that they hold. */
export function Flame(p: { sites: Site[] }) {
  const root: Node = { name: "all", bytes: 0, children: new Map() };
  for (const s of p.sites) {
    let at = root;
    at.bytes += s.bytes;
    for (const name of [...s.stack, ...(s.tag ? ["tag " + s.tag] : [])]) {
      let next = at.children.get(name);
      if (!next) at.children.set(name, (next = { name, bytes: 0, children: new Map() }));
      next.bytes += s.bytes;
      at = next;
    }
  }
  const [zoomed, setZoomed] = useState<Node | null>(null);
  const top = zoomed ?? root;
  const rows: { n: Node; left: number; width: number; depth: number }[] = [];
  const place = (n: Node, left: number, width: number, depth: number) => {
    rows.push({ n, left, width, depth });
    let x = left;
    for (const c of [...n.children.values()].sort((a, b) => b.bytes - a.bytes)) {
      const w = (c.bytes / n.bytes) * width;
      if (w > 0.002 && depth < 40) place(c, x, w, depth + 1);
      x += w;
    }
  };
  place(top, 0, 1, 0);
  const deepest = Math.max(...rows.map((r) => r.depth));
  return (
    <div class="flame" style={{ height: (deepest + 1) * 22 + "px" }} role="group" aria-label="Flame graph: bytes held by stack">
      {rows.map((r) => (
        <button
          key={r.depth + "/" + r.left + r.n.name}
          style={{ left: r.left * 100 + "%", width: r.width * 100 + "%", top: r.depth * 22 + "px" }}
          class={"d" + (r.depth % 4)}
          title={`${r.n.name}: ${bytes(r.n.bytes)}`}
          onClick={() => setZoomed(r.n === root || r.n === zoomed ? null : r.n)}
        >
          {r.width > 0.03 ? `${shortly(r.n.name)} ${bytes(r.n.bytes)}` : ""}
        </button>
      ))}
    </div>
  );
}
