package laws

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// rooms are the folders below internal/, in the order in which data passes through
// them, with the rooms that each may import besides itself. lib is what other programs
// use, and the layout of libttmon's ledgers.
var rooms = []struct{ name, imports string }{
	{"base", ""},
	{"model", "base"},
	{"board", "base model"},
	{"hostfs", "base model"},
	{"book", "base model hostfs lib"},
	{"source", "base model board hostfs book lib"},
	{"collect", "base model board hostfs source book lib"},
	{"field", "base model board collect lib"},
	{"view", "base model board book collect field lib"},
	{"node", "base model board hostfs source book collect field lib"},
	{"past", "base model board hostfs book collect field view node lib"},
	{"cli", "base model board hostfs source book collect field view node past lib"},
	{"lab", "base model board hostfs source book collect field view node past cli lib"},
}

// roomExceptions are imports that the table does not have, each with what would end it.
var roomExceptions = map[string]string{
	"field/story → book":         "its sentences are about a failed request, whose type is in book beside the state that it keeps",
	"node/api/client → past":     "it reads what ttmon-server answers about the past: types that belong to the model",
	"past/recorder → source":     "it records programs with libttmon where no ttmond runs",
	"past/server/local → source": "it is the view of one user where no ttmond runs",
	"view/prom → node":           "the names of the metrics about ttmond's stream",
	"view/text → past":           "which series changed",
	"view/text → cli":            "the report of ttmon selftest",
	"view/tui → hostfs":          "what a screen does on the host: signals, and what a process maps",
	"view/tui/replay → past":     "the index of a recording",
}

// TestRooms: each package imports of other rooms only what its room may, so that the
// flow of data can be read off the folders.
func TestRooms(t *testing.T) {
	may := map[string][]string{}
	for _, r := range rooms {
		may[r.name] = append(strings.Fields(r.imports), r.name)
	}
	unused := maps.Clone(roomExceptions)
	for name, p := range packages(t) {
		own, ok := strings.CutPrefix(name, "internal/")
		if !ok {
			continue
		}
		room, _, _ := strings.Cut(own, "/")
		if may[room] == nil {
			t.Errorf("%s is in no room: the folders below internal/ are rooms", name)
			continue
		}
		for _, imp := range p.Imports {
			path, ok := strings.CutPrefix(imp, module)
			if !ok {
				continue
			}
			of, _, _ := strings.Cut(strings.TrimPrefix(path, "internal/"), "/")
			if slices.Contains(may[room], of) {
				continue
			}
			pair := own + " → " + of
			if _, known := roomExceptions[pair]; !known {
				t.Errorf("%s imports %s: what is in %s may import %s", name, path, room, strings.Join(may[room], ", "))
			}
			delete(unused, pair)
		}
	}
	for pair := range unused {
		t.Errorf("%s: nothing needs this exception any more", pair)
	}
}
