// Requests for device memory that failed: all that are kept, and the story of one.

import { useEffect, useRef, useState } from "preact/hooks";
import { file, get } from "./api";
import { useBeat } from "./beat";
import { bytes, moment, noLine } from "./figures";
import { fillOf } from "./holders";
import { A, Empty, Panel, poolNames, Reasons, save, useWidth } from "./parts";
import { useRoute } from "./route";
import { state, type State } from "./store";
import type { Failure, FailureHolder, FailureMap } from "./answers";

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
        <h2>{f.what}</h2>
        <span class="command">
          {f.program} ({f.pid})
        </span>
        <span>{f.where}</span>
        <time dateTime={f.time}>{moment(f.time)}</time>
        <button onClick={store} title="this page as one HTML file, to be sent">
          Save as HTML
        </button>
      </div>
      {refused && <p class="banner warn">{refused}</p>}
      <Panel title="Why">
        <p class="cause">{f.verdict}</p>
        <dl class="asked">
          <dt>asked for</dt>
          <dd>{f.asked}</dd>
          {f.by && (
            <>
              <dt>by</dt>
              <dd>
                <code>{f.by}</code>
              </dd>
            </>
          )}
          <dt>free</dt>
          <dd>{f.free}</dd>
          {f.count > 1 && (
            <>
              <dt>times</dt>
              <dd>
                {f.count} from {moment(f.first)} to {moment(f.last)}; this is the one of {moment(f.time)}
              </dd>
            </>
          )}
        </dl>
        {f.map && <BankPicture story={f} map={f.map} />}
      </Panel>
      {f.fixes.length > 0 && (
        <Panel title={f.fits[0]!.toUpperCase() + f.fits.slice(1)}>
          <ul class="fixes">
            {f.fixes.map((x) => (
              <li key={x}>{x}</li>
            ))}
          </ul>
        </Panel>
      )}
      {f.holders.length > 0 && (
        <Panel title={`Who held each ${f.bank}`}>
          <Holders list={f.holders} />
        </Panel>
      )}
      <Reasons list={f.notes} />
      {f.stack.length > 0 && (
        <details class="stack">
          <summary>stack of the request</summary>
          <pre>{f.stack.join("\n")}</pre>
        </details>
      )}
    </article>
  );
}

const hex = (n: number) => "0x" + n.toString(16);

/** The bank along its addresses, and below it, to scale, the piece that found no room. */
function BankPicture(p: { story: Failure; map: FailureMap }) {
  const { map: m, story } = p;
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const [hover, setHover] = useState("");
  const scale = width / m.bank_capacity;
  const x = (address: number) => (address - m.base_address) * scale;
  const piece = Math.min(m.piece_bytes * scale, width);
  const left = Math.min(x(m.hole_address), width - piece);
  const look = (at: number) => {
    const address = m.base_address + at / scale;
    const b = m.blocks.find(([from, size]) => from <= address && address < from + size);
    if (!b) {
      setHover((m.exact ? "free at " : "nothing known at ") + hex(Math.floor(address)));
      return;
    }
    const h = story.holders.find((y) => y.number === b[2]);
    const made = b[3] ? `, made ${Math.round(b[3] / 100) / 10} s before` : "";
    setHover(`${h ? `${h.name} ${h.function} ${h.tensor}`.trim() : noLine()}: ${bytes(b[1])} at ${hex(b[0])}${made}`);
  };
  return (
    <figure class="bank missing">
      <div ref={box}>
        <svg
          width={width}
          height={66}
          role="img"
          aria-label={`a ${story.bank} of ${m.size}: ${story.free} free, ${m.label}`}
          onPointerMove={(e) => look(e.offsetX)}
          onPointerDown={(e) => look(e.offsetX)}
          onPointerLeave={() => setHover("")}
        >
          <rect class={m.exact ? "free" : "free unknown"} width={width} height={40} />
          {m.bank_cut_bytes > 0 && <rect class="cut" width={m.bank_cut_bytes * scale} height={40} />}
          {m.blocks.map(([address, size, holder]) => (
            <rect key={address} class="block" x={x(address)} width={Math.max(size * scale, 0.6)} height={40} style={{ fill: fillOf(holder) }} />
          ))}
          <rect class="piece" x={left} y={46} width={Math.max(piece, 2)} height={12} />
        </svg>
      </div>
      <p class="under">
        <span>0</span>
        <span class="hover">
          {hover || (
            <>
              <i class="swatch piece" aria-hidden="true" /> {m.label}
              {m.left_out > 0 && `; ${m.left_out} smaller blocks are not drawn`}
            </>
          )}
        </span>
        <span>{m.size}</span>
      </p>
    </figure>
  );
}

function Holders(p: { list: FailureHolder[] }) {
  const most = Math.max(...p.list.map((h) => h.bytes), 1);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Who held the bank">
      <table class="holders">
        <thead>
          <tr>
            <th>Line</th>
            <th>Function</th>
            <th class="num">Holds</th>
            <th class="barcol" aria-label="share" />
            <th class="num">Blocks</th>
            <th class="num">Oldest</th>
          </tr>
        </thead>
        <tbody>
          {p.list.map((h) => (
            <tr key={h.number} title={h.stack.join("\n")}>
              <td>
                <i class="swatch" style={{ background: fillOf(h.number) }} aria-hidden="true" /> {h.name}
              </td>
              <td>
                {h.function} {h.tensor && <span class="muted">{h.tensor}</span>}
              </td>
              <td class="num">{h.size}</td>
              <td class="barcol">
                <span class="share" style={{ width: (h.bytes / most) * 100 + "%", background: fillOf(h.number) }} />
              </td>
              <td class="num">{h.blocks}</td>
              <td class="num">{h.age || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
