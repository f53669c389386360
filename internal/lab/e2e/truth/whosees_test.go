package truth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// What only root and its user can read of a program of these tests: where it runs, and
// its environment.
const (
	secretDir     = "private-place"
	secretSSH     = "192.0.2.77"
	secretJob     = "private-job"
	secretEnviron = "private-environment"
)

// secretEnv is the environment with the secrets.
var secretEnv = []string{"SSH_CONNECTION=" + secretSSH + " 50000 192.0.2.1 22", "SLURM_JOB_ID=4711", "SLURM_JOB_NAME=" + secretJob, "TTMON_SECRET=" + secretEnviron}

// otherUser has no program in any scenario or composition.
const otherUser = 60077

// reader is who reads the API of a daemon.
type reader struct {
	name    string
	base    string // of the address of each call
	session string
	dial    func(context.Context, string, string) (net.Conn, error) // nil: TCP
}

// asUserOn reads on a Unix socket as a user.
func asUserOn(uid int, socket string) reader {
	return reader{name: fmt.Sprintf("user %d on %s", uid, filepath.Base(socket)), base: "http://ttmon", dial: func(context.Context, string, string) (c net.Conn, err error) {
		done := make(chan struct{})
		go func() { // the kernel notes who connects, which is a thread
			defer close(done)
			runtime.LockOSThread() // and never unlocked: the thread ends
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); errno != 0 {
				err = errno
				return
			}
			c, err = net.Dial("unix", socket)
		}()
		<-done
		return c, err
	}}
}

// get makes a call. Of one that does not end it reads up to the first snapshot or,
// where none comes, for a moment.
func (r reader) get(path string, endless bool) (status int, body string, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if endless {
		time.AfterFunc(time.Second, cancel) // a client that may see nothing is sent nothing
	}
	ask, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+path, nil)
	if err != nil {
		return 0, "", err
	}
	ask.Header.Set("X-Ttmon-Session", r.session)
	if r.session == "" {
		ask.Header.Del("X-Ttmon-Session")
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: r.dial}}).Do(ask)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	var b bytes.Buffer
	_, err = io.Copy(&b, answer.Body)
	if endless && ctx.Err() != nil {
		err = nil
	}
	return answer.StatusCode, b.String(), err
}

// snapshot is the present one.
func (r reader) snapshot() (*model.Snapshot, error) {
	status, body, err := r.get("/v1/snapshot", false)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("%s: status %d: %w", r.name, status, err)
	}
	return wire.Decode([]byte(body))
}

// everything makes every call that the daemon describes, about every process and device,
// and returns the answers by call.
func (r reader) everything() (answers map[string]string, err error) {
	_, body, err := r.get("/v1/openapi.json", false)
	var described struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content map[string]any }
		}
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(body), &described); err != nil {
		return nil, err
	}
	snap, err := r.snapshot()
	if err != nil {
		return nil, err
	}
	answers = map[string]string{}
	var mu sync.Mutex
	var endless errgroup.Group
	do := func(call string, endless bool) error {
		status, body, err := r.get(call, endless)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", r.name, call, err)
		}
		mu.Lock()
		defer mu.Unlock()
		answers[call] = fmt.Sprint(status, " ", body)
		return nil
	}
	for path, methods := range described.Paths {
		get, ok := methods["get"]
		if !ok {
			continue
		}
		ends := false
		for _, kind := range []string{"application/json", "text/plain", "text/html"} {
			_, is := get.Responses["200"].Content[kind]
			ends = ends || is
		}
		for _, call := range callsOf(strings.TrimPrefix(path, "/api"), snap) {
			if !ends || strings.Contains(call, "follow=") {
				endless.Go(func() error { return do(call, true) })
			} else if err := do(call, false); err != nil {
				return nil, err
			}
		}
	}
	return answers, endless.Wait()
}

// callsOf is a call about all that it can be asked about.
func callsOf(path string, snap *model.Snapshot) (list []string) {
	now := url.QueryEscape(snap.Time.UTC().Format(time.RFC3339))
	switch {
	case strings.Contains(path, "{pid}"), path == "/v1/lines":
		for i := range snap.Processes {
			p := &snap.Processes[i]
			call := strings.Replace(path, "{pid}", strconv.Itoa(p.PID), 1)
			if path == "/v1/lines" {
				call += fmt.Sprintf("?pid=%d&start=%d", p.PID, p.StartTicks)
			}
			list = append(list, call)
		}
		return list
	case path == "/v1/facts":
		for i := range snap.Devices {
			list = append(list, path+"?device="+snap.Devices[i].BusID)
		}
		return list
	case path == "/v1/said":
		return []string{path, path + "?at=" + now}
	case path == "/v1/watch":
		return []string{path, path + "?said=1"}
	case path == "/v1/events":
		return []string{path, path + "?follow=1"}
	case path == "/v1/past":
		return []string{path + "?at=" + now}
	case path == "/v1/range":
		return []string{path + "?metric=memory.used,processes.count"}
	case path == "/v1/runs/compare":
		return []string{path + "?run=r1&with=r1"}
	case path == "/v1/runs":
		return []string{path, path + "?id=r1"}
	}
	return []string{strings.Replace(path, "{id}", "last", 1)}
}

// found are the texts that are in an answer.
func found(answers map[string]string, texts []string) (list []string) {
	for call, body := range answers {
		for _, text := range texts {
			if strings.Contains(body, text) {
				list = append(list, call+" has "+strconv.Quote(text))
			}
		}
	}
	return list
}

// pageOf is where a ttmon-server serves its page.
func (s *stage) pageOf(socket string) (address string) {
	s.Helper()
	s.until("the page is served", func() bool {
		var version struct{ Page string }
		_, body, err := asUserOn(0, socket).get("/v1/version", false)
		if err == nil {
			err = json.Unmarshal([]byte(body), &version)
		}
		address = strings.TrimSuffix(version.Page, "/")
		return err == nil && address != ""
	})
	return address
}

// hide has /proc hide other users' processes while f runs. It waits until some readers,
// who see none of their own, see so: a daemon looks at /proc's options every few seconds.
func (s *stage) hide(others []reader, f func()) {
	s.Helper()
	remount := func(option string, shown bool) {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_REMOUNT, option); err != nil {
			s.Skipf("mounting /proc with hidepid takes a right that is missing here: %v", err)
		}
		for _, r := range others {
			s.until(r.name+" has "+option, func() bool {
				snap, err := r.snapshot()
				return err == nil && !slices.ContainsFunc(snap.Processes, func(p model.Process) bool { return p.Name.Known() != shown && p.State == model.Running })
			})
			// A server has its processes from ttmond, and looks for itself at what to hide of the past.
			s.until(r.name+" has "+option+" for runs", func() bool {
				_, runs, err := r.get("/v1/runs", false)
				return err == nil && (shown || !strings.Contains(runs, `"command":"`))
			})
		}
	}
	remount("hidepid=2", false)
	f()
	remount("hidepid=0", true)
}

// secretly is the command that runs another one with secrets.
func (s *stage) secretly() []string {
	s.Helper()
	dir := filepath.Join(s.open777(), secretDir)
	if err := os.Mkdir(dir, 0o755); err != nil {
		s.Fatal(err)
	}
	return append([]string{"env", "-C", dir}, secretEnv...)
}

// signIn is a viewer of the page who is a user.
func (s *stage) signIn(d *daemon, page string, uid int) reader {
	s.Helper()
	post := func(r reader, path, body string) (answer map[string]any) {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: r.dial}}
		resp, err := client.Post(r.base+path, "application/json", strings.NewReader(body))
		if err == nil {
			defer resp.Body.Close()
			err = json.NewDecoder(resp.Body).Decode(&answer)
		}
		if err != nil {
			s.Fatalf("%s for user %d: %v", path, uid, err)
		}
		return answer
	}
	r := reader{name: fmt.Sprintf("user %d on the page", uid), base: page + "/api"}
	ticket := post(asUserOn(uid, d.api), "/v1/ticket", "")["ticket"]
	r.session, _ = post(r, "/v1/session", fmt.Sprintf(`{"ticket":%q}`, ticket))["session"].(string)
	if r.session == "" {
		s.Fatalf("user %d has no session", uid)
	}
	return r
}

// whoLearnsWhat: what only root and its user can read of a program is in no answer to
// another user, on no socket and over TCP, and with hidepid neither is what it runs. Root
// and its user see it; a ttmon-server that is another user's has none of it to show.
func whoLearnsWhat(s *stage) {
	const owner, server = 1000, 60010
	s.on("p150a")
	d := s.watching(filepath.Join(s.fake(), "libtt_metal.so"))
	socket := s.startServer(d, server)
	program := s.allocates(append(s.secretly(), asUser(owner)...)...)
	program.do("make %d %d", uint64(4)<<30, s.chips[0].ID)
	page := s.pageOf(socket)
	anonymous := reader{name: "a client over TCP", base: page + "/api"}
	read := []string{secretDir, secretSSH, secretJob} // its environment is for none
	for _, c := range []struct {
		reader
		sees string
	}{{asUserOn(0, d.api), "6"}, {asUserOn(owner, d.api), "6"}, {s.signIn(d, page, 0), "0"}, {s.signIn(d, page, owner), "0"}} {
		var list []string
		r := c.reader
		s.until(r.name+" sees the program", func() bool {
			snap, err := r.snapshot()
			return err == nil && len(snap.Processes) == 1
		})
		answers, err := r.everything()
		if err != nil {
			s.Fatal(err)
		}
		for _, call := range []string{"/v1/snapshot", "/v1/said", "/v1/watch"} {
			list = append(list, found(map[string]string{call: answers[call]}, read)...)
		}
		s.fact(r.name+" finds so many texts in three calls", c.sees, fmt.Sprint(len(list)))
		s.fact(r.name+" sees no environment", "[]", fmt.Sprint(found(answers, []string{secretEnviron})))
	}
	learn := func(when string, secrets ...string) {
		for _, r := range []reader{asUserOn(otherUser, d.api), asUserOn(otherUser, socket), anonymous, s.signIn(d, page, otherUser)} {
			answers, err := r.everything()
			if err != nil {
				s.Fatal(err)
			}
			s.fact(r.name+" sees the process"+when, "1", fmt.Sprint(strings.Count(answers["/v1/snapshot"], `"pid":`+strconv.Itoa(program.Cmd.Process.Pid)+",")))
			s.fact(r.name+" learns"+when, "[]", fmt.Sprint(found(answers, secrets)))
		}
	}
	learn("", append(read, secretEnviron)...)
	s.hide([]reader{asUserOn(otherUser, d.api), asUserOn(otherUser, socket), anonymous}, func() {
		learn(", with hidepid", append(read, secretEnviron, commandOf(program.Cmd.Process.Pid))...)
	})
}

// commandOf is the command line of a process, as snapshots have it.
func commandOf(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(bytes.TrimSpace(bytes.ReplaceAll(b, []byte{0}, []byte{' '})))
}

// secretJudge holds the answers to other users against what they may see.
type secretJudge struct {
	answers int
	leaks   []mistake
}

// readers are who may see no program of the composition; none while no ttmond is there.
func (h *composedHost) readers() []reader {
	if h.d == nil {
		return nil
	}
	return []reader{asUserOn(otherUser, h.d.api), asUserOn(otherUser, h.server), {name: "a client over TCP", base: h.pageOf(h.server) + "/api"}}
}

// judgeSecrets reads everything that other users can read.
func (h *composedHost) judgeSecrets(more ...string) {
	h.Helper()
	for _, r := range h.readers() {
		var answers map[string]string
		h.until(r.name+" is answered", func() (ok bool) {
			var err error
			answers, err = r.everything()
			return err == nil
		})
		h.secret.answers += len(answers)
		for _, leak := range found(answers, append([]string{secretDir, secretSSH, secretJob, secretEnviron}, more...)) {
			h.secret.leaks = append(h.secret.leaks, mistake{"secret " + digits.ReplaceAllString(leak, "#"), r.name + ": " + leak})
		}
	}
}

// judgeHidden does so where /proc hides processes: then neither may they learn what
// others run.
func (h *composedHost) judgeHidden() {
	h.Helper()
	if h.d == nil {
		return
	}
	var commands []string
	for x := range h.live() {
		if text := commandOf(x.pid); strings.Contains(text, " ") { // one word may be in any answer
			commands = append(commands, text)
		}
	}
	h.hide(h.readers(), func() { h.judgeSecrets(commands...) })
}
