// The frame around every view: who and how fresh, trouble, the way around.

import { useEffect, useRef, useState } from "preact/hooks";
import { DevicePage } from "./device";
import { EventsPage } from "./events";
import { FailuresPage } from "./failures";
import { FleetPage } from "./fleet";
import { MemoryPage } from "./memory";
import { Overview } from "./overview";
import { ProcessesPage, ProcessPage } from "./processes";
import { RunsPage } from "./runs";
import { Search } from "./search";
import { TimeBar } from "./timebar";
import { TopologyPage } from "./topology";
import { sessionOf, signOut } from "./api";
import { A, health } from "./parts";
import type { Trouble as T } from "./answers";
import { go, setQuery, useRoute } from "./route";
import { age, isStale, now, offers, state, type State, useStore } from "./store";
import { applyTheme, theme, themes, type Theme } from "./theme";
import { clock, moment, span } from "./figures";

const pages: { path: string; page: string; name: string; key: string }[] = [
  { path: "/", page: "", name: "Overview", key: "o" },
  { path: "/processes", page: "processes", name: "Processes", key: "p" },
  { path: "/runs", page: "runs", name: "Runs", key: "r" },
  { path: "/memory", page: "memory", name: "Memory", key: "m" },
  { path: "/failures", page: "failures", name: "Failures", key: "w" },
  { path: "/topology", page: "topology", name: "Topology", key: "t" },
  { path: "/events", page: "events", name: "Events", key: "e" },
  { path: "/fleet", page: "fleet", name: "Fleet", key: "f" },
];

export function Shell() {
  const s = useStore();
  const route = useRoute();
  const [help, setHelp] = useState(false);
  const [bar, setBar] = useState(route.query.has("at"));
  const search = useRef<HTMLInputElement>(null);
  useKeys(setHelp, search);
  useEffect(() => {
    const name = pages.find((p) => p.page === route.page)?.name ?? route.page;
    document.title = [route.name, name, s.snap?.host.name, "ttmon"].filter(Boolean).join(" · ");
  });
  return (
    <div class={"shell" + (isStale(s) && route.page !== "fleet" ? " stale" : "")}>
      <a class="skip" href="#main">
        to the content
      </a>
      <Head s={s} search={search} help={() => setHelp(true)} bar={() => setBar(!bar)} />
      {route.page !== "fleet" && (
        <section aria-label="What is shown, and what is wrong">
          {(bar || s.at || s.recording) && !s.fleetOnly && <TimeBar s={s} close={() => setBar(false)} />}
          <Connection s={s} />
          <Trouble s={s} full={route.page === ""} />
        </section>
      )}
      <main id="main">
        <View s={s} />
      </main>
      <Foot s={s} />
      {help && <Help close={() => setHelp(false)} />}
    </div>
  );
}

function View(p: { s: State }) {
  const route = useRoute();
  if (route.page === "fleet") return <FleetPage />;
  if (!p.s.snap || !p.s.said) {
    return <p class="empty">{p.s.problem || "waiting for the first snapshot …"}</p>;
  }
  switch (route.page) {
    case "":
      return <Overview s={p.s} />;
    case "device":
      return <DevicePage s={p.s} name={route.name} key={route.name} />;
    case "processes":
      return <ProcessesPage s={p.s} />;
    case "process":
      return <ProcessPage s={p.s} name={route.name} key={route.name} />;
    case "runs":
      return <RunsPage />;
    case "memory":
      return <MemoryPage s={p.s} />;
    case "failures":
      return <FailuresPage s={p.s} />;
    case "topology":
      return <TopologyPage s={p.s} />;
    case "events":
      return <EventsPage s={p.s} />;
    default:
      return <p class="empty">There is no such view.</p>;
  }
}

function Head(p: { s: State; search: { current: HTMLInputElement | null }; help: () => void; bar: () => void }) {
  const route = useRoute();
  const { snap, said } = p.s;
  const t = said?.totals;
  const trouble = t?.states.filter((x) => x.level !== "ok") ?? [];
  return (
    <header class="head">
      <div class="first">
        <A to={p.s.fleetOnly ? "/fleet" : "/"} class="host">
          <h1>{snap?.host.name ?? "ttmon"}</h1>
        </A>
        {t && (
          <p class="totals">
            <span>
              <b>{t.devices}</b> {t.devices === 1 ? "device" : "devices"}
            </span>
            {t.chips !== t.devices && (
              <span>
                <b>{t.chips}</b> chips
              </span>
            )}
            {trouble.map((x) => (
              <span key={x.kind} class={health(x.level)}>
                <b>{x.n}</b> {x.text}
              </span>
            ))}
            <span>
              DRAM <b>{t.dram.text}</b>
            </span>
            <span>
              <b>{t.power}</b>
            </span>
            <span>
              hottest <b>{t.hottest}</b>
            </span>
          </p>
        )}
        {!p.s.fleetOnly && <Fresh s={p.s} bar={p.bar} />}
      </div>
      <nav aria-label="Views">
        <div class="pages">
          {pages.filter((x) => (x.page === "fleet" ? offers("/v1/fleet") || route.page === "fleet" : x.page === "runs" || x.page === "failures" ? offers("/v1/" + x.page) && !p.s.fleetOnly : !p.s.fleetOnly)).map((x) => (
            <A key={x.path} to={x.path} current={route.page === x.page || (x.page === "" && route.page === "device") || (x.page === "processes" && route.page === "process")}>
              {x.name}
            </A>
          ))}
        </div>
        <span class="gap" />
        <div class="controls">
          <Search s={p.s} box={p.search} />
          <Themes />
          {sessionOf() && (
            <button class="signout" onClick={() => void signOut()} title={p.s.me?.user ? "signed in as " + p.s.me.user : "signed in"}>
              Sign out
            </button>
          )}
          <button onClick={p.help} aria-label="Keys" title="keys">
            ?
          </button>
        </div>
      </nav>
    </header>
  );
}

const themeNames: Record<Theme, string> = { auto: "◐ auto", light: "○ light", dark: "● dark", contrast: "◑ contrast" };

function Themes() {
  const [now, set] = useState<Theme>(theme());
  useEffect(() => {
    const follow = () => set(theme());
    window.addEventListener("themechange", follow);
    return () => window.removeEventListener("themechange", follow);
  }, []);
  return (
    <select
      class="themes"
      aria-label="Colours"
      value={now}
      onChange={(e) => {
        const t = e.currentTarget.value as Theme;
        applyTheme(t);
        window.dispatchEvent(new Event("themechange"));
      }}
    >
      {themes.map((t) => (
        <option key={t} value={t}>
          {themeNames[t]}
        </option>
      ))}
    </select>
  );
}

/** How fresh what is shown is. */
function Fresh(p: { s: State; bar: () => void }) {
  const { s } = p;
  if (s.link === "past") {
    return (
      <span class="fresh past">
        ◷ {moment(s.snap?.time ?? s.at)}{" "}
        <button onClick={() => setQuery({ at: "" })} accessKey="l">
          {s.recording ? "back to playing" : "back to live"}
        </button>
      </span>
    );
  }
  const time = s.snap ? clock(new Date(s.snap.time)) : "";
  const link = isStale(s) ? "lost" : s.link;
  return (
    <span class={"fresh " + link} role="status">
      <i aria-hidden="true" />
      {link === "live" && s.recording ? "recording" : link} <time>{time}</time>
      {!s.recording && (
        <button onClick={p.bar} aria-label="Look back in time" title="look back in time">
          ◷<span class="word"> look back</span>
        </button>
      )}
    </span>
  );
}

/** What is said when there is no connection: nothing old passes for new. */
function Connection(p: { s: State }) {
  const { s } = p;
  if (s.link === "past" && s.problem) return <p class="banner warn">{s.problem}</p>;
  if (isStale(s)) {
    const why = s.problem || "no snapshot has come since";
    return (
      <p class="banner bad" role="alert">
        ▲ {why}: {s.snap ? `these values are ${span(age(s))} old` : "there is nothing to show yet"}; trying again.
      </p>
    );
  }
  if (s.skipped >= 3) {
    return (
      <p class="banner info">
        This connection, or this browser, is slow: {s.skipped} snapshots were left out.
      </p>
    );
  }
  return null;
}

/**
 * What is wrong: on the overview a row for each device, elsewhere one line that
 * leads there. What is only worth knowing is folded away.
 */
function Trouble(p: { s: State; full: boolean }) {
  const said = p.s.said;
  const quiet = said?.notes.filter((n) => n.level === "info" && n.code !== "simulated") ?? [];
  const loud = said?.notes.filter((n) => n.level !== "info") ?? [];
  return (
    <div class="notices">
      {p.s.snap?.simulated && <p class="banner info">{p.s.words?.simulated ?? "simulated host"}</p>}
      {said && said.trouble && !p.full && (
        <p class={"line " + said.troubles[0]!.level}>
          <A to="/">{said.trouble} ›</A>
        </p>
      )}
      {said && p.full && said.troubles.length + loud.length > 0 && (
        <ul class="troubles" aria-label="Trouble">
          {said.troubles.map((t) => (
            <TroubleRow key={t.name + t.kind} t={t} s={p.s} />
          ))}
          {loud.map((n) => (
            <li key={n.code + n.text} class={n.level} title={n.text}>
              {n.text}
            </li>
          ))}
        </ul>
      )}
      {quiet.length > 0 && (
        <details>
          <summary>
            {quiet.length} {quiet.length === 1 ? "note" : "notes"} on what the figures mean
          </summary>
          <ul>
            {quiet.map((n) => (
              <li key={n.code + n.text} class="info">
                {n.text}
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** The events around a moment, and what changed then: from shortly before it to a minute after, or to now. */
function around(since: string): string {
  const at = Date.parse(since);
  const q = new URLSearchParams({ from: new Date(at - 10_000).toISOString(), to: new Date(Math.min(at + 60_000, now() * 1000)).toISOString() });
  return "/events?" + q;
}

/** One device in trouble: what, since when, by what, who is affected, what to do. */
function TroubleRow(p: { t: T; s: State }) {
  const { t } = p;
  const only = t.devices.length === 1 ? p.s.snap?.devices.find((d) => d.index === t.devices[0]) : undefined;
  const name = t.devices.length ? (t.devices.length > 1 ? "devices " : "device ") + t.name : t.name;
  const who = t.affected === "–" ? "" : t.affected;
  return (
    <li class={t.level} title={[name, t.what, t.held, t.facts, who, t.remedy].filter(Boolean).join(" · ")}>
      <b class="name">{only ? <A to={"/device/" + only.bus_id}>{name}</A> : name}</b>
      <span class="board">{t.board}</span>
      <b class="what">
        {t.what}
        {t.alerts.length > 0 && (
          <span role="img" class="bell" aria-label={"alert " + t.alerts.join(", ")} title={t.alerts.join(", ")}>
            {/* drawn: not every host has a font with emoji */}
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d="M8 1a5 5 0 0 0-5 5v3l-1.5 3h13L13 9V6a5 5 0 0 0-5-5zM6 13a2 2 0 0 0 4 0z" />
            </svg>
          </span>
        )}
      </b>
      <span class="held">{t.since ? <A to={around(t.since)} title={`what else happened then: since ${moment(t.since)}`}>{t.held}</A> : t.held}</span>
      <span class="evidence">{t.facts}</span>
      <span class="who">{who}</span>
      <span class="do">{t.remedy && "→ " + t.remedy}</span>
    </li>
  );
}

function Foot(p: { s: State }) {
  const { me, snap } = p.s;
  return (
    <footer class="foot">
      {me && <span>{me.text}</span>}
      <span>
        {snap && `driver ${snap.host.driver_version ?? "?"} · ${snap.host.kernel} · `}
        {!p.s.fleetOnly && (
          <>
            <a href="/api/v1/openapi.json">API</a> · <a href="/metrics">metrics</a> ·{" "}
          </>
        )}
        <a href="/licences.txt">licences</a>
      </span>
    </footer>
  );
}

const keys: [string, string][] = [
  ...pages.map((p): [string, string] => [p.key, p.name.toLowerCase()]),
  ["/", "search"],
  ["0 … 9", "device by its number"],
  ["[ ]", "a minute back, forward"],
  ["l", "back to live"],
  ["c", "colours: light, dark, high contrast"],
  ["?", "this list"],
  ["← →", "on a chart or a bank map: along it; + and − zoom a chart"],
  ["Esc", "close, leave the search"],
];

function Help(p: { close: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} onClose={p.close} aria-label="Keys" class="help">
      <h2>Keys</h2>
      <dl>
        {keys.map(([k, what]) => (
          <div key={k}>
            <dt>
              <kbd>{k}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p>Drag over a chart to zoom, double-click to go back. Everything is in the address: send it as a link.</p>
      <button onClick={() => box.current?.close()}>close</button>
    </dialog>
  );
}

function useKeys(help: (on: boolean) => void, search: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const target = e.target as HTMLElement;
      const writing = target.matches("input, select, textarea");
      if (e.key === "Escape" && writing) {
        target.blur();
        return;
      }
      if (writing || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
      const page = pages.find((x) => x.key === e.key);
      if (page) go(page.path);
      else if (e.key === "?") help(true);
      else if (e.key === "/") search.current?.focus();
      else if (e.key === "l") setQuery({ at: "" });
      else if (e.key === "c") cycleTheme();
      else if (e.key === "[" || e.key === "]") step(e.key === "[" ? -60 : 60);
      else if (/^\d$/.test(e.key)) byNumber(Number(e.key));
      else return;
      e.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function cycleTheme(): void {
  applyTheme(themes[(themes.indexOf(theme()) + 1) % themes.length]);
  window.dispatchEvent(new Event("themechange"));
}

function step(seconds: number): void {
  const at = Date.parse(state.at || state.snap?.time || "") + seconds * 1000;
  if (!Number.isNaN(at)) setQuery({ at: at >= now() * 1000 ? "" : new Date(at).toISOString() });
}

function byNumber(n: number): void {
  const d = state.snap?.devices.find((x) => x.index === n);
  if (d) go("/device/" + d.bus_id);
}
