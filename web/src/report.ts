// What is shown as one HTML file that can be sent: with its styles and pictures,
// without a script.

import { moment } from "./figures";
import { save } from "./parts";
import { state } from "./store";

/** Saves the view as a file, as soon as its charts have their data; not if it is left before. */
export async function report(title: string): Promise<void> {
  const from = document.getElementById("main")!;
  const view = location.pathname;
  for (const late = Date.now() + 5000; Date.now() < late && waiting(from).length > 0; ) {
    await new Promise((again) => setTimeout(again, 50));
    if (location.pathname !== view) return;
  }
  const body = from.cloneNode(true) as HTMLElement;
  const pictures = from.querySelectorAll("canvas");
  body.querySelectorAll("canvas").forEach((c, i) => {
    const img = document.createElement("img");
    img.src = pictures[i]!.toDataURL("image/png");
    img.style.width = pictures[i]!.clientWidth + "px";
    img.alt = "";
    c.replaceWith(img);
  });
  for (const chart of waiting(body)) chart.append("not loaded when this was saved");
  for (const gone of body.querySelectorAll("button, select, input, script, label")) gone.remove();
  for (const t of body.querySelectorAll("time[datetime]")) t.textContent = moment.full(new Date(t.getAttribute("datetime")!));
  for (const a of body.querySelectorAll("a")) a.removeAttribute("href");
  for (const d of body.querySelectorAll("details")) d.setAttribute("open", "");
  const styles = [...document.styleSheets].flatMap((s) => [...s.cssRules].map((r) => r.cssText)).join("\n");
  const host = state.snap?.host.name ?? "";
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const head = `${host} · saved ${moment.full(new Date())} · times in ${zone}${state.snap?.simulated ? " · simulated host: its numbers are made up" : ""}`;
  // As text: the page itself allows no style that is written into it.
  const html = `<!doctype html>
<html lang="en" data-theme="${escape(document.documentElement.dataset["theme"] ?? "")}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escape(title + " · " + host)}</title><style>${styles}
a { color: inherit; text-decoration: none; }
.shell { padding-top: 12px; }
.saved { color: var(--muted); margin: 0 0 10px; }
img { max-width: 100%; }</style></head>
<body><div class="shell"><p class="saved">${escape(head)}</p><main>${body.innerHTML}</main></div></body>
</html>
`;
  save(`${title} ${host}.html`.replaceAll(" ", "-"), new Blob([html], { type: "text/html" }));
}

/** The charts that have neither a picture nor the reason why there is none. */
const waiting = (view: HTMLElement): HTMLElement[] => [...view.querySelectorAll<HTMLElement>("figure.chart")].filter((f) => !f.querySelector("canvas, img, .empty"));

const escape = (s: string): string => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
