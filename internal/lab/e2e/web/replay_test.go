//go:build web

package web

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// TestReplay: a recording behind the page, in which a process ends and a chip
// hangs: it does not pass for the present, charts show its own time, and every
// moment of it can be gone to.
func TestReplay(t *testing.T) {
	n := newNode(t, sim.Options{Boards: "n300,p150a"})
	pid := n.ctl("run", "name=llama,cmd=python3 serve.py,devices=0,load=0.8,kind=metal,dram=9G")
	b := open(t, desk, n.url+"/") // a viewer
	b.says("serve.py")
	file := filepath.Join(t.TempDir(), "x.ttrec")
	record := n.host.Command(t.Context(), filepath.Join(bin, "ttmon"), "record", "--daemon", n.api, "-o", file)
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	recorded(t, file, "nothing", func(r *recording.Reader) bool { _, _, ok := r.Span(); return ok })
	n.ctl("hang", "1")
	b.says("1 hung")
	n.ctl("kill", pid)
	b.says("No process uses a device")
	recorded(t, file, "no event", func(r *recording.Reader) bool { list, err := r.Events(); return err == nil && len(list) > 0 })
	if err := record.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = record.Wait()

	serve := exec.CommandContext(t.Context(), filepath.Join(bin, "ttmon"), "replay", file, "--serve", "--paused")
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = serve.Process.Kill(); _ = serve.Wait() })
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("ttmon replay --serve says no address: %v", err)
	}
	url = strings.TrimSpace(url)
	b = open(t, desk, url)
	base, _, _ := strings.Cut(url, "/#")
	base = strings.TrimSuffix(base, "/")
	b.until("it is no host", `document.querySelector(".fresh")?.textContent.includes("recording") && document.querySelector("h1").textContent.includes("(recording)")`)
	b.says("serve.py")
	b.until("it opens where something happened", `[...document.querySelectorAll(".card .state")].some(e => e.textContent.includes("hung"))`)
	b.until("the span of the recording is there, with what happened", `document.querySelectorAll(".timebar .ends").length === 2 && document.querySelector(".timebar i.critical") !== null`)
	b.shoot("replay")
	b.visit(base + "/device/0")
	b.until("charts of the recording are drawn", `document.querySelectorAll(".chart canvas").length >= 6`)
	b.until("they have its values", `[...document.querySelectorAll(".chart .legend b")].some(e => /\d W$/.test(e.textContent))`)
	b.visit(base + "/events")
	hung := `[...document.querySelectorAll(".events li.critical")].find(e => e.textContent.includes("device 1 is hung"))`
	b.until("what happened is listed", hung+" !== undefined")
	eval[any](b, hung+`.querySelector("button").click()`)
	b.press("o")
	b.until("the chip hangs at that moment", `[...document.querySelectorAll(".card .state")].some(e => e.textContent.includes("hung"))`)
	b.until("the time before it has values, too", `[...document.querySelectorAll(".chart .legend b")].some(e => /°C$/.test(e.textContent))`)
	b.visit(base + "/topology")
	b.until("boards are drawn", `document.querySelectorAll(".graph .spot").length >= 2`)
	b.accessible("a recording", axe(t))
}

// recorded waits until a recording that is being written has something.
func recorded(t *testing.T, file, lack string, has func(*recording.Reader) bool) {
	t.Helper()
	for end := time.Now().Add(timeout); ; time.Sleep(100 * time.Millisecond) {
		if r, err := recording.Open(file); err == nil {
			ok := has(r)
			r.Close()
			if ok {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s is recorded", lack)
		}
	}
}
