// All that is known of a device or a process, with every snapshot.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { moment } from "./figures";
import { health } from "./parts";
import type { State } from "./store";
import type { Sheet } from "./answers";

/** Of which device or process; undefined: there is none. */
export function useFacts(s: State, which: { device: string } | { pid: string } | undefined): Sheet | null {
  const [facts, set] = useState<Sheet | null>(null);
  const q = which && new URLSearchParams(which).toString();
  useEffect(() => {
    if (!q) return;
    const stop = new AbortController();
    get<Sheet>(`facts?${q}${s.at ? "&at=" + encodeURIComponent(s.at) : ""}`, stop.signal)
      .then(set)
      .catch(() => {}); // the next snapshot asks again
    return () => stop.abort();
  }, [q, s.at, s.snap?.time]);
  return facts;
}

export function AllFacts(p: { of: Sheet | null }) {
  return (
    <>
      {p.of?.parts.map((x, n) => (
        <section key={n} class="allfacts">
          <h3>{x.title}</h3>
          <dl>
            {x.pairs?.map(({ name, field, value: v }, i) => (
              <div key={i} title={field}>
                <dt>{name}</dt>
                <dd class={v.gone ? "gone" : v.level && health(v.level)}>{v.time ? moment(v.time) : v.text}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </>
  );
}
