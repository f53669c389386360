package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// TestBuffersArePlaced: a reporter counts its devices itself; its buffers say
// which of the host's that is, where it is known.
func TestBuffersArePlaced(t *testing.T) {
	s := New(Options{
		Feed: new(Feed), Ledger: ledger.New(ledger.Options{}),
		Place: func(id model.ProcessID, number int) (model.ChipPlace, bool) {
			return model.ChipPlace{Device: 3, Name: "R"}, id == model.ProcessID{PID: 7, StartTicks: 9} && number == 0
		},
	})
	place := s.places(model.ProcessID{PID: 7, StartTicks: 9})
	for number, want := range map[int32]string{0: `{"index":3,"chip":"R"}`, 1: `{"index":null}`} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			b := apitype.Buffer{Device: number}
			place(&b)
			got, err := json.Marshal(struct {
				Index *int   `json:"index"`
				Chip  string `json:"chip,omitempty"`
			}{b.Index, b.Chip})
			if err != nil || string(got) != want {
				t.Errorf("its device %d: %s, want %s", number, got, want)
			}
		})
	}
	unknown := apitype.Buffer{}
	New(Options{Feed: new(Feed), Ledger: ledger.New(ledger.Options{})}).places(model.ProcessID{})(&unknown)
	if unknown.Index != nil {
		t.Errorf("placed without a snapshot: %+v", unknown)
	}
	r := httptest.NewRequest(http.MethodGet, "/v1/processes/7/buffers", nil)
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, caller{exists: true})))
	if w.Code != http.StatusNotFound {
		t.Errorf("of a process that does not report: %d %s", w.Code, w.Body)
	}
}
