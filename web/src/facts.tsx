// All that is known of a device or a process, with every snapshot.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { moment } from "./figures";
import { health } from "./parts";
import type { State } from "./store";
import type { Facts } from "./answers";

/** Of which device or process; undefined: there is none. */
export function useFacts(s: State, which: { device: string } | { pid: string } | undefined): Facts | null {
  const [facts, set] = useState<Facts | null>(null);
  const q = which && new URLSearchParams(which).toString();
  useEffect(() => {
    if (!q) return;
    const stop = new AbortController();
    get<Facts>(`facts?${q}${s.at ? "&at=" + encodeURIComponent(s.at) : ""}`, stop.signal)
      .then(set)
      .catch(() => {}); // the next snapshot asks again
    return () => stop.abort();
  }, [q, s.at, s.snap?.time]);
  return facts;
}

export function AllFacts(p: { of: Facts | null }) {
  return (
    <>
      {p.of?.sections.map((x) => (
        <section key={x.title} class="allfacts">
          <h3>{x.title}</h3>
          <dl>
            {x.facts.map((f) => (
              <div key={f.name} title={f.name}>
                <dt>{f.title}</dt>
                <dd class={f.known ? f.level && health(f.level) : "gone"}>{f.time ? moment(f.time) : f.text}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}
