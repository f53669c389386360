// Areas as large as what they stand for (squarified).

import { useRef } from "preact/hooks";
import { A, useWidth } from "./parts";
import { bytes } from "./figures";

export interface Tile {
  name: string;
  short?: string; // where there is little room
  bytes: number;
  text: string;
  to?: string;
  kind: "device" | "process" | "part" | "rest";
  children?: Tile[];
}

interface Box {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** Lays tiles out so that none is a sliver, the largest first. */
export function squarify<T extends { bytes: number }>(list: T[], box: Box): { t: T; box: Box }[] {
  const sorted = list.filter((t) => t.bytes > 0).sort((a, b) => b.bytes - a.bytes);
  const total = sorted.reduce((n, t) => n + t.bytes, 0);
  const out: { t: T; box: Box }[] = [];
  let { x, y, w, h } = box;
  let left = total;
  for (let i = 0; i < sorted.length; ) {
    const side = Math.min(w, h);
    const scale = (w * h) / left;
    let row: T[] = [];
    let sum = 0;
    let worst = Infinity;
    while (i + row.length < sorted.length) {
      const next = sorted[i + row.length]!;
      const area = (sum + next.bytes) * scale;
      const ratios = [...row, next].map((t) => {
        const a = t.bytes * scale;
        const r = (side * side * a) / (area * area);
        return Math.max(r, 1 / r);
      });
      const now = Math.max(...ratios);
      if (now > worst) break;
      worst = now;
      row = [...row, next];
      sum += next.bytes;
    }
    const thick = (sum * scale) / side;
    let at = 0;
    for (const t of row) {
      const len = (t.bytes / sum) * side;
      out.push({ t, box: w >= h ? { x, y: y + at, w: thick, h: len } : { x: x + at, y, w: len, h: thick } });
      at += len;
    }
    if (w >= h) [x, w] = [x + thick, w - thick];
    else [y, h] = [y + thick, h - thick];
    left -= sum;
    i += row.length;
  }
  return out;
}

/** Lays tiles out in rows, in the order in which they are: devices keep their places. */
export function strips<T extends { bytes: number }>(list: T[], box: Box): { t: T; box: Box }[] {
  const there = list.filter((t) => t.bytes > 0);
  const total = there.reduce((n, t) => n + t.bytes, 0);
  const out: { t: T; box: Box }[] = [];
  const across = rowOf(there.length, box);
  let y = box.y;
  for (let i = 0; i < there.length; i += across) {
    const row = there.slice(i, i + across);
    const sum = row.reduce((n, t) => n + t.bytes, 0);
    const h = (sum / total) * box.h;
    let x = box.x;
    for (const t of row) {
      const w = (t.bytes / sum) * box.w;
      out.push({ t, box: { x, y, w, h } });
      x += w;
    }
    y += h;
  }
  return out;
}

/** How many tiles go in a row: so that they are a little wider than high, and rows alike where that can be. */
function rowOf(n: number, box: Box): number {
  const ideal = Math.max(1, Math.min(n, Math.round(Math.sqrt((n * box.w) / (box.h * 1.5)))));
  const even = [0, 1, -1, 2, -2, 3].map((by) => ideal + by).find((k) => k > 0 && n % k === 0);
  return even ?? ideal;
}

/** What is held from the left, and what nobody has to the right of it. */
function fill(list: Tile[], box: Box): { t: Tile; box: Box }[] {
  const rest = list.find((t) => t.kind === "rest");
  const held = list.filter((t) => t !== rest);
  const sum = held.reduce((n, t) => n + t.bytes, 0);
  if (!rest) return squarify(held, box);
  const w = (sum / (sum + rest.bytes)) * box.w;
  return [...squarify(held, { ...box, w }), { t: rest, box: { ...box, x: box.x + w, w: box.w - w } }];
}

export function Treemap(p: { tiles: Tile[] }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const height = Math.max(180, Math.min(560, p.tiles.length * 60, width * 0.9));
  const total = p.tiles.reduce((n, t) => n + t.bytes, 0);
  return (
    <div ref={box} class="treemap" style={{ height: height + "px" }} role="group" aria-label="Memory by device and process">
      {total === 0 && <p class="empty">Nothing is known to be in use.</p>}
      {strips(p.tiles, { x: 0, y: 0, w: width, h: height }).map(({ t, box: b }) => {
        const inner = { x: 0, y: 20, w: b.w - 4, h: Math.max(b.h - 24, 1) };
        return (
          <div key={t.name} class="tile device" style={place(b)}>
            <A to={t.to!} class="label" title={`${t.name} ${t.text}`}>
              <b>{b.w < 190 ? (t.short ?? t.name) : t.name}</b> {b.w >= 124 && <span class="num">{t.text}</span>}
            </A>
            {fill(t.children ?? [], inner).map(({ t: c, box: cb }) =>
              c.to ? (
                <A key={c.name} to={c.to} class={"tile " + c.kind} style={place(cb)} label={roomy(cb) ? undefined : `${c.name}, ${c.text}`}>
                  <Inside b={{ ...cb, x: 0, y: 0 }} name={c.name} text={c.text || bytes(c.bytes)} />
                  {roomy(cb) && cb.h > 60 && squarify(c.children ?? [], { x: 4, y: 34, w: cb.w - 8, h: cb.h - 40 }).map(({ t: part, box: pb }) => (
                    <span key={part.name} class="tile part">
                      <Inside b={pb} name={part.name} text={part.text} />
                    </span>
                  ))}
                </A>
              ) : (
                <div key={c.name} class={"tile " + c.kind}>
                  <Inside b={cb} name={cb.w > 180 ? c.name : ""} text="" />
                </div>
              ),
            )}
          </div>
        );
      })}
    </div>
  );
}

/** Whether there is room for words. */
const roomy = (b: Box) => b.w > 46 && b.h > 18;

const place = (b: Box) => ({ left: b.x + "px", top: b.y + "px", width: b.w + "px", height: b.h + "px" });

function Inside(p: { b: Box; name: string; text: string }) {
  return (
    <span class={roomy(p.b) ? "inside" : "inside slim"} style={{ left: p.b.x + 2 + "px", top: p.b.y + "px", width: Math.max(p.b.w - 2, 1) + "px", height: Math.max(p.b.h - 2, 1) + "px" }} title={p.name + " " + p.text}>
      {roomy(p.b) && (
        <span class="words">
          <b class="num">{p.text}</b> {p.name}
        </span>
      )}
    </span>
  );
}
