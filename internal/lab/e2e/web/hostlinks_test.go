package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestLinksBetweenHosts: the page of a fleet has both ends of every link between three
// hosts in a ring, and names the host that lost its links to both others, above the
// hosts and in its row.
func TestLinksBetweenHosts(t *testing.T) {
	hermetic.Long(t)
	browser(t)
	var hosts []*node
	var at []string
	for k := range 3 {
		n := newNodeWith(t, sim.Options{Boards: "2xn300", Cables: true, UMDDump: true, MeshHost: fmt.Sprintf("%d/3", k+1)}, []string{"--firmware", "table"})
		hosts, at = append(hosts, n), append(at, strings.TrimPrefix(n.url, "http://"))
	}
	url := serveFleet(t, programs.Prometheus(t, at...))
	b := open(t, desk, url)
	b.until("six links, of which both ends are up", `(() => {
		const rows = [...document.querySelectorAll(".hostlinks tbody tr")];
		return rows.length === 6 && rows.every((r) => r.cells[1].textContent === "up" && r.cells[3].textContent === "up") && document.querySelectorAll(".banner.bad").length === 0; })()`)
	hosts[0].ctl("cut", "1", "14", "15")
	hosts[1].ctl("cut", "0", "0", "1")
	hosts[1].ctl("cut", "1", "14", "15")
	hosts[2].ctl("cut", "0", "0", "1")
	b.until("the host in the middle is named above the hosts", fmt.Sprintf(
		`[...document.querySelectorAll(".banner.bad")].some((p) => p.textContent.includes("%s is the likely cause of 4 links to "))`, at[1]))
	b.until("links that are down are first, with the cause", fmt.Sprintf(`(() => {
		const rows = [...document.querySelectorAll(".hostlinks tbody tr")];
		return rows.length === 6 && rows.slice(0, 4).every((r) => r.className === "bad" && r.cells[1].textContent === "down" && r.cells[4].textContent.startsWith(%q)) && rows.slice(4).every((r) => r.cells[1].textContent === "up"); })()`, at[1]+":"))
	b.until("the panel counts them", `[...document.querySelectorAll("h2")].some((h) => h.textContent.includes("Links between hosts (6, 4 down)"))`)
	b.fitsWidth("/fleet with links between hosts")
	b.shoot("hostlinks")
}
