package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/node/api"
)

// question is what one process asks a ttmond, as its user.
type question struct {
	Method, Path string
	Session      string // "": it sends none
	Body         string
}

// answer is what it gets.
type answer struct {
	Status int
	Body   string
}

// callOnce asks one question and prints the answer.
func callOnce(p place) error {
	var q question
	if err := json.Unmarshal([]byte(p.question), &q); err != nil {
		return err
	}
	header := http.Header{}
	if q.Session != "" {
		header[api.SessionHeader] = []string{q.Session}
	}
	status, body, err := try(p.api, q.Method, q.Path, header, []byte(q.Body))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answer{status, string(body)})
}

// report reports one buffer to the allocation server at p.api and stays.
func report(p place) error {
	c, err := net.Dial("unix", p.api)
	if err != nil {
		return err
	}
	if _, err := c.Write(allocation(os.Getpid())); err != nil {
		return err
	}
	ready()
	time.Sleep(time.Hour)
	return nil
}

// allocation is an ALLOC message of 144 bytes: 1000 bytes of DRAM at secretAddress.
func allocation(pid int) []byte {
	f := make([]byte, 144)
	f[0], f[16] = 1, 0
	binary.LittleEndian.PutUint64(f[8:], 1000)
	binary.LittleEndian.PutUint32(f[20:], uint32(pid))
	binary.LittleEndian.PutUint64(f[24:], secretAddress)
	return f
}

const secretAddress = 4194304

// attackStreams opens streams of ttmond as fast as it can, and reads none.
func attackStreams(p place) error {
	var kept []net.Conn
	for n := 0; ; n++ {
		if n == 100 {
			ready()
		}
		c, err := net.Dial("unix", p.api)
		if err != nil {
			time.Sleep(time.Millisecond)
			continue
		}
		_, _ = io.WriteString(c, "GET /v1/stream?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
		if kept = append(kept, c); len(kept) > 500 {
			kept[0].Close()
			kept = kept[1:]
		}
	}
}

// as asks ttmond as a user.
func (h *host) as(uid uint32, q question) answer {
	h.t.Helper()
	b, _ := json.Marshal(q)
	out, err := h.player(uid, "ask", h.api, "", string(b)).Output()
	var a answer
	if err = errors.Join(err, json.Unmarshal(out, &a)); err != nil {
		h.t.Fatalf("asking as %d: %v: %s", uid, err, out)
	}
	return a
}

// A server under another's control has no more than its user and the sessions that
// viewers gave it: with them it reads what those viewers may read, and nothing
// else. It cannot stop ttmond, nor keep others from asking.
func TestHostileServer(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the server and its viewers are other users: that takes root")
	}
	const server, anna, bert = 60010, 60011, 60012
	h := newHost(t)
	h.simulate("n300,p150a")
	h.startDaemon()
	secrets := map[int]string{anna: "", bert: "", 0: ""}
	buffers := map[int]string{}
	for uid := range secrets {
		buffers[uid] = fmt.Sprintf("/v1/processes/%d/buffers", h.play(h.player(uint32(uid), "reporter", h.alloc, "", "")))
	}
	shows := func(a answer) bool { return strings.Contains(a.Body, fmt.Sprintf(`"id":%d`, secretAddress)) }
	h.await("the reports", func() bool {
		return shows(h.as(0, question{Method: "GET", Path: buffers[anna]})) && shows(h.as(0, question{Method: "GET", Path: buffers[bert]}))
	})
	if !shows(h.as(anna, question{Method: "GET", Path: buffers[anna]})) {
		t.Fatal("anna does not see her own buffers: the test proves nothing")
	}

	// By its own right it sees what any user does.
	for uid, path := range buffers {
		for _, session := range []string{"", "none", "0", "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
			if a := h.as(server, question{Method: "GET", Path: path, Session: session}); shows(a) {
				t.Errorf("without a ticket, session %q, it sees where the buffers of %d are: %s", session, uid, a.Body)
			}
		}
	}

	// A viewer's session is that viewer's.
	ticket := func(uid uint32) (secret string) {
		a := h.as(uid, question{Method: "POST", Path: "/v1/ticket"})
		var v struct{ Ticket string }
		if err := json.Unmarshal([]byte(a.Body), &v); err != nil || v.Ticket == "" {
			t.Fatalf("a ticket for %d: %+v", uid, a)
		}
		return v.Ticket
	}
	body := fmt.Sprintf(`{"ticket":%q}`, ticket(anna))
	given := h.as(server, question{Method: "POST", Path: "/v1/session", Session: "none", Body: body})
	var v struct{ Session string }
	if err := json.Unmarshal([]byte(given.Body), &v); err != nil || v.Session == "" {
		t.Fatalf("a session: %+v", given)
	}
	if again := h.as(server, question{Method: "POST", Path: "/v1/session", Session: "none", Body: body}); again.Status != http.StatusForbidden {
		t.Errorf("a ticket is good twice: %+v", again)
	}
	if !shows(h.as(server, question{Method: "GET", Path: buffers[anna], Session: v.Session})) {
		t.Error("with anna's session it does not see her buffers")
	}
	for _, uid := range []int{bert, 0} {
		if a := h.as(server, question{Method: "GET", Path: buffers[uid], Session: v.Session}); shows(a) {
			t.Errorf("with anna's session it sees the buffers of %d: %s", uid, a.Body)
		}
	}
	if a := h.as(server, question{Method: "GET", Path: "/v1/dumps", Session: v.Session}); a.Status == http.StatusOK && strings.Contains(a.Body, `"text"`) {
		t.Errorf("with anna's session it reads the dumps of others: %s", a.Body)
	}

	// A session cannot be made into more.
	for _, path := range []string{"/v1/ticket", "/v1/reload"} {
		for _, session := range []string{v.Session, "none"} {
			if a := h.as(server, question{Method: "POST", Path: path, Session: session}); a.Status != http.StatusForbidden {
				t.Errorf("POST %s with session %q: %+v", path, session, a)
			}
		}
	}
	own := h.as(server, question{Method: "POST", Path: "/v1/ticket"}) // its own user's, which has nothing
	if a := h.as(server, question{Method: "POST", Path: "/v1/reload"}); a.Status != http.StatusForbidden {
		t.Errorf("it has ttmond read its configuration again: %+v, ticket %+v", a, own)
	}

	// It cannot keep others from asking.
	h.play(h.player(server, "streams", h.api, "", ""))
	for range 10 {
		for _, uid := range []uint32{0, anna} {
			if a := h.as(uid, question{Method: "GET", Path: "/v1/snapshot"}); a.Status != http.StatusOK {
				t.Errorf("user %d is answered %d meanwhile: %.200s", uid, a.Status, a.Body)
			}
		}
	}
	if h.ttmond.ended() {
		t.Error("ttmond has ended")
	}
}
