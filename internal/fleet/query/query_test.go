package query

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// A state that this ttmon does not know counts, as unknown: a newer ttmond may have
// written it, or somebody whose label is meant for a terminal.
func TestFleetStates(t *testing.T) {
	label := "state"
	series := func(device int, state string) string {
		return fmt.Sprintf(`{"metric":{"host":"a","device":"%d","pci":"%d",%q:%q},"value":[1,"1"]}`, device, device, label, state)
	}
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []string
		if query := r.FormValue("query"); strings.Contains(query, "state") {
			label = "state"
			if strings.Contains(query, "devices_in_condition") { // the answer is by condition, whoever is asked
				label = "condition"
			}
			list = []string{series(0, "ok"), series(1, "of-the-future"), series(2, "hung"), series(3, "\u202e[2J")}
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
	if table := string(text.AppendFleet(nil, *f, 10)); !strings.Contains(table, "■?H?") {
		t.Errorf("not a cell for each device:\n%s", table)
	}
	h, err := q.Host("a")
	if err != nil {
		t.Fatal(err)
	}
	if page := string(text.AppendFleetHost(nil, h)); strings.Contains(page, "[2J") || strings.Count(page, "unknown") != 3 {
		t.Errorf("what is no state is shown:\n%q", page)
	}
}
