package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// daemonAt serves a ttmond that says what it is told to.
func daemonAt(t *testing.T, answers map[string]func(http.ResponseWriter)) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ttmond.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := answers[r.Method+" "+r.URL.Path]; f != nil {
			f(w)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	return path
}

func runDaemonCommand(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	a := newApp(file("out"), file("err"), func(string) string { return "" })
	code = a.run(append([]string{"ttmon"}, args...))
	read := func(f *os.File) string {
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return code, read(a.Stdout), read(a.Stderr)
}

func TestDaemonStatus(t *testing.T) {
	const body = `{"status":%q,"problems":[%s],"warnings":[%s],"pid":7,"version":"1.2","uptime_s":3700,"snapshot_age_s":0.42,
		"heap_bytes":1048576,"memory_limit_bytes":1073741824,"descriptors":{"open":12,"limit":1024},
		"takeover_pause_s":0.012,
		"sources":[{"name":"kmd","late":false,"took_s":0.0031},{"name":"shm","late":true,"took_s":12}],
		"budgets":[{"name":"descriptors","used":5,"limit":100,"limit_per_uid":25,"refused":3,"users":[{"uid":1000,"used":5,"refused":3}]}]}`
	for name, c := range map[string]struct {
		status, problems, warnings string
		http, code, alive          int
		want                       []string
	}{
		"well": {status: "ok", http: 200, code: 0, want: []string{
			"pid 7, up 1h1m40s", "kmd 3.1ms, shm 12s (late)", "12 of 1024", "clients waited 12ms", "1000",
		}},
		"needs attention": {status: "ok", http: 200, code: 1, warnings: `{"part":"alloc_socket","reason":"not served: \u001b[2J"}`, want: []string{"alloc_socket: not served"}},
		"late":            {status: "late", http: 503, code: 2, alive: 2, problems: `{"part":"alloc_server","reason":"it does not answer"}`, want: []string{"late", "alloc_server: it does not answer"}},
		"a hung chip":     {status: "late", http: 503, code: 2, problems: `{"part":"kmd","reason":"has not answered for 12s"}`, want: []string{"kmd: has not answered for 12s"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := daemonAt(t, map[string]func(http.ResponseWriter){"GET /v1/health": func(w http.ResponseWriter) {
				w.WriteHeader(c.http)
				fmt.Fprintf(w, body, c.status, c.problems, c.warnings)
			}})
			code, out, errs := runDaemonCommand(t, "--daemon", path, "daemon", "status")
			if code != c.code || errs != "" {
				t.Errorf("exit %d, want %d: %s", code, c.code, errs)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
			if strings.Contains(out, "\x1b") {
				t.Errorf("a control character reaches the terminal:\n%q", out)
			}
			if _, out, _ := runDaemonCommand(t, "--ascii", "--daemon", path, "daemon", "status"); strings.ContainsFunc(out, func(r rune) bool { return r > unicode.MaxASCII }) {
				t.Errorf("not ASCII:\n%s", out)
			}
			// A restart would fix nothing but the allocation server.
			if code, out, _ := runDaemonCommand(t, "--daemon", path, "daemon", "status", "--alive"); code != c.alive || out != "" {
				t.Errorf("--alive: exit %d, want %d: %q", code, c.alive, out)
			}
		})
	}
	if code, _, errs := runDaemonCommand(t, "--daemon", "/no/such/socket", "daemon", "status"); code != 3 || !strings.Contains(errs, "no ttmond responds") {
		t.Errorf("without a daemon: exit %d, %s", code, errs)
	}
	if code, _, errs := runDaemonCommand(t, "--daemon", "/no/such/socket", "daemon", "status", "--alive"); code != 3 {
		t.Errorf("--alive without a daemon: exit %d, %s", code, errs)
	}
}

func TestDaemonReload(t *testing.T) {
	for name, c := range map[string]struct {
		http, code int
		body, want string
	}{
		"changes":    {200, 0, `{"changes":["log.level has changed"]}`, "log.level has changed"},
		"none":       {200, 0, `{"changes":[]}`, "has not changed"},
		"other user": {403, 4, `{"error":"only root"}`, "only root"},
		"mistake":    {422, 1, `{"error":"line 3"}`, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			path := daemonAt(t, map[string]func(http.ResponseWriter){"POST /v1/reload": func(w http.ResponseWriter) {
				w.WriteHeader(c.http)
				fmt.Fprint(w, c.body)
			}})
			if code, out, errs := runDaemonCommand(t, "--daemon", path, "daemon", "reload"); code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("exit %d, want %d with %q: %s%s", code, c.code, c.want, out, errs)
			}
		})
	}
}

// TestSeveralDaemons: all that run are named, also where one was chosen, and whose
// figures are shown.
func TestSeveralDaemons(t *testing.T) {
	health := func(pid int) map[string]func(http.ResponseWriter) {
		return map[string]func(http.ResponseWriter){"GET /v1/health": func(w http.ResponseWriter) { fmt.Fprintf(w, `{"status":"ok","pid":%d}`, pid) }}
	}
	shown, other, silent := daemonAt(t, health(7)), daemonAt(t, health(8)), daemonAt(t, nil)
	code, out, errs := runDaemonCommand(t, "daemon", "status", "--daemon", shown)
	for _, want := range []string{"at " + shown + ", pid 7", "another ttmond runs, pid 8; figures are those of the one above, unless you say --daemon " + other, "another ttmond listens at " + silent + " and does not answer"} {
		if !strings.Contains(out, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, out, errs)
		}
	}
	if strings.Count(out, "another ttmond") != 2 {
		t.Errorf("one is named twice:\n%s", out)
	}
}
