package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/node/api"
)

// attackVar says that this program is an attacker, and which.
const attackVar = "TTMON_SERVER_ATTACK"

func init() {
	attack := map[string]func(place) error{
		"queries": attackQueries, "half-open": attackHalfOpen, "reporter": report, "ask": callOnce, "streams": attackStreams, "viewers": attackViewers,
	}[os.Getenv(attackVar)]
	if attack == nil {
		return
	}
	if err := attack(place{api: os.Getenv("ATTACK_API"), http: os.Getenv("ATTACK_HTTP"), question: os.Getenv("ATTACK_QUESTION")}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// place is where the server that is attacked is.
type place struct {
	api  string
	http string // address; empty: none is served
	// question is what askAlone asks, as JSON.
	question string
}

// ready says that the attack is under way.
func ready() { fmt.Println("ready") }

// player is a process of another user that attacks the socket api.
func (h *host) player(uid uint32, attack, api, address, question string) *exec.Cmd {
	h.t.Helper()
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { exe.Close() })
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Dir = "/"
	cmd.Env = []string{
		attackVar + "=" + attack, "ATTACK_API=" + api, "ATTACK_HTTP=" + address, "ATTACK_QUESTION=" + question,
		"GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0",
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// play runs an attack until the test ends, and returns when it is under way.
func (h *host) play(cmd *exec.Cmd) (pid int) {
	h.t.Helper()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		h.t.Skipf("processes of other users cannot be started here: %v", err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
		h.t.Fatalf("an attack did not begin: %v", err)
	}
	return cmd.Process.Pid
}

// bombs are queries that took all memory, or all of the time, of a daemon that
// evaluated them.
var bombs = []string{
	`sum_over_time(vector(1)[100y:1ms])`,
	`sum_over_time(vector(1)[1y:1ms])`,
	strings.Repeat(`label_replace(`, 14) + `vector(1),"a","xxxxxxxx","","")` + strings.Repeat(`,"a","$1$1$1$1","a","(.*)")`, 13),
	strings.Repeat(`label_join(`, 12) + `vector(1),"a","xxxxxxxx","a")` + strings.Repeat(`,"a","","a","a","a","a")`, 11),
	`{__name__=~"((a{100}){100}){100}"}`,
	`quantile_over_time(0.5, vector(1)[1d:100ms])`,
	`sum_over_time(sum_over_time({__name__=~".+"}[5m:1s])[1h:1s])`,
	`{__name__=~".+"}[1y]`,
	`count by (__name__) ({__name__=~".+"})`,
}

// attackQueries: queries that cost far more than their text, several at a time.
func attackQueries(p place) error {
	ready()
	for k := range 4 {
		go func() {
			for n := k; ; n++ {
				c, err := net.Dial("unix", p.api)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				path := "/prometheus/api/v1/query?query="
				if n%2 == 0 {
					now := time.Now().Unix()
					path = fmt.Sprintf("/prometheus/api/v1/query_range?start=%d&end=%d&step=1&query=", now-10_000, now)
				}
				fmt.Fprintf(c, "GET %s%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path, url.QueryEscape(bombs[n%len(bombs)]))
				_, _ = io.Copy(io.Discard, c)
				c.Close()
			}
		}()
	}
	time.Sleep(time.Hour)
	return nil
}

// attackHalfOpen: connections over TCP that send nothing, half a request, or do
// not read the answer.
func attackHalfOpen(p place) error {
	if p.http == "" {
		ready()
		time.Sleep(time.Hour)
	}
	var kept []net.Conn
	for n := 0; ; n++ {
		if n == 1024 {
			ready()
		}
		c, err := net.Dial("tcp", p.http)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		switch n % 3 {
		case 1:
			_, _ = io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: local")
		case 2:
			_, _ = io.WriteString(c, strings.Repeat("GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 100))
		}
		if kept = append(kept, c); len(kept) > 1000 {
			kept[0].Close()
			kept = kept[1:]
		}
	}
}

// scrape asks for metrics, as Prometheus does: again where a connection was evicted
// to make room for others.
func scrape(url string) (page string, err error) {
	c := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 5 {
		r, e := c.Get(url)
		if err = e; e != nil {
			continue
		}
		b, e := io.ReadAll(r.Body)
		r.Body.Close()
		if err = e; e == nil {
			return string(b), nil
		}
	}
	return "", err
}

// Queries of others, from the socket, and connections that are left open, keep
// neither root from asking nor Prometheus from scraping. Pages of other origins
// cannot ask at all. ttmond notices nothing.
func TestHostileQueries(t *testing.T) {
	hermetic.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("attackers are other users: that takes root")
	}
	h := newHost(t)
	h.simulate("n300,p150a")
	address := freePort(t)
	i := h.start("--listen", address)
	query := "http://" + address + "/prometheus/api/v1/query?query="
	h.await("the history", func() bool { return h.samples() > 0 })
	h.await("HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
	for uid := range 3 {
		h.play(h.player(uint32(60000+uid), "queries", h.server, address, ""))
	}
	h.play(h.player(60003, "half-open", h.server, address, ""))
	time.Sleep(time.Second) // of attack
	for k := range 10 {
		status, body := h.get("/prometheus/api/v1/query?query=vector(1)")
		if status != http.StatusOK {
			t.Errorf("root's query %d: %d %s", k, status, body)
		}
		if page, err := scrape("http://" + address + "/metrics"); err != nil || !strings.Contains(page, "tenstorrent_up") {
			t.Errorf("scrape %d: %v %.200s", k, err, page)
		}
		if status, body := call(t, h.api, http.MethodGet, "/v1/snapshot", nil, nil); status != http.StatusOK {
			t.Errorf("ttmond's snapshot %d: %d %.200s", k, status, body)
		}
	}
	for _, header := range []http.Header{{"Origin": {"http://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}}} {
		t.Run(fmt.Sprint(header), func(t *testing.T) {
			r, _ := http.NewRequest(http.MethodGet, query+"vector(1)", nil)
			r.Header = header
			for range 5 { // a connection may be evicted
				a, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					continue
				}
				a.Body.Close()
				if a.StatusCode != http.StatusForbidden {
					t.Errorf("a page of another origin gets %s", a.Status)
				}
				break
			}
		})
	}
	if i.ended() || h.ttmond.ended() {
		t.Error("one of the two has ended")
	}
}

// attackViewers: clients over TCP without a name, each of which keeps a connection
// busy: with a stream that it reads, ours or one of ttmond, and with calls that cost, or
// that ttmond answers.
func attackViewers(p place) error {
	for k := range 600 {
		path := []string{"/api/v1/watch", "/api/v1/processes", "/api/v1/said", "/api/v1/topology", "/api/v1/allocations", "/api/v1/programs"}[k%6]
		go func() {
			for {
				if r, err := http.Get("http://" + p.http + path); err == nil {
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
				}
				time.Sleep(time.Millisecond) // a refusal comes at once
			}
		}()
	}
	time.Sleep(time.Second) // of attack
	ready()
	time.Sleep(time.Hour)
	return nil
}

// TestHostileViewers: clients without a name that use all the connections they can keep
// neither root, signed in on the page, from its answers nor Prometheus from scraping.
func TestHostileViewers(t *testing.T) {
	hermetic.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("attackers are other users: that takes root")
	}
	h := newHost(t)
	h.simulate("n300,p150a")
	address := freePort(t)
	// As it is installed: of root's calls ttmond refuses none.
	h.credential, h.server = &syscall.Credential{Uid: 60007, Gid: 60007}, filepath.Join(h.dir, "run", "server.sock")
	for _, dir := range []string{filepath.Dir(h.server), h.state} {
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, 60007, 60007)); err != nil {
			t.Fatal(err)
		}
	}
	i := h.start("--listen", address)
	h.await("HTTP", func() bool { return strings.Contains(i.log.String(), "serving HTTP") })
	ticket := tree(t, h.api, "/v1/version") // ttmond answers
	_, body := call(t, h.api, http.MethodPost, "/v1/ticket", nil, nil)
	if err := json.Unmarshal(body, &ticket); err != nil {
		t.Fatal(err)
	}
	r, err := http.Post("http://"+address+"/api/v1/session", "application/json", strings.NewReader(fmt.Sprintf(`{"ticket":%q}`, ticket["ticket"])))
	if err != nil {
		t.Fatal(err)
	}
	var given struct{ Session string }
	err = json.NewDecoder(r.Body).Decode(&given)
	if r.Body.Close(); err != nil || given.Session == "" {
		t.Fatalf("a session: %v", err)
	}
	h.play(h.player(60003, "viewers", h.server, address, ""))
	h.await("a client without a name is refused", func() bool {
		r, err := http.Get("http://" + address + "/api/v1/processes")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable
	})
	answers, scrapes := map[string]int{}, 0
	root := &http.Client{Timeout: time.Minute}
	for k := range 30 {
		q, _ := http.NewRequest(http.MethodGet, "http://"+address+[]string{"/api/v1/snapshot", "/api/v1/processes", "/api/v1/health"}[k%3], nil)
		q.Header.Set(api.SessionHeader, given.Session)
		r, err := root.Do(q)
		for again := 0; err != nil && again < 5; again++ { // a connection may be evicted, and a browser makes another
			r, err = root.Do(q)
		}
		if err != nil {
			answers[err.Error()]++
			continue
		}
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
		answers[r.Status]++
	}
	for range 14 {
		if page, err := scrape("http://" + address + "/metrics"); err == nil && strings.Contains(page, "tenstorrent_up") {
			scrapes++
		}
	}
	if answers["200 OK"] != 30 || scrapes != 14 {
		t.Errorf("root's answers: %v of 30; %d of 14 scrapes", answers, scrapes)
	}
}
