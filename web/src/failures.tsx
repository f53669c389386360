// Requests for device memory that failed: all that are kept, and the story of one.

import { useEffect, useState } from "preact/hooks";
import { file, get } from "./api";
import { useBeat } from "./beat";
import { moment } from "./figures";
import { A, Empty, Panel, poolNames, save } from "./parts";
import { useRoute } from "./route";
import { state, type State } from "./store";
import { Parts } from "./sheet";
import type { Failure } from "./answers";

interface Summary {
  id: string;
  last: string;
  count: number;
  pool: string;
  text: string;
  line?: { file: string; line: number; function: string };
  process: { pid: number; name: string; cmdline?: string };
}

/** Asks again every few seconds, where beat is given. */
function useAnswer<T>(path: string, every: number): { answer: T | null; problem: string } {
  const [got, set] = useState<{ answer: T | null; problem: string }>({ answer: null, problem: "" });
  const beat = useBeat(every);
  useEffect(() => {
    const stop = new AbortController();
    get<T>(path, stop.signal)
      .then((answer) => set({ answer, problem: "" }))
      .catch((err: Error) => !stop.signal.aborted && set({ answer: null, problem: err.message }));
    return () => stop.abort();
  }, [path, beat, state.me?.sees]);
  return got;
}

export function FailuresPage(p: { s: State }) {
  const route = useRoute();
  if (route.name) return <FailurePage id={route.name} key={route.name} />;
  return <FailureList s={p.s} />;
}

function FailureList(p: { s: State }) {
  const filter = (useRoute().query.get("filter") ?? "").toLowerCase();
  const { answer, problem } = useAnswer<{ failures: Summary[] }>("failures", 5000);
  const shown = answer?.failures.filter((f) => !filter || [f.id, f.text, f.process.cmdline, f.process.name, String(f.process.pid)].some((x) => x?.toLowerCase().includes(filter)));
  return (
    <Panel title={shown ? `Failed allocations (${shown.length})` : "Failed allocations"}>
      {problem && <Empty>{problem}</Empty>}
      {!shown && !problem && <Empty>…</Empty>}
      {shown?.length === 0 && <Empty>{p.s.me?.sees === "public" ? p.s.me.text : "No request of your programs for device memory has failed, as far as ttmond saw."}</Empty>}
      {shown && shown.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Failed allocations">
          <table class="failures">
            <thead>
              <tr>
                <th>Which</th>
                <th>When</th>
                <th>Pool</th>
                <th>Why</th>
                <th class="num">Times</th>
                <th>Line</th>
                <th>Program</th>
              </tr>
            </thead>
            <tbody>
              {shown.map((f) => (
                <tr key={f.id}>
                  <td>
                    <A to={"/failures/" + f.id}>{f.id}</A>
                  </td>
                  <td>{moment(f.last)}</td>
                  <td>{poolNames[f.pool] ?? f.pool}</td>
                  <td>{f.text}</td>
                  <td class="num">{f.count}</td>
                  <td title={f.line && `${f.line.file}:${f.line.line} ${f.line.function}`}>{f.line ? `${f.line.file.split("/").at(-1)}:${f.line.line}` : "–"}</td>
                  <td class="wrap">
                    {f.process.cmdline || f.process.name} ({f.process.pid})
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function FailurePage(p: { id: string }) {
  const { answer: f, problem } = useAnswer<Failure>(`failures/${encodeURIComponent(p.id)}/page`, 0);
  const [refused, setRefused] = useState("");
  if (!f) return <Empty>{problem || "…"}</Empty>;
  const store = () =>
    file(`failures/${encodeURIComponent(p.id)}/file`)
      .then((b) => save(`ttmon-why-${f.id}.html`, b))
      .catch((err: Error) => setRefused(err.message));
  return (
    <article class="failure">
      <div class="title">
        <h2>{f.sheet.title}</h2>
        <button onClick={store} title="this page as one HTML file, to be sent">
          Save as HTML
        </button>
      </div>
      {refused && <p class="banner warn">{refused}</p>}
      <Parts of={f.sheet} />
    </article>
  );
}
