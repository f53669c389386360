package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/text"
)

// A state that this ttmon does not know counts, as unknown: a newer ttmond may have
// written it, or an attacker whose label is meant for a terminal.
func TestFleetStates(t *testing.T) {
	series := func(label string, device int, state string) string {
		return fmt.Sprintf(`{"metric":{"host":"a","device":"%d","pci":"%d",%q:%q},"value":[1,"1"]}`, device, device, label, state)
	}
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []string
		if query := r.FormValue("query"); strings.Contains(query, "state") {
			label := "state"
			if strings.Contains(query, "devices_in_condition") { // the answer is by condition in both cases
				label = "condition"
			}
			list = []string{series(label, 0, "ok"), series(label, 1, "of-the-future"), series(label, 2, "hung"), series(label, 3, "\u202e[2J")}
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(list, ","))
	}))
	defer engine.Close()
	p, err := client.NewPrometheus(engine.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	q, err := New(t.Context(), p, "host")
	if err != nil {
		t.Fatal(err)
	}
	f, err := q.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Hosts) != 1 || f.Hosts[0].Chips.Count() != 4 || f.Hosts[0].Chips[model.ConditionUnknown] != 2 {
		t.Fatalf("hosts %+v", f.Hosts)
	}
	if err := q.Cells(f.Hosts); err != nil {
		t.Fatal(err)
	}
	if table := string(text.AppendFleet(nil, *f, time.Now(), 10)); !strings.Contains(table, "■?H?") {
		t.Errorf("not a cell for each device:\n%s", table)
	}
	h, err := q.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	if page := string(text.AppendFleetHost(nil, h, time.Now())); strings.Contains(page, "[2J") || strings.Count(page, "unknown") != 3 {
		t.Errorf("what is no state is shown:\n%q", page)
	}
}

// How busy a host is, is the mean of its devices; those that do not report make
// it a lower bound, and where none does it is not known.
func TestFleetBusy(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []string
		add := func(host, more, v string) {
			list = append(list, fmt.Sprintf(`{"metric":{"host":%q%s},"value":[1,%q]}`, host, more, v))
		}
		switch query := r.FormValue("query"); {
		case strings.Contains(query, "devices_in_condition"):
			add("half", `,"condition":"ok"`, "2")
			add("none", `,"condition":"ok"`, "2")
			add("whole", `,"condition":"ok"`, "2")
		case strings.HasPrefix(query, "count") && strings.Contains(query, "busy_ratio"):
			add("half", "", "1")
			add("whole", "", "2")
		case strings.HasPrefix(query, "tenstorrent_device_info"):
			add("half", `,"device":"0","pci":"0"`, "1")
			add("half", `,"device":"1","pci":"1"`, "1")
		case strings.HasPrefix(query, "tenstorrent_busy_ratio"):
			add("half", `,"device":"0","pci":"0"`, "0.9")
		case strings.Contains(query, "busy_ratio"):
			add("half", "", "0.9")
			add("whole", "", "1.5")
		case strings.HasPrefix(query, "max") && strings.Contains(query, "busy_bound"):
			add("whole", "", "0")
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(list, ","))
	}))
	defer engine.Close()
	p, err := client.NewPrometheus(engine.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	q, err := New(t.Context(), p, "host")
	if err != nil {
		t.Fatal(err)
	}
	f, err := q.Fleet()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, h := range f.Hosts {
		got[h.Name] = sums.BusyText(h.Busy, h.BusyBound)
	}
	if got["half"] != "≥45 %" || got["none"] != "–" || got["whole"] != "75 %" {
		t.Errorf("busy: %v", got)
	}
	total := f.Total()
	if got := sums.BusyText(total.Busy, total.BusyBound); got != "≥40 %" {
		t.Errorf("all hosts are %s busy", got)
	}
	h, err := q.Host("half")
	if err != nil {
		t.Fatal(err)
	}
	if one, two := sums.BusyText(h.States[0].Busy, h.States[0].BusyBound), sums.BusyText(h.States[1].Busy, h.States[1].BusyBound); one != "90 %" || two != "–" {
		t.Errorf("devices are %s and %s busy", one, two)
	}
	if got := sums.BusyText(h.Busy, h.BusyBound); got != "≥45 %" {
		t.Errorf("the host alone is %s busy", got)
	}
}
