// What else changed: the series of the host, ranked by how much they changed in the
// stretch that was marked on a chart.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { clock, span, value } from "./figures";
import { A, Empty, Panel } from "./parts";
import { useRange } from "./range";
import { offers, state } from "./store";

interface Part {
  samples: number;
  mean: number;
}

interface Change {
  metric: string;
  title: string;
  unit?: string;
  device: number | null;
  labels?: Record<string, string>;
  kind: "moved" | "began" | "stopped";
  score: number;
  before: Part;
  during: Part;
}

interface Answer {
  since: string;
  from: string;
  to: string;
  series: number;
  partial?: boolean;
  away?: boolean;
  more?: number;
  changes: Change[];
  stopped: Apart;
  began: Apart;
}

/** Series that are not ranked: how far they moved is not known. */
interface Apart {
  count: number;
  series: Change[];
}

const figure = (c: Change, p: Part): string => {
  if (p.samples === 0) return "–";
  // The mean of a count keeps its fraction: 0 processes before and 0.3 during would both be 0.
  const fraction = Math.abs(p.mean) < 10 && p.mean % 1 !== 0 ? 2 : 0;
  const decimals = c.unit ? (state.metrics.find((m) => m.name === c.metric)?.decimals ?? fraction) : fraction;
  return value(p.mean, c.unit ?? "", decimals);
};

const share = (c: Change): string => {
  if (c.before.mean === 0) return "";
  const percent = (c.during.mean / c.before.mean - 1) * 100;
  return Math.abs(percent) < 1000 ? (percent > 0 ? "+" : "−") + Math.abs(percent).toFixed(0) + " %" : "";
};

const nameOf = (c: Change): string => [c.title, ...Object.entries(c.labels ?? {}).map(([k, v]) => `${k}=${v}`)].join(" ");

/** Shows nothing until a stretch is marked. */
export function WhatChanged() {
  const range = useRange();
  const marked = range.name === "" && offers("/v1/changed");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    setAnswer(null);
    setProblem("");
    if (!marked) return;
    const stop = new AbortController();
    const q = new URLSearchParams({ start: new Date(range.start * 1000).toISOString(), end: new Date(range.end * 1000).toISOString() });
    get<Answer>("changed?" + q, stop.signal)
      .then(setAnswer)
      .catch((err: Error) => !stop.signal.aborted && setProblem(err.message));
    return () => stop.abort();
  }, [marked, range.name === "" ? range.start + "/" + range.end : ""]);
  if (!marked) return null;
  const at = (seconds: number) => clock(new Date(seconds * 1000));
  return (
    <Panel title={`What changed from ${at(range.start)} to ${at(range.end)}`} class="changed">
      {problem && <Empty>{problem}</Empty>}
      {!problem && !answer && <Empty>comparing …</Empty>}
      {answer && <Ranked answer={answer} />}
    </Panel>
  );
}

function Ranked(p: { answer: Answer }) {
  const a = p.answer;
  if (a.away) return <Empty>The host was not sampled in this time, or before it: there is nothing to compare.</Empty>;
  const before = span((Date.parse(a.from) - Date.parse(a.since)) / 1000);
  if (a.changes.length === 0)
    return (
      <>
        <Empty>{`None of ${a.series} series changed by more than twice its usual variation in the ${before} before.`}</Empty>
        <NotRanked answer={a} />
      </>
    );
  return (
    <>
      <p class="lead body muted">
        Score: how far the mean moved from that of the {before} before, in multiples of the series' usual variation; 100 at most. {a.series} series compared
        {a.partial ? "; there are more: mark a shorter stretch" : ""}
        {a.more ? `; ${a.more} more changed less` : ""}.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="What changed">
        <table>
          <thead>
            <tr>
              <th scope="col" class="num">Score</th>
              <th scope="col">Device</th>
              <th scope="col">What</th>
              <th scope="col" class="num">Before</th>
              <th scope="col" class="num">During</th>
              <th scope="col" class="num">Change</th>
            </tr>
          </thead>
          <tbody>
            {a.changes.map((c) => (
              <tr key={c.device + nameOf(c)}>
                <td class="num">{c.score.toFixed(0)}</td>
                <td>{c.device === null ? "host" : <A to={"/device/" + c.device}>{c.device}</A>}</td>
                <th scope="row">{nameOf(c)}</th>
                <td class="num">{figure(c, c.before)}</td>
                <td class="num">{figure(c, c.during)}</td>
                <td class="num">{share(c)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <NotRanked answer={a} />
    </>
  );
}

/** Series that became unknown or known, by device. */
function NotRanked(p: { answer: Answer }) {
  const list: [string, Apart][] = [
    ["became unknown", p.answer.stopped],
    ["became known", p.answer.began],
  ];
  return (
    <>
      {list
        .filter(([, x]) => x.count > 0)
        .map(([verb, x]) => (
          <p key={verb} class="lead body apart">
            {x.count} series {verb}: {byDevice(x.series)}
            {x.count > x.series.length ? ` and ${x.count - x.series.length} more` : ""}
          </p>
        ))}
    </>
  );
}

function byDevice(series: Change[]): string {
  const of = new Map<string, string[]>();
  for (const c of series) {
    const where = c.device === null ? "host" : "device " + c.device;
    of.set(where, [...(of.get(where) ?? []), nameOf(c)]);
  }
  return [...of].map(([where, names]) => where + ": " + names.join(", ")).join("; ");
}
