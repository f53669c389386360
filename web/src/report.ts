// What is shown as one HTML file that can be sent: with its styles and pictures,
// without a script.

import { save } from "./parts";
import { state } from "./store";

/** Saves the view as a file. */
export function report(title: string): void {
  const from = document.getElementById("main")!;
  const body = from.cloneNode(true) as HTMLElement;
  const pictures = from.querySelectorAll("canvas");
  body.querySelectorAll("canvas").forEach((c, i) => {
    const img = document.createElement("img");
    img.src = pictures[i]!.toDataURL("image/png");
    img.style.width = pictures[i]!.clientWidth + "px";
    img.alt = "";
    c.replaceWith(img);
  });
  for (const gone of body.querySelectorAll("button, select, input, script")) gone.remove();
  for (const a of body.querySelectorAll("a")) a.removeAttribute("href");
  for (const d of body.querySelectorAll("details")) d.setAttribute("open", "");
  const styles = [...document.styleSheets].flatMap((s) => [...s.cssRules].map((r) => r.cssText)).join("\n");
  const host = state.snap?.host.name ?? "";
  const head = `${title} · ${host} · ${new Date().toLocaleString()}${state.snap?.simulated ? " · simulated" : ""}`;
  // As text: the page itself allows no style that is written into it.
  const html = `<!doctype html>
<html lang="en" data-theme="${escape(document.documentElement.dataset["theme"] ?? "")}">
<head><meta charset="utf-8"><title>${escape(title + " · " + host)}</title><style>${styles}</style></head>
<body><div class="shell"><h1>${escape(head)}</h1><main>${body.innerHTML}</main></div></body>
</html>
`;
  save(`${title} ${host}.html`.replaceAll(" ", "-"), new Blob([html], { type: "text/html" }));
}

const escape = (s: string): string => s.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
