package web

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestManyTabs: tabs in sight share one stream, so that more of them live than
// a browser has connections; each session has a stream of its own.
func TestManyTabs(t *testing.T) {
	hermetic.Long(t)
	n := newNode(t, sim.Options{Boards: "p150a"})
	const live = `document.querySelector(".fresh.live") !== null && document.querySelector(".shell.stale") === null`
	var tabs []*tab
	for range 8 {
		b := open(t, desk, n.url+"/")
		b.until("it is live", live)
		tabs = append(tabs, b)
	}
	n.pages(tabs[0], 1)
	n.ctl("hang", "0")
	for i, b := range tabs {
		b.until(fmt.Sprintf("tab %d continues", i), live+` && document.querySelector(".card .state").textContent.includes("hung")`)
	}
	n.ctl("unhang", "0")

	own := tabs[7]
	own.visit(n.ticket())
	own.says("Signed in as root")
	own.until("it is live", live)
	n.pages(own, 2)
	if err := chromedp.Do(own.ctx, chromedp.Navigate("about:blank")); err != nil {
		t.Fatal(err)
	}
	n.pages(tabs[0], 1)

	listen := strings.TrimPrefix(n.url, "http://")
	n.stop()
	for _, b := range tabs[:7] {
		b.until("what is old is greyed out", `document.querySelector(".shell.stale") !== null`)
	}
	n.start(listen)
	for _, b := range tabs[:7] {
		b.until("it is live again", live+` && document.querySelector(".card .state").textContent.includes("ok")`)
	}
	n.pages(tabs[0], 1)
}

// pages waits until so many streams of the page are open.
func (n *node) pages(b *tab, want int) {
	n.Helper()
	line := fmt.Sprintf("tenstorrent_clients{kind=\"page\"} %d\n", want)
	b.until(fmt.Sprintf("%d streams are open", want), fmt.Sprintf(`fetch("/metrics").then(r => r.text()).then(s => s.includes(%q))`, line))
}
