package client

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page of a ttmon-server is not its Prometheus API: the error says where that is,
// without the password.
func TestPrometheusElsewhere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for path, hint := range map[string]bool{"": true, "/ttmon/": true, "/prometheus": false} {
		t.Run("at "+path, func(t *testing.T) {
			p, err := NewPrometheus(strings.Replace(s.URL, "://", "://anna:secret@", 1)+path, "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Query(t.Context(), "up")
			want := s.URL + strings.TrimSuffix(path, "/") + "/prometheus"
			if err == nil || strings.Contains(err.Error(), want) != hint || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v", err)
			}
		})
	}
}
