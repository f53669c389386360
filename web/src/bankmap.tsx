// Allocators: a bank along its addresses, what would fit, who holds it.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get } from "./api";
import { bytes, noLine } from "./figures";
import { ageOf, entriesOf, HolderLegend, hueOf } from "./holders";
import type { MapAnswer, MapPool, Site } from "./answers";
import { poolNames } from "./parts";
import { setQuery, useRoute } from "./route";
import { state, type State } from "./store";
import { colour } from "./theme";

/** Address, bytes of each bank, bytes asked for, born in Unix milliseconds, site. */
type Block = [number, number, number, number, number];

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
        // A ttmond that is older than this page names no lines.
        for (const x of m.pools) x.holders ??= [];
        for (const x of m.sites) x.own ??= x.stack;
        // A pool that was never used, and whose size is unknown, is not drawn.
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

/** Who has the block of a site, and for which tensor. */
type Whose = Map<number, { number: number; line: string; tensor: string }>;

function whoseOf(pool: MapPool): Whose {
  const out: Whose = new Map();
  for (const h of pool.holders) {
    for (const s of h.sites) out.set(s.site, { number: h.number, line: h.line || (h.other_lines ? "one of the other lines" : ""), tensor: s.tensor ?? "" });
  }
  return out;
}

/** What a pool is divided into: L1 has a bank in each core. */
const bankOf = (pool: MapPool): string => (pool.pool.startsWith("l1") ? "a core" : "a bank");

/** A block in a sentence: line, tensor, size, age. */
function sentence(b: Block, whose: Whose, of: string): string {
  const [addr, size, asked, born, site] = b;
  const who = whose.get(site);
  const known = who ? [who.line || noLine(), who.tensor] : whose.size > 0 ? [noLine()] : [];
  return [...known, `${bytes(size)} ${of}${asked ? `, asked ${bytes(asked)}` : ""}`, ageOf(born), "at " + hex(addr)].filter(Boolean).join(" · ");
}

export function BankMap(p: { pool: MapPool }) {
  const { pool } = p;
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<number | null>(null); // address of the block that is described
  const [free, setFree] = useState("");
  const [lit, setLit] = useState<number | null>(null);
  const [chosen, setChosen] = useState<number | null>(null);
  const whose = useMemo(() => whoseOf(pool), [pool]);
  const entries = useMemo(() => entriesOf(pool.holders), [pool]);
  const index = at === null ? -1 : pool.blocks.findIndex(([addr]) => addr === at);
  const shown = index < 0 ? null : pool.blocks[index]!;
  const draw = () => canvas.current && drawBank(canvas.current, pool, whose, lit ?? chosen, shown);
  useEffect(() => {
    draw();
    const watch = new ResizeObserver(draw);
    if (canvas.current) watch.observe(canvas.current);
    window.addEventListener("themechange", draw);
    return () => {
      watch.disconnect();
      window.removeEventListener("themechange", draw);
    };
  }, [pool, lit, chosen, at]);
  const look = (x: number, width: number) => {
    const address = pool.base_address + (x / width) * pool.bank_capacity;
    const b = nearest(pool, address, (pool.bank_capacity / width) * 1.5);
    setAt(b ? b[0] : null);
    setFree(b ? "" : (pool.exact ? "free at " : "nothing known at ") + hex(Math.floor(address)));
  };
  const step = (e: KeyboardEvent) => {
    const last = pool.blocks.length - 1;
    const to: Record<string, number> = { ArrowRight: index + 1, ArrowUp: index + 1, ArrowLeft: index - 1, ArrowDown: index - 1, Home: 0, End: last };
    if (e.key === "Escape") setAt(null);
    else if (e.key in to && last >= 0) setAt(pool.blocks[Math.min(Math.max(to[e.key]!, 0), last)]![0]);
    else return;
    setFree("");
    e.preventDefault();
  };
  const all = pool.blocks.length + pool.left_out;
  const text = shown ? sentence(shown, whose, bankOf(pool)) : free || (all === 1 ? "1 block" : `${all} blocks`);
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
          tabIndex={0}
          role="slider"
          aria-label={`blocks of ${pool.what}: ${pool.state}`}
          aria-valuemin={0}
          aria-valuemax={pool.blocks.length}
          aria-valuenow={index + 1}
          aria-valuetext={text}
          onPointerMove={(e) => look(e.offsetX, e.currentTarget.clientWidth)}
          onPointerDown={(e) => look(e.offsetX, e.currentTarget.clientWidth)}
          onPointerLeave={() => {
            setAt(null);
            setFree("");
          }}
          onFocus={() => at === null && pool.blocks[0] && canvas.current?.matches(":focus-visible") && setAt(pool.blocks[0][0])}
          onBlur={() => setAt(null)}
          onKeyDown={step}
        />
      ) : (
        <p class="muted">Its size is not known.</p>
      )}
      <p class="under">
        <span>0</span>
        <span class="hover">{text}</span>
        <span>{bytes(pool.bank_capacity)}</span>
      </p>
      {entries.some((e) => e.number > 0) && <HolderLegend entries={entries} of={bankOf(pool)} chosen={chosen} choose={setChosen} light={setLit} />}
    </figure>
  );
}

/** The block at an address, or one that is so near that it is drawn there. */
function nearest(pool: MapPool, address: number, near: number): Block | undefined {
  const inside = pool.blocks.find(([addr, size]) => addr <= address && address < addr + size);
  if (inside) return inside;
  const apart = ([addr, size]: Block) => Math.max(addr - address, address - addr - size);
  const close = pool.blocks.filter((b) => b[1] < near && apart(b) < near);
  return close.sort((a, b) => apart(a) - apart(b))[0];
}

function drawBank(canvas: HTMLCanvasElement, pool: MapPool, whose: Whose, lit: number | null, shown: Block | null): void {
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
  const hues = new Map<string, string>();
  const hue = (name: string) => hues.get(name) ?? (hues.set(name, colour(name)), hues.get(name)!);
  pool.blocks.forEach(([addr, size, , , site], i) => {
    const left = x(addr);
    const w = Math.max(x(addr + size) - left, 0.6 * scale);
    const number = whose.get(site)?.number ?? 0;
    // Without lines two colours distinguish neighbours.
    c.fillStyle = hue(whose.size > 0 ? hueOf(number) : i % 2 ? "line1" : "fill");
    c.globalAlpha = lit !== null && hueOf(lit) !== hueOf(number) ? 0.2 : 0.92;
    c.fillRect(left, 0, w, height);
    // A seam between blocks of the same line.
    c.globalAlpha = 0.6;
    c.fillStyle = hue("panel");
    if (whose.size > 0 && w > 3 * scale) c.fillRect(left, 0, 0.5 * scale, height);
  });
  c.globalAlpha = 1;
  if (shown) {
    const left = x(shown[0]);
    const w = Math.max(x(shown[0] + shown[1]) - left, 2 * scale);
    c.lineWidth = 2 * scale;
    c.strokeStyle = colour("text");
    c.strokeRect(left + scale, scale, Math.max(w - 2 * scale, 1), height - 2 * scale);
  }
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

/** The program's stacks, as wide as the bytes that they hold: of one pool, as bytes of DRAM and of L1 are not alike. */
export function Flame(p: { sites: Site[] }) {
  const pools = [...new Set(p.sites.map((s) => s.pool))].sort((a, b) => Object.keys(poolNames).indexOf(a) - Object.keys(poolNames).indexOf(b));
  const [wanted, setPool] = useState("");
  const [libraries, setLibraries] = useState(false);
  const pool = pools.includes(wanted) ? wanted : pools[0]!;
  const folded = p.sites.some((s) => s.own.length < s.stack.length);
  return (
    <>
      <div class="body flametools">
        {pools.length > 1 && (
          <div class="segments" role="group" aria-label="Pool of the flame graph">
            {pools.map((x) => (
              <button key={x} aria-pressed={x === pool} onClick={() => setPool(x)}>
                {poolNames[x] ?? x}
              </button>
            ))}
          </div>
        )}
        {folded && (
          <button aria-pressed={libraries} onClick={() => setLibraries(!libraries)} title="show frames of installed packages and of ttnn, too">
            library frames
          </button>
        )}
      </div>
      <Stacks key={pool + libraries} root={rootOf(p.sites.filter((s) => s.pool === pool), libraries, poolNames[pool] ?? pool)} />
    </>
  );
}

/** Stacks put together, the outermost frame first. */
function rootOf(sites: Site[], libraries: boolean, name: string): Node {
  const root: Node = { name: "all of " + name, bytes: 0, children: new Map() };
  for (const s of sites) {
    let at = root;
    at.bytes += s.bytes;
    for (const frame of [...(libraries ? s.stack : s.own), ...(s.tag ? ["tag " + s.tag] : [])]) {
      let next = at.children.get(frame);
      if (!next) at.children.set(frame, (next = { name: frame, bytes: 0, children: new Map() }));
      next.bytes += s.bytes;
      at = next;
    }
  }
  return root;
}

/** The frame of a tree that has a path, as far as it is still there. */
function within(root: Node, path: string[]): Node {
  let at = root;
  for (const name of path) {
    const next = at.children.get(name);
    if (!next) break;
    at = next;
  }
  return at;
}

function Stacks(p: { root: Node }) {
  const [zoomed, setZoomed] = useState<string[]>([]);
  const top = within(p.root, zoomed);
  const rows: { n: Node; left: number; width: number; depth: number; path: string[] }[] = [];
  const place = (n: Node, left: number, width: number, depth: number, path: string[]) => {
    rows.push({ n, left, width, depth, path });
    let x = left;
    for (const c of [...n.children.values()].sort((a, b) => b.bytes - a.bytes)) {
      const w = (c.bytes / n.bytes) * width;
      if (w > 0.002 && depth < 40) place(c, x, w, depth + 1, [...path, c.name]);
      x += w;
    }
  };
  place(top, 0, 1, 0, zoomed);
  const deepest = Math.max(...rows.map((r) => r.depth));
  return (
    <div class="flame" style={{ height: (deepest + 1) * 22 + "px" }} role="group" aria-label="Flame graph: bytes held by stack">
      {rows.map((r) => (
        <button
          key={r.path.join("\n")}
          style={{ left: r.left * 100 + "%", width: r.width * 100 + "%", top: r.depth * 22 + "px" }}
          class={"d" + (r.depth % 4)}
          title={`${r.n.name}: ${bytes(r.n.bytes)}`}
          onClick={() => setZoomed(r.depth === 0 ? [] : r.path)}
        >
          {r.width > 0.03 ? `${shortly(r.n.name)} ${bytes(r.n.bytes)}` : ""}
        </button>
      ))}
    </div>
  );
}
