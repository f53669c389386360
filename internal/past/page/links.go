package page

import (
	"net/http"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/pagejson"
)

// describedLinks are the links in the answer about the topology: those that the snapshot
// has, and others that UMD has described.
type describedLinks struct {
	Links []struct {
		From port `json:"from"`
		To   port `json:"to"`
	} `json:"links"`
	Outside []struct {
		From   port    `json:"from"`
		Remote *remote `json:"remote"`
	} `json:"outside_links"`
}

type port struct {
	Device  int    `json:"index"`
	Chip    string `json:"chip"`
	Channel int    `json:"channel"`
}

func (p port) end() model.Port {
	return model.Port{ChipPlace: model.ChipPlace{Device: p.Device, Name: p.Chip}, Channel: p.Channel}
}

type remote struct {
	Own     uint64 `json:"own_chip_id,string"`
	Chip    uint64 `json:"chip_id,string"`
	Channel int    `json:"channel"`
}

// topology is what the links of an answer say of it. What is known of them is in the
// snapshot.
func (d *describedLinks) topology() *model.Topology {
	t := new(model.Topology)
	for _, l := range d.Links {
		t.Links = append(t.Links, model.Ethernet{From: l.From.end(), To: l.To.end()})
	}
	for _, l := range d.Outside {
		x := model.OutsideLink{From: l.From.end()}
		if l.Remote != nil {
			x.Remote = model.RemotePort{Own: l.Remote.Own, Chip: l.Remote.Chip, Channel: l.Remote.Channel}
		}
		t.Outside = append(t.Outside, x)
	}
	return t
}

// links answers with all Ethernet links as the page shows them, those that UMD found
// between chips that are not read among them.
func (s calls) links(w http.ResponseWriter, r *http.Request) {
	snap := s.Latest()
	if snap == nil {
		api.Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return
	}
	reply := s.Ask(r, "/v1/topology", nil)
	if !reply.OK(w) {
		return
	}
	var described describedLinks
	if err := reply.Decode(&described); err != nil {
		api.Fail(w, http.StatusInternalServerError, "reading the topology: %v", err)
		return
	}
	api.Answer(w, http.StatusOK, pagejson.LinkTable(snap, described.topology()))
}
