// The time slider: the whole page as it was.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { moment } from "./figures";
import { setQuery } from "./route";
import { now, type State } from "./store";
import type { Event } from "./answers";

interface Span {
  oldest: string | null;
  newest: string | null;
}

export function TimeBar(p: { s: State; close: () => void }) {
  const [span, setSpan] = useState<Span | null>(null);
  const [events, setEvents] = useState<Event[]>([]);
  const [drag, setDrag] = useState<number | null>(null);
  useEffect(() => {
    get<Span>("past/span").then(setSpan).catch(() => setSpan({ oldest: null, newest: null }));
  }, [p.s.at]);
  useEffect(() => {
    if (span?.oldest) get<{ events: Event[] }>("events?limit=300&since=" + encodeURIComponent(span.oldest)).then((a) => setEvents(a.events.filter((e) => e.level !== "info"))).catch(() => {});
  }, [span?.oldest]);
  if (!span) return <div class="timebar">…</div>;
  if (!span.oldest) return <div class="timebar">This ttmond keeps no past moments.</div>;
  const oldest = Math.floor(Date.parse(span.oldest) / 1000);
  const newest = Math.floor(p.s.recording && span.newest ? Date.parse(span.newest) / 1000 : now());
  const shown = drag ?? (p.s.at ? Math.floor(Date.parse(p.s.at) / 1000) : Math.floor(now()));
  const settle = (wanted: number) => {
    setDrag(null);
    const t = Math.min(Math.max(wanted, oldest), newest);
    setQuery({ at: t >= newest - 1 && !p.s.recording ? "" : new Date(t * 1000).toISOString() });
  };
  return (
    <div class="timebar" role="group" aria-label="Moment that is shown">
      {p.s.recording && (
        <span class="ends" title="the span of the recording">
          {moment(span.oldest)}
        </span>
      )}
      <button onClick={() => settle(shown - 60)} aria-label="a minute back">
        ◂
      </button>
      <div class="track">
        {events.map((e) => (
          <i key={e.seq} class={e.level} style={{ left: ((Date.parse(e.time) / 1000 - oldest) / Math.max(newest - oldest, 1)) * 100 + "%" }} title={moment(e.time) + " " + e.text} onClick={() => settle(Math.floor(Date.parse(e.time) / 1000))} />
        ))}
        <input
          type="range"
          min={oldest}
          max={newest}
          step={1}
          value={shown}
          aria-label="time"
          aria-valuetext={moment(new Date(shown * 1000).toISOString())}
          onInput={(e) => setDrag(Number(e.currentTarget.value))}
          onChange={(e) => settle(Number(e.currentTarget.value))}
        />
      </div>
      <button onClick={() => settle(shown + 60)} aria-label="a minute forward">
        ▸
      </button>
      {p.s.recording && span.newest && <span class="ends">{moment(span.newest)}</span>}
      <time>{moment(new Date(shown * 1000).toISOString())}</time>
      <button
        onClick={() => {
          setQuery({ at: "" });
          p.close();
        }}
      >
        {p.s.recording ? "playing" : "live"}
      </button>
    </div>
  );
}
