package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

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

// Queries of others, from the socket, and connections that are left open, keep
// neither root from asking nor Prometheus from scraping. Pages of other origins
// cannot ask at all.
func TestHostileQueries(t *testing.T) {
	a := newArena(t)
	if raceDetector {
		a.allowMemory(4 * arenaMemory) // the detector keeps several bytes for each of the heap
	}
	a.http = freePort(t)
	a.start("--listen", a.http)
	a.watchOver()
	query := "http://" + a.http + "/prometheus/api/v1/query?query="
	a.await("the history", func() bool { return strings.Contains(get(t, query+"vector(1)", nil), "success") })
	for uid := range 3 {
		a.play(60000+uid, "queries")
	}
	a.play(60003, "half-open")
	time.Sleep(time.Second) // of attack
	for k := range 10 {
		status, body := a.get("/prometheus/api/v1/query?query=vector(1)")
		if status != http.StatusOK {
			t.Errorf("root's query %d: %d %s", k, status, body)
		}
		if page := get(t, "http://"+a.http+"/metrics", nil); !strings.Contains(page, "tenstorrent_up") {
			t.Errorf("scrape %d: %.200s", k, page)
		}
	}
	for _, header := range []http.Header{{"Origin": {"http://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}}} {
		if got := get(t, query+"vector(1)", header); !strings.HasPrefix(got, "403") {
			t.Errorf("a page of another origin gets %.200s", got)
		}
	}
	a.settle()
}
