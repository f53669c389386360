package web

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/sim"
)

// prometheus starts a real one that scrapes targets, and returns its address.
func prometheus(t testing.TB, targets ...string) string {
	t.Helper()
	path, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("there is no prometheus here: tools/setup test installs it")
	}
	dir := t.TempDir()
	config := "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: ttmon\n  static_configs: [{targets: [" + strings.Join(targets, ", ") + "]}]\n"
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var log bytes.Buffer
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus:\n%s", log.String())
		}
	})
	return "http://" + address
}

// serveFleet runs ttmon fleet --serve, and returns the page's address.
func serveFleet(t testing.TB, engine string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "ttmon"), append([]string{"fleet", "--prometheus", engine, "--serve", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	said := make(chan string, 1)
	go func() {
		b := make([]byte, 4096)
		n, _ := out.Read(b)
		said <- string(b[:n])
		for {
			if _, err := out.Read(b); err != nil {
				return
			}
		}
	}()
	select {
	case line := <-said:
		_, url, ok := strings.Cut(strings.TrimSpace(line), " is at ")
		if !ok {
			t.Fatalf("it says %q", line)
		}
		return url
	case <-time.After(patience):
		t.Fatal("it does not say where it is")
	}
	return ""
}

// TestFleet: two hosts in a real Prometheus, one of them in trouble, and the way
// from the fleet to its page.
func TestFleet(t *testing.T) {
	browser(t)
	good := newNode(t, sim.Options{Boards: "n150,n150"})
	bad := newNode(t, sim.Options{Boards: "4xn150"})
	bad.ctl("hang", "2")
	at := func(n *node) string { return strings.TrimPrefix(n.url, "http://") }
	engine := prometheus(t, at(good), at(bad))
	url := serveFleet(t, engine)
	b := open(t, desk, url)
	b.until("both hosts are there, the one in trouble first", fmt.Sprintf(
		`document.querySelector(".fleetsums")?.textContent.includes("6 devices") && document.querySelector(".fleetsums").textContent.includes("1 hung") && document.querySelector(".hostdetail h3")?.textContent.includes(%q)`, at(bad)))
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
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "ttmon-server"), "fleet", "--prometheus", "http://127.0.0.1:1", "--listen", "0.0.0.0:0").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nothing guards it") {
		t.Errorf("an address that everybody reaches, without a guard: %v, %s", err, out)
	}
}
