// Light, dark, high contrast; by default what the system says.

export const themes = ["auto", "light", "dark", "contrast"] as const;
export type Theme = (typeof themes)[number];

const key = "ttmon-theme";

export function theme(): Theme {
  const t = localStorage.getItem(key) as Theme | null;
  return t && themes.includes(t) ? t : "auto";
}

export function applyTheme(t: Theme = theme()): void {
  localStorage.setItem(key, t);
  document.documentElement.dataset["theme"] = t;
}

/** A colour of the theme, for what is drawn on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

/** The colours of lines; from the ninth on they are dashed as well. */
export function lineColour(i: number): string {
  return colour("line" + ((i % 8) + 1));
}

export const lineDash = (i: number): number[] => (i < 8 ? [] : i < 16 ? [6, 3] : i < 24 ? [2, 3] : [8, 3, 2, 3]);
