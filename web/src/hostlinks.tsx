// Ethernet links between hosts: both ends of each, and the host that is the likely cause of those that are down.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api";
import { Panel } from "./parts";

interface End {
  host?: string;
  device: number | null;
  chip_id: string;
  channel: number;
  report: string;
  text: string;
  name: string;
}

interface Link {
  ends: [End, End];
  down: boolean;
  suspect?: string;
  verdict?: string;
}

export interface HostLinks {
  ends: number;
  down: number;
  complete: boolean;
  trouble: string[];
  suspects: { host: string; evidence: string; links: number; peers: string[]; last_reported?: string }[];
  list: Link[];
}

const most = 200;

/** All links between hosts, asked for again with every answer about the fleet. */
export function HostLinksPanel(p: { links?: HostLinks | null; time: string }) {
  const [all, setAll] = useState<HostLinks | null>(null);
  const there = (p.links?.ends ?? 0) > 0;
  useEffect(() => {
    if (!there) return;
    const stop = new AbortController();
    get<HostLinks>("fleet/links", stop.signal)
      .then(setAll)
      .catch(() => {}); // the next answer about the fleet says what is wrong
    return () => stop.abort();
  }, [there, p.time]);
  if (!there) return null;
  const links = all ?? p.links!;
  const count = links.complete ? `${links.list.length}, ${links.down} down` : `${links.down} down`;
  return (
    <Panel title={`Links between hosts (${count})`}>
      <div class="hostlinks">
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th>One end</th>
                <th>Reports</th>
                <th>Other end</th>
                <th>Reports</th>
                <th>Cause</th>
              </tr>
            </thead>
            <tbody>
              {links.list.slice(0, most).map((l) => (
                <tr key={l.ends[0].chip_id + "/" + l.ends[0].channel + "/" + l.ends[1].chip_id} class={l.down ? "bad" : ""}>
                  <td>{l.ends[0].name}</td>
                  <td>{l.ends[0].text}</td>
                  <td>{l.ends[1].name}</td>
                  <td>{l.ends[1].text}</td>
                  <td>{l.verdict ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
        {links.list.length > most && <p class="muted">and {links.list.length - most} more: ttmon fleet --links</p>}
        {!links.complete && <p class="muted">Only links that are down are listed: there are too many for a page.</p>}
      </div>
    </Panel>
  );
}
