//go:build web

package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// TestHidden: on a host that hides processes (hidepid) a viewer without a ticket
// learns of them no more than a user of the host does, on no view and of no time.
func TestHidden(t *testing.T) {
	hermetic.Need(t) // it is this host's /proc that hides
	remount := func(option string) error { return unix.Mount("proc", "/proc", "proc", unix.MS_REMOUNT, option) }
	if err := remount("hidepid=2"); err != nil {
		t.Skipf("mounting /proc with hidepid takes a right that is missing here: %v", err)
	}
	t.Cleanup(func() {
		if err := remount("hidepid=0"); err != nil {
			t.Error(err)
		}
	})
	n := newNode(t, sim.Options{Boards: "p150a"})
	pid := n.ctl("run", "name=secretname,cmd=python3 secretname --key 4711,devices=0,kind=metal,dram=512M,user=1000")
	b := open(t, desk, n.url+"/")
	b.until("its sums are there", `[...document.querySelectorAll("table.processes td")].some(e => e.textContent.includes("512 MiB"))`)
	b.until("a past moment is kept", `fetch("/api/v1/past?at=" + encodeURIComponent(new Date().toISOString())).then(r => r.ok)`)
	for _, path := range []string{"/", "/processes", "/process/" + pid, "/memory", "/events", "/device/0", "/processes?at=" + time.Now().UTC().Format(time.RFC3339Nano)} {
		b.visit(n.url + path)
		b.until("there is a host", `document.querySelector("h1").textContent !== "ttmon"`)
		time.Sleep(time.Second) // what is asked for besides the snapshot
		if page := eval[string](b, `document.documentElement.outerHTML`); strings.Contains(page, "secretname") {
			t.Errorf("%s tells what process %s is", path, pid)
		}
	}
	for _, call := range []string{"snapshot", "said", "events", "processes", "processes/" + pid + "/history", "past?at=" + time.Now().UTC().Format(time.RFC3339), "runs"} {
		r, err := http.Get(n.url + "/api/v1/" + call)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if strings.Contains(string(body), "secretname") {
			t.Errorf("%s tells what process %s is: %s", call, pid, body)
		}
	}
	other := open(t, desk, n.url+"/processes")
	b.visit(n.ticket())
	b.says("python3 secretname --key 4711") // root sees it
	shown := eval[string](other, `document.querySelector(".fresh time").textContent`)
	other.until("the other tab continues", fmt.Sprintf(`document.querySelector(".fresh time").textContent !== %q`, shown))
	if page := eval[string](other, `document.documentElement.outerHTML`); strings.Contains(page, "secretname") {
		t.Error("a tab without a ticket shows what another one has a ticket for")
	}
}
