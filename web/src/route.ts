// Addresses: every view, with its device, range and filter, is one that can be
// sent to another person.

import { useEffect, useReducer } from "preact/hooks";

export interface Route {
  page: string; // "", "device", "processes", …
  name: string; // what follows: a bus id, a pid
  query: URLSearchParams;
}

export function currentRoute(): Route {
  const [, page = "", name = ""] = location.pathname.split("/");
  return { page, name: decodeURIComponent(name), query: new URLSearchParams(location.search) };
}

const listeners = new Set<() => void>();

export function onRoute(f: () => void): () => void {
  listeners.add(f);
  return () => void listeners.delete(f);
}

function told(): void {
  for (const l of listeners) l();
}

window.addEventListener("popstate", told);

/** Goes to a view. The past moment that is shown goes along. */
export function go(path: string): void {
  history.pushState(null, "", keepMoment(path));
  told();
  window.scrollTo(0, 0);
}

export function keepMoment(path: string): string {
  const at = new URLSearchParams(location.search).get("at");
  const url = new URL(path, location.origin);
  if (at && !url.searchParams.has("at")) url.searchParams.set("at", at);
  return url.pathname + url.search;
}

/** Changes parts of the query in place; "" removes one. */
export function setQuery(part: Record<string, string>, push = false): void {
  const q = new URLSearchParams(location.search);
  for (const [k, v] of Object.entries(part)) {
    if (v) q.set(k, v);
    else q.delete(k);
  }
  const text = q.toString();
  history[push ? "pushState" : "replaceState"](null, "", location.pathname + (text ? "?" + text : ""));
  told();
}

export function useRoute(): Route {
  const [, again] = useReducer((n: number) => n + 1, 0);
  useEffect(() => onRoute(() => again(0)), []);
  return currentRoute();
}
