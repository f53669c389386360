// Areas as large as what they stand for (squarified).

import { useRef, useState } from "preact/hooks";
import { A, useWidth } from "./parts";
import { bytes } from "./figures";

export interface Tile {
  name: string;
  short?: string; // where there is little room
  bytes: number;
  text: string;
  to?: string;
  kind: "device" | "process" | "part" | "rest";
  colour?: string;
  about?: string; // more of it, for who points at it
  whose?: string; // of several tiles of one owner only the largest is named
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

/** What is held from the left, and what is free to the right of it. */
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
  const [shown, setShown] = useState("");
  const height = Math.max(180, Math.min(560, p.tiles.length * 60, width * 0.9));
  const total = p.tiles.reduce((n, t) => n + t.bytes, 0);
  const devices = strips(p.tiles, { x: 0, y: 0, w: width, h: height }).map(({ t, box: b }) => ({ t, b, inner: fill(t.children ?? [], { x: 0, y: 20, w: b.w - 4, h: Math.max(b.h - 24, 1) }) }));
  const named = largest(devices.flatMap((d) => d.inner));
  const show = (e: Event) => setShown((e.target as HTMLElement).closest<HTMLElement>("[data-about]")?.dataset["about"] ?? "");
  return (
    <>
      <div
        ref={box}
        class="treemap"
        style={{ height: height + "px" }}
        role="group"
        aria-label="Memory by device and process"
        onPointerOver={show}
        onPointerDown={show}
        onPointerLeave={() => setShown("")}
        onFocusIn={show}
        onFocusOut={() => setShown("")}
      >
        {total === 0 && <p class="empty">Nothing is known to be in use.</p>}
        {devices.map(({ t, b, inner }) => (
          <div key={t.name} class="tile device" style={place(b)} data-about={aboutOf(t)}>
            <A to={t.to!} class="label" title={`${t.name} ${t.text}`}>
              <b>{b.w < 190 ? (t.short ?? t.name) : t.name}</b> {b.w >= 124 && <span class="num">{t.text}</span>}
            </A>
            {inner.map(({ t: c, box: cb }) =>
              c.to ? (
                <Process key={c.name} t={c} b={cb} named={named.has(c)} />
              ) : (
                <div key={c.name} class={"tile " + c.kind} data-about={`${c.name}: ${bytes(c.bytes)}`}>
                  <Inside b={cb} name={cb.w > 180 ? c.name : ""} text="" />
                </div>
              ),
            )}
          </div>
        ))}
      </div>
      <p class="shown" role="status">
        {shown || "Point at an area, or go there with Tab, to read what it is."}
      </p>
    </>
  );
}

/** The largest tile of each owner: it has the owner's name, the others are known by its colour. */
function largest(list: { t: Tile; box: Box }[]): Set<Tile> {
  const best = new Map<string, { t: Tile; area: number }>();
  for (const { t, box } of list) {
    const area = roomy(box) ? box.w * box.h : 0;
    const old = best.get(t.whose ?? t.name);
    if (!old || area > old.area) best.set(t.whose ?? t.name, { t, area });
  }
  return new Set([...best.values()].map((x) => x.t));
}

const aboutOf = (t: Tile): string => [t.name, t.text || bytes(t.bytes), t.about].filter(Boolean).join(" · ");

/** What a process has of a device, and which of its lines where that is known. */
function Process(p: { t: Tile; b: Box; named: boolean }) {
  const { t, b } = p;
  const label = p.named && fits(t.name, b) ? t.name : "";
  const parts = roomy(b) && b.h > 60 ? squarify(t.children ?? [], { x: 4, y: 34, w: b.w - 8, h: b.h - 40 }) : [];
  return (
    <A to={t.to!} class={"tile " + t.kind} style={{ ...place(b), ...own(t.colour) }} label={roomy(b) ? undefined : `${t.name}, ${t.text}`} about={aboutOf(t)}>
      <Inside b={{ ...b, x: 0, y: 0 }} name={label} text={t.text || bytes(t.bytes)} />
      {!label && roomy(b) && <span class="unseen">{t.name}</span>}
      {parts.map(({ t: part, box: pb }) => (
        <span key={part.name} class="tile part" style={own(part.colour)} data-about={aboutOf(part)}>
          <Inside b={pb} name={part.name} text={part.text} />
        </span>
      ))}
    </A>
  );
}

/** The colour that style sheets know as --own. */
const own = (colour?: string): Record<string, string> => (colour ? { "--own": colour } : {});

/** Whether there is room for words. */
const roomy = (b: Box) => b.w > 46 && b.h > 18;

/** Whether a name can be written there without breaking its words. */
const fits = (name: string, b: Box): boolean => roomy(b) && Math.max(...name.split(/\s/).map((w) => w.length)) * 7 < b.w - 12;

const place = (b: Box) => ({ left: b.x + "px", top: b.y + "px", width: b.w + "px", height: b.h + "px" });

function Inside(p: { b: Box; name: string; text: string }) {
  return (
    <span class={roomy(p.b) ? "inside" : "inside slim"} style={{ left: p.b.x + 2 + "px", top: p.b.y + "px", width: Math.max(p.b.w - 2, 1) + "px", height: Math.max(p.b.h - 2, 1) + "px" }}>
      {roomy(p.b) && (
        <span class="words">
          <b class="num">{p.text}</b> {fits(p.name, p.b) ? p.name : ""}
        </span>
      )}
    </span>
  );
}
