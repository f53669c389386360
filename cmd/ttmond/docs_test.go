package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The page about ttmond knows every flag and every call.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile("../../docs/ttmond.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	command().Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "verbose" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("--%s is not on the page", f.Name)
		}
	})
	h := newHost(t)
	h.start()
	for _, call := range h.tree("/v1/version")["calls"].([]any) {
		if !strings.Contains(page, call.(string)) {
			t.Errorf("%s is not on the page", call)
		}
	}
}
