// The search: it filters the view while one writes, and suggests devices,
// processes, users and jobs to go to.

import { useState } from "preact/hooks";
import { go, setQuery, useRoute } from "./route";
import type { State } from "./store";
import { told } from "./types";

export interface Suggestion {
  kind: string;
  text: string;
  note: string;
  to: string;
}

/** So many are suggested. */
const most = 8;

/** What a text may mean, those that begin with it first. */
export function suggest(s: State, text: string): Suggestion[] {
  const wanted = text.trim().toLowerCase();
  if (!wanted || !s.snap || !s.said) return [];
  const found: { s: Suggestion; rank: number }[] = [];
  const add = (kind: string, name: string, note: string, to: string, fields: (string | null | undefined)[]) => {
    const hits = fields.flatMap((f) => (f ? [f.toLowerCase()] : [])).filter((f) => f.includes(wanted));
    if (hits.length === 0) return;
    const rank = hits.some((f) => f === wanted) ? 0 : hits.some((f) => f.startsWith(wanted)) ? 1 : 2;
    found.push({ s: { kind, text: name, note, to }, rank });
  };
  s.snap.devices.forEach((d, i) => {
    const said = s.said!.devices[i];
    add("device", `${d.index} ${said?.name ?? d.board ?? d.arch}`, d.bus_id, "/device/" + d.bus_id, [String(d.index), "device " + d.index, said?.name, d.board, d.bus_id, d.serial, d.asic_id, said?.state]);
  });
  const users = new Map<string, number>();
  const jobs = new Map<string, number>();
  s.snap.processes.forEach((x, i) => {
    const said = s.said!.processes[i];
    if (!said) return;
    const [command, user, job] = [told(said, "command"), told(said, "user"), told(said, "job")];
    add("process", command, String(x.pid), "/process/" + x.pid, [String(x.pid), command, x.name]);
    users.set(user, (users.get(user) ?? 0) + 1);
    if (job !== "–") jobs.set(job, (jobs.get(job) ?? 0) + 1);
  });
  const several = (n: number) => (n === 1 ? "1 process" : `${n} processes`);
  for (const [name, n] of users) add("user", name, several(n), "/processes?filter=" + encodeURIComponent(name), [name]);
  for (const [name, n] of jobs) add("job", name, several(n), "/processes?filter=" + encodeURIComponent(name), [name]);
  return found
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map((x) => x.s);
}

export function Search(p: { s: State; box: { current: HTMLInputElement | null } }) {
  const route = useRoute();
  const fleet = route.page === "fleet";
  const text = route.query.get("filter") ?? "";
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState(-1);
  const list = open && !fleet ? suggest(p.s, text) : [];
  const close = () => {
    setOpen(false);
    setChosen(-1);
  };
  const follow = (to: string) => {
    close();
    p.box.current?.blur();
    go(to);
  };
  const press = (e: KeyboardEvent) => {
    const down = e.key === "ArrowDown";
    if ((down || e.key === "ArrowUp") && list.length > 0) {
      // -1 is the text itself.
      setChosen(((chosen + 1 + (down ? 1 : list.length)) % (list.length + 1)) - 1);
      e.preventDefault();
    } else if (e.key === "ArrowDown") setOpen(true);
    else if (e.key === "Enter" && !fleet) {
      if (list[chosen]) follow(list[chosen]!.to);
      else find(p.s, text, close);
    } else if (e.key === "Escape" && list.length > 0) {
      close();
      e.preventDefault(); // browsers would clear the field
      e.stopPropagation(); // the next one leaves the search
    }
  };
  return (
    <div class="searching">
      <input
        ref={p.box}
        type="search"
        class="search"
        placeholder={fleet ? "/ host, job, user" : "/ device, pid, user, command"}
        aria-label="Search devices and processes"
        role="combobox"
        list={undefined}
        aria-autocomplete="list"
        aria-expanded={list.length > 0}
        aria-controls="suggestions"
        aria-activedescendant={list[chosen] ? "suggestion" + chosen : undefined}
        autocomplete="off"
        value={text}
        onInput={(e) => {
          setOpen(true);
          setChosen(-1);
          setQuery({ filter: e.currentTarget.value });
        }}
        onBlur={close}
        onKeyDown={press}
      />
      <ul id="suggestions" role="listbox" aria-label="Suggestions" hidden={list.length === 0}>
        {list.map((x, i) => (
          // The pointer goes down before the field loses the focus.
          <li key={x.to + x.kind} id={"suggestion" + i} role="option" aria-selected={i === chosen} onPointerDown={(e) => (e.preventDefault(), follow(x.to))}>
            <span class="muted">{x.kind}</span> <span class="name">{x.text}</span> <span class="muted num">{x.note}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Goes to the device or process that is meant, or to all processes that have the text. */
function find(s: State, text: string, done: () => void): void {
  const t = text.trim().toLowerCase();
  done();
  const d = s.snap?.devices.find((x) => [String(x.index), x.bus_id, x.serial?.toLowerCase(), x.asic_id?.toLowerCase()].includes(t));
  if (d) go("/device/" + d.bus_id);
  else if (s.snap?.processes.some((x) => String(x.pid) === t)) go("/process/" + t);
  else if (t) go("/processes?filter=" + encodeURIComponent(text.trim()));
}
