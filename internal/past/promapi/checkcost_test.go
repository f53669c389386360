package promapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/storage"
)

func ask(t testing.TB, h http.Handler, path string, form url.Values) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/api/v1/"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// nested is f around itself n times; %s is the inside.
func nested(n int, f, inside string) string {
	for range n {
		inside = fmt.Sprintf(f, inside)
	}
	return inside
}

// grown is what a question made the program allocate.
func grown(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// What would kill the daemon, or keep it busy, is refused before it is begun.
func TestCostlyQuestions(t *testing.T) {
	h := New(Options{Queryable: filled(t)})
	const name = "tenstorrent_core_power_watts"
	doubling := `label_replace(%s, "a", "$1$1$1$1$1$1$1$1", "a", "(.*)")`
	for _, c := range []struct{ name, query, want string }{
		{"a subquery of 100 years", `sum_over_time(vector(1)[100y:1ms])`, "years"},
		{"a fine subquery", `sum_over_time(vector(1)[1y:1ms])`, "points in memory"},
		{"the same in parentheses", `sum_over_time(((vector(1)))[1y:1ms])`, "points in memory"},
		{"the same at a time", `sum_over_time(((` + name + ` @ 0))[1y:1ms] @ 1800000000)`, "points in memory"},
		{"a subquery of a subquery", `sum_over_time(sum_over_time(vector(1)[1d:1s])[100d:1m])`, "points in memory"},
		{"a default step", `sum_over_time(vector(1)[49y:])`, "points in memory"},
		{"labels that double", nested(12, doubling, `label_replace(`+name+`, "a", "xxxxxxxx", "", "")`), "bytes of a label"},
		{"labels of a selector that double", nested(12, `label_replace(%s, "pci", "$1$1", "pci", "(.*)")`, name), "bytes of a label"},
		{"the same in parentheses", nested(12, `label_replace(%s, ("pci"), ("$1$1"), "pci", "(.*)")`, name), "bytes of a label"},
		{"labels that are joined", nested(12, `label_join(%s, "pci", "", "pci", "pci", "pci")`, name), "bytes of a label"},
		{"a long label", `label_join(` + name + `, "a", "` + strings.Repeat("x", 1500) + `", "pci", "pci", "pci", "pci")`, "bytes of a label"},
		{"a large regular expression", name + `{device=~"((a{100}){100}){100}"}`, "regular expressions"},
		{"one that is escaped", name + `{device=~"(a\x7b1000})\x7b1000}"}`, "regular expressions"},
		{"one in label_replace", `label_replace(` + name + `, "a", "", "device", '(\\pL{1000}){10}')`, "regular expressions"},
		{"many", name + `{device=~"a{900}",pci=~"a{900}",x=~"a{900}",y=~"a{900}",z=~"a{900}"}`, "regular expressions"},
		{"a comment before one", name + "{device=~ # \"\n\"((a{100}){100}){100}\"}", "regular expressions"},
		{"deep", strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000), "nested parts"},
		{"long", strings.Repeat("1+", 3000) + "1", "parts"},
		{"very long", strings.Repeat("1+", 9000) + "1", "bytes"},
		{"far back", `sum_over_time(vector(1)[1m:1s] offset 100y)`, "years"},
		{"many offsets", nested(40, `sum_over_time(%s[1m:1m] offset 5y)`, "vector(1)"), "years"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var status int
			var body string
			n := grown(func() { status, body = ask(t, h, "query", url.Values{"query": {c.query}, "time": {"1800000099"}}) })
			if status != 422 && status != 400 || !strings.Contains(body, c.want) {
				t.Errorf("%d %.300s, want %q", status, body, c.want)
			}
			if n > 16<<20 {
				t.Errorf("refusing it took %d bytes", n)
			}
		})
	}
}

// The same over a range, where each step costs.
func TestCostlyRanges(t *testing.T) {
	h := New(Options{Queryable: filled(t)})
	const name = "tenstorrent_core_power_watts"
	for _, c := range []struct{ name, query, want string }{
		{"windows that overlap", `quantile_over_time(0.5, ` + name + `[30d])`, "windows"},
		{"windows over a subquery", `quantile_over_time(0.5, vector(1)[1h:100ms])`, "windows"},
		{"values as labels", `count_values("x", ` + name + `)`, "points in memory"},
		{"many parts", strings.Repeat(name+"+", 95) + name, "points in memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body := ask(t, h, "query_range", url.Values{"query": {c.query}, "start": {"1799989100"}, "end": {"1800000100"}, "step": {"1"}})
			if status != 422 || !strings.Contains(body, c.want) {
				t.Errorf("%d %.300s, want %q", status, body, c.want)
			}
		})
	}
}

// What dashboards, rules and people ask for is answered.
func TestAffordable(t *testing.T) {
	h := New(Options{Queryable: filled(t)})
	for _, query := range []string{
		`tenstorrent_core_power_watts`,
		`sum by (device) (tenstorrent_core_power_watts)`,
		`topk(5, max_over_time(tenstorrent_core_power_watts[1h]))`,
		`avg_over_time(tenstorrent_core_power_watts[30d])`,
		`max_over_time(rate(tenstorrent_core_power_watts[5m])[1h:1m])`,
		`quantile_over_time(0.99, tenstorrent_core_power_watts[10m])`,
		`count_values("watts", tenstorrent_core_power_watts)`,
		`label_replace(tenstorrent_core_power_watts, "bus", "$2:$1", "pci", "(.*):(.*)")`,
		`label_join(tenstorrent_core_power_watts, "id", "/", "device", "pci")`,
		`tenstorrent_core_power_watts * on(device) group_left(pci) tenstorrent_core_power_watts`,
		`tenstorrent_core_power_watts{device=~"(0|1|2|3|4|5|6|7|8|9|10)"} > 3`,
		`{__name__=~"tenstorrent_.+",pci!~"0000:[0-9a-f]{2}:.*"}`,
		`absent(nothing) or vector(1)`,
		`sum_over_time((tenstorrent_core_power_watts > bool 5)[1d:1m])`,
	} {
		t.Run(query, func(t *testing.T) {
			if status, body := ask(t, h, "query", url.Values{"query": {query}, "time": {"1800000099"}}); status != 200 {
				t.Errorf("instant: %d %s", status, body)
			}
			form := url.Values{"query": {query}, "start": {"1799996500"}, "end": {"1800000100"}, "step": {"4"}}
			if status, body := ask(t, h, "query_range", form); status != 200 && !strings.HasPrefix(query, "count_values") {
				t.Errorf("range: %d %s", status, body)
			}
		})
	}
}

// Ordinary users have one question each under way, and root has places of its own.
func TestTurns(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	slow := storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		begun <- struct{}{}
		<-release
		return nil, errors.New("released")
	})
	h := New(Options{Queryable: slow, User: func(r *http.Request) int {
		uid, _ := strconv.Atoi(r.URL.Query().Get("uid"))
		return uid
	}})
	ask := func(ctx context.Context, uid int, query string) *http.Response {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("/api/v1/query?uid=%d&query=%s", uid, url.QueryEscape(query)), nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	done := make(chan *http.Response)
	anna := os.Getuid() + 1000 // neither root nor who runs the tests
	for uid := anna; uid <= anna+1; uid++ {
		go func() { done <- ask(t.Context(), uid, "up") }()
		<-begun
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, uid := range []int{anna, anna + 2} { // the first has one already, the other comes too late
		if r := ask(gone, uid, "up"); r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("user %d: %s", uid, r.Status)
		}
	}
	go func() { done <- ask(t.Context(), 0, "up") }()
	<-begun // root's is under way while others wait
	close(release)
	for range 3 {
		if r := <-done; r.StatusCode != http.StatusServiceUnavailable {
			b, _ := io.ReadAll(r.Body)
			t.Errorf("%s %s", r.Status, b)
		}
	}
}

// FuzzQuery sends questions through the guard to a real history: whatever they
// are, they end, and take a bounded amount of memory.
func FuzzQuery(f *testing.F) {
	for _, q := range []string{
		`sum_over_time(vector(1)[100y:1ms])`,
		`sum_over_time(vector(1)[1m:1ms])`,
		nested(5, `label_replace(%s, "a", "$1$1$1$1", "a", "(.*)")`, `label_replace(vector(1), "a", "x", "", "")`),
		`label_join(tenstorrent_core_power_watts, "a", ",", "device", "pci")`,
		`count_values("x", tenstorrent_core_power_watts)`,
		`{__name__=~".+"}`,
		`{__name__=~".+"}[1y]`,
		`tenstorrent_core_power_watts @ end() offset -5m`,
		`tenstorrent_core_power_watts{device=~"(a{10}){10}"} # comment`,
		`max_over_time(rate(tenstorrent_core_power_watts[30s])[5m:] @ 1800000050)`,
		`topk(1, tenstorrent_core_power_watts) by (device) or on() vector(0)`,
		`quantile_over_time(0.5, tenstorrent_core_power_watts[1m:1ms])`,
		`tenstorrent_core_power_watts * on(device) group_left(pci) tenstorrent_core_power_watts`,
		`"text"`, `-1 ^ 2`, `time() % 60`, `sort_desc(tenstorrent_core_power_watts)`,
	} {
		f.Add(q, int64(0))
		f.Add(q, int64(1))
	}
	h := New(Options{Queryable: filled(f)})
	f.Fuzz(func(t *testing.T, query string, step int64) {
		form := url.Values{"query": {query}, "time": {"1800000099"}, "start": {"1800000000"}, "end": {"1800000099"}, "step": {strconv.FormatInt(step, 10)}}
		path := "query"
		if step > 0 {
			path = "query_range"
		}
		var status int
		var body string
		n := grown(func() { status, body = ask(t, h, path, form) })
		if status == http.StatusInternalServerError || strings.Contains(body, "unexpected error") {
			t.Errorf("%q: %d %s", query, status, body)
		}
		if n > 512<<20 {
			t.Errorf("%q: %d bytes", query, n)
		}
	})
}
