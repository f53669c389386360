// What happened, and what is wrong now: a timeline that leads to the moment.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { A, Choice, Empty, Panel } from "./parts";
import { moment } from "./figures";
import { WhatChanged } from "./changed";
import { RangeChoice, useRange } from "./range";
import { setQuery, useRoute } from "./route";
import { offers, type State } from "./store";
import { useEvents } from "./metricchart";
import type { Event } from "./answers";

const sign: Record<string, string> = { critical: "▲", warning: "△", info: "·" };

/** Events with a way to the moment at which each happened. */
export function EventList(p: { events: Event[]; problem: string }) {
  if (p.events.length === 0) return <Empty>{p.problem ? `The events of this time are not known: ${p.problem}` : "Nothing happened in this time."}</Empty>;
  return (
    <ol class="events">
      {p.problem && <li class="warning">Later events are not known: {p.problem}</li>}
      {p.events.map((e) => (
        <li key={e.seq} class={e.level}>
          <button class="plain" onClick={() => setQuery({ at: new Date(e.time).toISOString() }, true)} title="show everything as it was then">
            <time dateTime={e.time}>{moment(e.time)}</time>
          </button>
          <span class="sign" aria-label={e.level}>
            {sign[e.level] ?? "·"}
          </span>
          <span>
            {e.text}
            {e.failure && (
              <>
                {" "}
                <A to={"/failures/" + e.failure}>why</A>
              </>
            )}
          </span>
        </li>
      ))}
    </ol>
  );
}

interface Rule {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  state: string;
  active_at?: string;
  activeAt?: string;
  silenced?: boolean;
}

/** The kinds of events that are starts and exits of processes. */
const comings = new Set(["started", "gone"]);

const newest = (list: Event[]) => [...list].reverse();

/** Starts and exits of processes, below what else happened: folded up where there are many of them. */
function Comings(p: { events: Event[] }) {
  if (p.events.length === 0) return null;
  return (
    <details class="body" open={p.events.length <= 10}>
      <summary>Starts and exits of processes ({p.events.length})</summary>
      <EventList events={p.events} problem="" />
    </details>
  );
}

export function EventsPage(p: { s: State }) {
  const range = useRange();
  const q = useRoute().query;
  const level = q.get("level") ?? "all";
  const filter = (q.get("filter") ?? "").toLowerCase();
  const { events, problem } = useEvents(range, "");
  const shown = events.filter(
    (e) => (level === "all" || e.level === level || (level === "warning" && e.level === "critical")) && (!filter || e.text.toLowerCase().includes(filter)),
  );
  const others = newest(shown.filter((e) => !comings.has(e.kind)));
  const came = newest(shown.filter((e) => comings.has(e.kind)));
  return (
    <>
      <Alerts s={p.s} />
      <Panel
        title={`Events (${shown.length})`}
        tools={
          <>
            <Choice label="level" value={level} options={["all", "warning", "critical"]} choose={(v) => setQuery({ level: v === "all" ? "" : v })} />
            <RangeChoice range={range} />
          </>
        }
      >
        <Timeline events={shown} start={range.start} end={range.end} />
        {others.length === 0 && came.length > 0 && !problem ? <Empty>Nothing but starts and exits of processes.</Empty> : <EventList events={others} problem={problem} />}
        <Comings events={came} />
      </Panel>
      <WhatChanged />
    </>
  );
}

/** All events on one line; each leads to its moment. */
function Timeline(p: { events: Event[]; start: number; end: number }) {
  const at = (e: Event) => ((Date.parse(e.time) / 1000 - p.start) / (p.end - p.start)) * 100;
  return (
    <div class="timeline" role="group" aria-label="Events over time">
      {p.events
        .filter((e) => at(e) >= 0 && at(e) <= 100)
        .map((e) => (
          <button
            key={e.seq}
            class={e.level}
            style={{ left: at(e).toFixed(2) + "%" }}
            title={moment(e.time) + " " + e.text}
            aria-label={moment(e.time) + " " + e.text}
            onClick={() => setQuery({ at: new Date(e.time).toISOString() }, true)}
          />
        ))}
      {[0, 1, 2, 3, 4].map((i) => (
        <span key={i} class="tick" style={{ left: i * 25 + "%" }}>
          {moment(new Date((p.start + ((p.end - p.start) * i) / 4) * 1000).toISOString())}
        </span>
      ))}
    </div>
  );
}

function Alerts(p: { s: State }) {
  const [pending, setPending] = useState<Rule[]>([]);
  const beat = Math.floor(Date.parse(p.s.snap?.time ?? "") / 5000);
  useEffect(() => {
    if (!offers("/v1/alerts")) return;
    get<{ alerts: Rule[] }>("alerts")
      .then((a) => setPending(a.alerts.filter((x) => x.state === "pending")))
      .catch(() => {});
  }, [beat]);
  const firing = p.s.snap?.alerts ?? [];
  return (
    <Panel title={`Alerts (${firing.length})`}>
      {firing.length === 0 && pending.length === 0 && <Empty>No alert fires.</Empty>}
      <ul class="alerts">
        {firing.map((a) => (
          <li key={a.name + a.bus_id} class={a.severity}>
            <span aria-hidden="true">{sign[a.severity] ?? "△"}</span> <b>{a.name}</b> {a.summary}
            {a.silenced && <span class="muted"> silenced</span>}
            <span class="ways">
              {a.bus_id && <A to={"/device/" + a.bus_id}>its device</A>}
              <button class="link" onClick={() => setQuery({ at: a.since }, true)} title="show everything as it was then">
                since {moment(a.since)}
              </button>
            </span>
          </li>
        ))}
        {pending.map((a, i) => (
          <li key={i} class="info">
            <b>{a.labels["alertname"]}</b> {a.annotations["summary"]} (pending)
          </li>
        ))}
      </ul>
    </Panel>
  );
}
