package fleet

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/fleet/answer"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

// line is a series with its labels in pairs.
func line(value string, pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%q", pairs[i], pairs[i+1])
	}
	return fmt.Sprintf(`{"metric":{%s},"value":[1,%q]}`, b.String(), value)
}

func serve(t *testing.T, series map[string][]string, page ...string) (url string, asked *atomic.Int64, broken *atomic.Bool) {
	t.Helper()
	asked, broken = new(atomic.Int64), new(atomic.Bool)
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if broken.Load() {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"status":"error","errorType":"execution","error":"out of memory"}`)
			return
		}
		var list []string
		for part, lines := range series {
			if strings.Contains(r.URL.Query().Get("query"), part) {
				list = append(list, lines...)
			}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(list, ","))
	}))
	t.Cleanup(engine.Close)
	p, err := client.NewPrometheus(engine.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Prometheus: p, Page: strings.Join(page, "")})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return web.URL + "/v1/fleet", asked, broken
}

func get(t *testing.T, url string) (status int, a answer.Answer, text string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusOK {
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatal(err)
		}
	}
	return r.StatusCode, a, string(b)
}

var three = map[string][]string{
	`count(tenstorrent_devices{host!=""})`: {line("3")},
	"sum by (host) (tenstorrent_devices)":  {line("2", "host", "calm"), line("1", "host", "hot"), line("3", "host", "ill")},
	"sum by (host, condition) (": {
		line("2", "host", "calm", "condition", "ok"), line("1", "host", "hot", "condition", "throttled"),
		line("1", "host", "ill", "condition", "ok"), line("1", "host", "ill", "condition", "hung"), line("1", "host", "ill", "condition", "of-the-future"),
	},
	"tenstorrent_device_(condition|state)": {
		line("1", "host", "calm", "device", "1", "condition", "memory_full"),
		line("1", "host", "hot", "device", "0", "condition", "throttled"), line("1", "host", "hot", "device", "0", "condition", "slow_link"),
		line("1", "host", "calm", "device", "0", "state", "ok"), line("1", "host", "calm", "device", "1", "state", "ok"),
		line("1", "host", "hot", "device", "0", "state", "ok"),
		line("1", "host", "ill", "device", "10", "state", "ok"), line("1", "host", "ill", "device", "2", "state", "hung"),
		line("1", "host", "ill", "device", "3", "state", "of-the-future"),
	},
	"min by (host) (tenstorrent_asic_temperature_celsius)": {line("40", "host", "calm"), line("90", "host", "hot"), line("NaN", "host", "ill")},
	"max by (host) (tenstorrent_asic_temperature_celsius)": {line("40", "host", "calm"), line("90", "host", "hot")},
	"max by (host, device) (tenstorrent_asic_temperature": {
		line("40", "host", "calm", "device", "0"), line("NaN", "host", "calm", "device", "1"), line("90", "host", "hot", "device", "0"),
		line("50", "host", "unasked", "device", "0"),
	},
	"sum by (host) (tenstorrent_core_power":                {line("100", "host", "calm"), line("50", "host", "hot")},
	"count by (host) (tenstorrent_core_power":              {line("1", "host", "calm"), line("1", "host", "hot")},
	"max by (host, device) (tenstorrent_memory_used_bytes": {line("1073741824", "host", "calm", "device", "0")},
	"max by (host, device) (tenstorrent_memory_used_bound": {line("1", "host", "calm", "device", "0")},
	"ALERTS":                           {line("2", "host", "hot", "alertname", "Hot", "severity", "warning"), line("1", "host", "", "alertname", "Other", "severity", "info")},
	"(tenstorrent_workload_processes)": {line("1", "host", "calm", "slurm_job", "4711"), line("1", "host", "calm", "namespace", "ml", "pod", "serve-0")},
	"(tenstorrent_process_memory":      {line("1", "host", "hot", "user", "anna")},
	"count by (host, instance)":        {line("1", "host", "calm", "instance", "calm:9108"), line("1", "host", "hot", "instance", `x"><script>:1`)},
}

func TestFleet(t *testing.T) {
	url, _, _ := serve(t, three)
	status, a, text := get(t, url)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, text)
	}
	var names []string
	for _, h := range a.Hosts {
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "ill hot calm" {
		t.Fatalf("worst first it is %s", got)
	}
	ill, hot, calm := a.Hosts[0], a.Hosts[1], a.Hosts[2]
	if ill.Level != "critical" || !strings.HasPrefix(ill.Reason, "1 hung") || ill.Hottest != nil || ill.Devices != 3 {
		t.Errorf("ill: %s", text)
	}
	if hot.Level != "warning" || hot.Reason != "1 throttled, 2 × Hot" || *hot.Hottest != 90 {
		t.Errorf("hot: %s", text)
	}
	if calm.Reason != "" || *calm.Power != 100 || calm.PowerBound != 1 || hot.PowerBound != 0 || calm.Used != nil {
		t.Errorf("the power of calm is known of one of its two devices, its memory of none: %s", text)
	}
	if *a.Range[0] != 40 || *a.Range[1] != 90 {
		t.Errorf("the scale: %s", text)
	}
	if *a.Total.Power != 150 || a.Total.PowerBound != 1 || a.Total.Devices != 6 || *a.Total.Hottest != 90 {
		t.Errorf("all hosts: %s", text)
	}
	if calm.Address != "http://calm:9108/" || hot.Address != "" {
		t.Errorf("addresses %q, %q", calm.Address, hot.Address)
	}
	if hot.Alerts != 2 || len(a.Alerts) != 1 || a.Chips["ok"] != 3 || a.Chips["hung"] != 1 || a.Chips["throttled"] != 1 {
		t.Errorf("alerts and chips: %s", text)
	}
	if got := strings.Join(calm.Jobs, ", "); got != "slurm 4711, pod serve-0, namespace ml" {
		t.Errorf("jobs: %s", got)
	}
	if got := strings.Join(hot.Jobs, ", "); got != "user anna" {
		t.Errorf("users: %s", got)
	}
}

// cellsOf asks for the devices of hosts.
func cellsOf(t *testing.T, url string) (c answer.Cells, text string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %v\n%s", r.StatusCode, err, b)
	}
	return c, string(b)
}

func TestCells(t *testing.T) {
	url, _, _ := serve(t, three)
	texts, levels, marks := answer.Named()
	seen := map[string]string{}
	for i, mark := range marks { // the page draws these: it has no list of its own
		if mark == "?" && texts[i] != "unknown" || seen[mark] != "" {
			t.Errorf("the sign of %s is %q, as that of %q", texts[i], mark, seen[mark])
		}
		seen[mark] = texts[i]
	}
	c, text := cellsOf(t, url+"/cells?host=ill&host=hot&host=calm&host=nowhere")
	if len(c.Hosts) != 4 || len(c.Hosts["nowhere"]) != 0 || c.Hosts["unasked"] != nil {
		t.Fatalf("hosts: %s", text)
	}
	ill, hot, calm := c.Hosts["ill"], c.Hosts["hot"], c.Hosts["calm"]
	if *ill[0][0] != 2 || *ill[2][0] != 10 || texts[int(*ill[0][1])] != "hung" || texts[int(*ill[1][1])] != "unknown" {
		t.Errorf("cells of ill: %s", text)
	}
	if state := int(*hot[0][1]); texts[state] != "throttled" || levels[state] != "warning" {
		t.Errorf("a device is in its worst state: %s", text)
	}
	if *calm[0][2] != 40 || calm[1][2] != nil || calm[0][3] != nil {
		t.Errorf("what is no number is not 0, and a temperature has no bound: %s", text)
	}
	c, text = cellsOf(t, url+"/cells?metric=memory.used&host=calm")
	if calm := c.Hosts["calm"]; *calm[0][2] != 1024 || *calm[0][3] != 1 || c.Unit != "MiB" {
		t.Errorf("1 GiB, at least: %s", text)
	}
	many := strings.Builder{}
	for i := range MaxCells + 1 {
		fmt.Fprintf(&many, "&host=h%d", i)
	}
	for _, q := range []string{"", many.String()} {
		if status, _, text := get(t, url+"/cells?metric=power.draw"+q); status != http.StatusBadRequest {
			t.Errorf("%d: %s", status, text)
		}
	}
}

// The engine is asked once for all who come within a few seconds.
func TestAskedOnce(t *testing.T) {
	url, asked, _ := serve(t, three)
	get(t, url)
	n := asked.Load()
	for range 5 {
		get(t, url)
	}
	if asked.Load() != n {
		t.Errorf("asked %d times for the first, %d for all", n, asked.Load())
	}
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "gzip")
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := gzip.NewReader(answer.Body); err != nil || answer.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("packed: %v", err)
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	url, _, broken := serve(t, three)
	if status, _, text := get(t, url+"?metric=board.type"); status != http.StatusBadRequest || !strings.Contains(text, "board.type") {
		t.Errorf("a metric without a history: %d %s", status, text)
	}
	broken.Store(true)
	if status, _, text := get(t, url); status != http.StatusBadGateway || !strings.Contains(text, "out of memory") {
		t.Errorf("a broken engine: %d %s", status, text)
	}
	empty, _, _ := serve(t, nil)
	if status, _, text := get(t, empty); status != http.StatusBadGateway || !strings.Contains(text, "tenstorrent_devices") {
		t.Errorf("an engine without ttmond: %d %s", status, text)
	}
	if _, err := New(Options{Label: `a"b`}); err == nil {
		t.Error("a label with a quote is taken")
	}
}

// The way to a host's own page is what the template says, and never anything
// that labels alone make up.
func TestNodeURL(t *testing.T) {
	for page, want := range map[string]string{
		"":                                "http://calm:9108/",
		"https://{host}:9108/":            "https://calm:9108/",
		"https://{instance}/":             "https://calm:9108/",
		"https://gate.example/go/{host}/": "https://gate.example/go/calm/",
	} {
		t.Run(page, func(t *testing.T) {
			url, _, _ := serve(t, three, page)
			_, a, _ := get(t, url)
			byName := map[string]string{}
			for _, h := range a.Hosts {
				byName[h.Name] = h.Address
			}
			if byName["calm"] != want {
				t.Errorf("%q makes %q, want %q", page, byName["calm"], want)
			}
			if strings.Contains(byName["hot"], "script") {
				t.Errorf("%q makes %q", page, byName["hot"])
			}
		})
	}
	for _, bad := range []string{"{instance}", "javascript:{host}", "https://one.example/", "ftp://{host}/", "https://"} {
		if _, err := New(Options{Page: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestAnswersAreHarmless: a name that a host of the fleet chose, and what a caller asked
// for, do nothing to a terminal.
func TestAnswersAreHarmless(t *testing.T) {
	series := map[string][]string{}
	for part, lines := range three {
		for _, l := range lines {
			series[part] = append(series[part], strings.ReplaceAll(l, `"host":"`, `"host":"\u202e\u009b`))
		}
	}
	fleet, _, _ := serve(t, series)
	for _, address := range []string{fleet, fleet + "?metric=" + url.QueryEscape("\u202e\u009b")} {
		if _, _, text := get(t, address); strings.ContainsAny(text, "\u202e\u009b") || !strings.Contains(text, `\u202e`) {
			t.Errorf("%.300q", text)
		}
	}
}
