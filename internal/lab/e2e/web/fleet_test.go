package web

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// serveFleet runs ttmon fleet --serve, and returns the page's address.
func serveFleet(t testing.TB, engine string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "ttmon"), append([]string{"fleet", "--prometheus", engine, "--serve", "127.0.0.1:0"}, args...)...)
	line, _ := programs.UntilSays(t, cmd, " is at ")
	_, url, _ := strings.Cut(strings.TrimSpace(line), " is at ")
	return url
}

// TestFleet: two hosts in a real Prometheus, one of them in trouble, and the way
// from the fleet to its page.
func TestFleet(t *testing.T) {
	hermetic.Long(t)
	browser(t)
	good := newNode(t, sim.Options{Boards: "n150,n150"})
	bad := newNode(t, sim.Options{Boards: "4xn150"})
	bad.ctl("hang", "2")
	at := func(n *node) string { return strings.TrimPrefix(n.url, "http://") }
	engine := programs.Prometheus(t, at(good), at(bad))
	url := serveFleet(t, engine)
	b := open(t, desk, url)
	b.until("both hosts are there, the one in trouble first", fmt.Sprintf(
		`document.querySelector(".fleetsums")?.textContent.includes("6 devices") && document.querySelector(".fleetsums").textContent.includes("1 hung") && document.querySelector(".hostdetail h3")?.textContent.includes(%q)`, at(bad)))
	b.until("totals have all that ttmon fleet has", `(() => {
		const sums = document.querySelector(".fleetsums").textContent;
		return /hottest \d+ °C/.test(sums) && /\d+ W/.test(sums) && /busy /.test(sums) && /DRAM .*GiB/.test(sums); })()`)
	b.until("the host says what is wrong and what it takes, in words that a screen reader has", fmt.Sprintf(`(() => {
		const said = document.querySelector("#chosen-host").textContent, shown = document.querySelector(".hostdetail").textContent;
		return said.includes(%q) && said.includes("1 hung") && /hottest \d+ °C, ≥\d+ W/.test(said) && shown.includes("1 hung") && document.querySelectorAll(".hostdetail li").length === 4; })()`, at(bad)))
	b.until("metrics are named by their headings", `[...document.querySelectorAll(".choice option")].some((o) => o.value === "power.draw" && o.textContent === "Core Power")`)
	if href := eval[string](b, `document.querySelector(".hostdetail a").href`); href != bad.url+"/" {
		t.Errorf("the way to its page is %s, want %s/", href, bad.url)
	}
	other := open(t, desk, serveFleet(t, engine, "--node-url", "https://{instance}/"))
	other.until("the way to a page is as it was said", fmt.Sprintf(`document.querySelector(".hostdetail a")?.href === %q`, "https://"+at(bad)+"/"))
	if n := eval[int](b, `document.querySelectorAll("nav a").length`); n != 1 {
		t.Errorf("there are %d views where only a fleet is known", n)
	}
	b.visit(url + "?filter=" + at(good) + "&metric=power.draw")
	b.until("the search finds the other", fmt.Sprintf(`document.querySelector(".hostdetail h3")?.textContent.includes(%q) && document.querySelector(".hostdetail li")?.textContent.includes(" W")`, at(good)))
	b.fitsWidth("/fleet")
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "ttmon-server"), "fleet", "--prometheus", "http://127.0.0.1:1", "--listen", "0.0.0.0:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "without a password") {
		t.Errorf("an address that everybody reaches, without a guard: %v, %s", err, out)
	}
}
