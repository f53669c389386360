// Small parts that every view is made of.

import type { ComponentChildren, RefObject, TargetedMouseEvent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { go, keepMoment } from "./route";
import type { Figure, SaidDevice } from "./answers";

/** A link within the page. */
export function A(p: { to: string; children: ComponentChildren; class?: string; label?: string; title?: string; about?: string; current?: boolean; style?: Record<string, string> }) {
  const click = (e: TargetedMouseEvent<HTMLAnchorElement>) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button !== 0) return;
    e.preventDefault();
    go(p.to);
  };
  return (
    <a href={keepMoment(p.to)} class={p.class} style={p.style} aria-label={p.label} title={p.title} data-about={p.about} aria-current={p.current ? "page" : undefined} onClick={click}>
      {p.children}
    </a>
  );
}

/** How full something is. The end of a doubtful one is soft. */
export function Bar(p: { figure: Figure; label: string }) {
  const ratio = p.figure.ratio;
  if (ratio === null) return <span class="bar none" aria-hidden="true" />;
  const soft = p.figure.bound && p.figure.bound !== "exact";
  const width = Math.min(Math.max(ratio, ratio > 0 ? 0.01 : 0), 1) * 100;
  return (
    <span class="bar" role="img" aria-label={`${p.label} ${p.figure.text}, ${Math.round(ratio * 100)} %`}>
      <span class={"fill" + (soft ? " soft" : "")} style={{ width: width.toFixed(1) + "%" }} />
    </span>
  );
}

/** The class of a level: the one rule of colours of health. */
export const health = (level: string | undefined): string => (level === "critical" ? "bad" : level === "warning" ? "warn" : "good");

/** A device's state: a word and a shape, and only then a colour. */
export function StateOf(p: { of: SaidDevice | undefined }) {
  if (!p.of) return null;
  return (
    <span class={"state " + health(p.of.level)}>
      <span aria-hidden="true">{p.of.mark}</span> {p.of.state}
    </span>
  );
}

export function Panel(p: { title?: ComponentChildren; children: ComponentChildren; tools?: ComponentChildren; class?: string; id?: string }) {
  return (
    <section class={"panel " + (p.class ?? "")} id={p.id}>
      {(p.title || p.tools) && (
        <header>
          <h2>{p.title}</h2>
          <div class="tools">{p.tools}</div>
        </header>
      )}
      {p.children}
    </section>
  );
}

/** Sentences about what figures leave out. */
export function Reasons(p: { list: string[] }) {
  if (p.list.length === 0) return null;
  const all = (
    <ul class="reasons">
      {p.list.map((r) => (
        <li key={r}>{r}</li>
      ))}
    </ul>
  );
  if (p.list.length <= 4) return all;
  return (
    <details class="more">
      <summary>{p.list.length} notes on these figures</summary>
      {all}
    </details>
  );
}

export function Empty(p: { children: ComponentChildren }) {
  return <p class="empty">{p.children}</p>;
}

/** Offers bytes to be saved. */
export function save(name: string, blob: Blob): void {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

export function Choice<T extends string>(p: { label: string; value: T; options: readonly T[]; names?: Record<string, string>; choose: (v: T) => void }) {
  return (
    <label class="choice">
      <span>{p.label}</span>
      <select value={p.value} onChange={(e) => p.choose(e.currentTarget.value as T)}>
        {p.options.map((o) => (
          <option key={o} value={o}>
            {p.names?.[o] ?? o}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How pools are called in tables and lists. */
export const poolNames: Record<string, string> = { dram: "DRAM", l1: "L1", l1_small: "L1 small", trace: "Trace", cb: "CB", kernel: "Kernels" };

/** How wide something is, now and after the window has changed. */
export function useWidth(box: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(1000);
  useEffect(() => {
    const watch = new ResizeObserver(() => box.current?.clientWidth && setWidth(box.current.clientWidth));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}
