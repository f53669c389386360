package web

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// random is JavaScript for numbers from 0 to 1 that a seed determines.
const random = `const random = (seed) => () => { seed = (seed * 1664525 + 1013904223) % 4294967296; return seed / 4294967296; };`

// colours is JavaScript that reads a colour of the page's theme as it is painted.
const colours = `const painted = (name) => { const c = new OffscreenCanvas(1, 1).getContext("2d"); c.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim(); c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
	const near = (a, b, by) => Math.abs(a[0] - b[0]) <= by && Math.abs(a[1] - b[1]) <= by && Math.abs(a[2] - b[2]) <= by;`

// TestChartDrawsOnlySamples: whatever was sampled, a chart has a line where there
// is a sample, and none where there is not.
func TestChartDrawsOnlySamples(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "p150a"})
	b := open(t, desk, n.url+"/device/0?range=5m")
	const chart = `document.querySelector("figure[aria-label='ASIC Temperature']")`
	b.until("the chart is there", chart+`?.querySelector("canvas") != null`)
	eval[any](b, random+`(() => {
		const real = window.fetch;
		window.fetch = (url, o) => {
			if (!String(url).includes("/api/v1/range?")) return real(url, o);
			const q = new URL(url).searchParams, start = Date.parse(q.get("start")) / 1000, step = (Date.parse(q.get("end")) / 1000 - start) / 60;
			const next = random(window.seed), times = [], values = [];
			for (let known = next() < 0.5, left = 0, i = 0; i < 60; i++, left--) {
				if (left <= 0) { known = !known; left = 1 + Math.floor(next() * 8); }
				times.push(start + i * step);
				values.push(known ? 20 + next() * 60 : null);
			}
			window.drawn = { start, step, values };
			const series = [{ metric: "temperature.asic", device: 0, unit: "C", values, bounds: values.map((v) => v === null ? null : 0) }];
			return Promise.resolve(new Response(JSON.stringify({ start: q.get("start"), step_s: step, times, away: times.map(() => false), series })));
		};
	})()`)
	for seed := range 12 {
		t.Run(fmt.Sprint("seed ", seed), func(*testing.T) {
			eval[any](b, fmt.Sprintf(`window.drawn = null; window.seed = %d; history.pushState(null, "", "/device/0?from=2026-01-02T03:%02d:00Z&to=2026-01-02T04:%02d:00Z"); dispatchEvent(new PopStateEvent("popstate"))`, 7919*(seed+1), seed, seed))
			b.until("the line is where samples are, and nowhere else", `(() => { `+colours+`
				const canvas = `+chart+`?.querySelector("canvas"), over = `+chart+`?.querySelector(".u-over"), d = window.drawn;
				if (!canvas || !over || !d) return false;
				const from = canvas.getBoundingClientRect(), to = over.getBoundingClientRect(), scale = canvas.width / from.width;
				const c = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
				c.drawImage(canvas, 0, 0);
				const line = painted("line1");
				return d.values.every((v, i) => {
					const x = Math.round((to.left - from.left + (i + 0.5) / 60 * to.width) * scale);
					const column = c.getImageData(x, Math.round((to.top - from.top) * scale), 1, Math.round(to.height * scale)).data;
					let ink = false;
					for (let k = 0; k < column.length; k += 4) ink ||= column[k + 3] > 150 && near(column.slice(k, k + 3), line, 40);
					if (v === null) return !ink;
					return ink || d.values[i + 1] == null; // how far the last sample before a gap reaches is not said here
				}); })()`)
		})
	}
	b.shoot("drawing-chart")
}

// TestFleetShowsEveryBadChip: whatever the fleet is like, each chip in trouble has
// a cell of its own in the colour of trouble, and a chip without a value has none
// of the colours of values, on wide screens and on narrow ones.
func TestFleetShowsEveryBadChip(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "n150"})
	url := serveFleet(t, programs.Prometheus(t, n.url[len("http://"):]))
	for _, l := range []look{desk, telephone, {1280, 900, true}} {
		b := open(t, l, url)
		b.until("the fleet is there", `document.querySelector(".fleet canvas") !== null`)
		eval[any](b, random+`(() => {
			const real = window.fetch;
			const answer = (x) => Promise.resolve(new Response(JSON.stringify(x)));
			window.fetch = (url, o) => {
				const u = new URL(url);
				if (u.pathname === "/api/v1/fleet/cells") return answer({ hosts: Object.fromEntries(u.searchParams.getAll("host").map((h) => [h, window.cells[h]])) });
				if (u.pathname !== "/api/v1/fleet") return real(url, o);
				const next = random(window.seed), names = Array.from({length: 2 + Math.floor(next() * 12)}, (_, i) => "host" + i);
				window.cells = Object.fromEntries(names.map((h) => [h, Array.from({length: 1 + Math.floor(next() * 32)}, (_, i) => [i, next() < 0.75 ? 0 : next() < 0.5 ? 1 : 2, next() < 0.2 ? null : 30 + next() * 50, 0])]));
				const none = { hottest_c: null, power_w: null, power_bound: 0, busy: null, busy_bound: 0, dram_used_bytes: null, dram_used_bound: 0, dram_bytes: null };
				const hosts = names.map((name) => ({ name, level: "ok", alerts: 0, devices: window.cells[name].length, ...none }));
				return answer({ time: new Date().toISOString(), metric: u.searchParams.get("metric"), unit: "C", range: [30, 80], states: ["ok", "hung", "throttled"], levels: ["ok", "critical", "warning"], marks: ["●", "H", "T"],
					total: { devices: window.seed, ...none }, hosts, chips: {}, alerts: [] });
			};
		})()`)
		for seed := range 8 {
			t.Run(fmt.Sprintf("%d px, dark %v, seed %d", l.width, l.dark, seed), func(*testing.T) {
				metric := []string{"power.draw", "temperature.asic"}[seed%2]
				eval[any](b, fmt.Sprintf(`window.seed = %d; history.pushState(null, "", "?metric=%s"); dispatchEvent(new PopStateEvent("popstate"))`, 104729*(seed+1), metric))
				b.until("each row has as many cells of each kind as its host has chips", `(() => { `+colours+`
					const canvas = document.querySelector(".fleet canvas");
					if (!window.cells || !canvas || !document.querySelector(".fleetsums")?.textContent.includes(window.seed + " devices")) return false;
					const c = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
					c.drawImage(canvas, 0, 0);
					const kinds = { bad: painted("bad"), warn: painted("warn"), none: painted("raised") };
					return Object.values(window.cells).every((list, row) => {
						const y = (row + 1) * 22 + 3; // the upper edge of the cells: above what is written
						if (row === 0 || y * devicePixelRatio >= canvas.height) return true; // the chosen row has a ground of its own
						const pixels = c.getImageData(0, Math.round(y * devicePixelRatio), canvas.width, 1).data, found = { bad: 0, warn: 0, none: 0, value: 0 };
						let last = "";
						for (let i = 0; i < pixels.length; i += 4) {
							const p = pixels.slice(i, i + 4);
							const kind = p[3] < 200 ? "" : Object.keys(kinds).find((k) => near(p, kinds[k], 1)) ?? "value";
							if (kind !== "" && last === "") found[kind]++;
							last = kind;
						}
						const want = { bad: 0, warn: 0, none: 0, value: 0 };
						for (const x of list) want[x[1] === 1 ? "bad" : x[1] === 2 ? "warn" : x[2] === null ? "none" : "value"]++;
						window.counted = JSON.stringify({ row, found, want });
						return Object.keys(want).every((k) => want[k] === found[k]);
					}); })()`)
			})
		}
		b.fitsWidth("/fleet")
		b.shoot(fmt.Sprintf("drawing-fleet-%d-%v", l.width, l.dark))
	}
}
