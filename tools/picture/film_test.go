package main

import "testing"

// The script of the README's film has only steps that there are.
func TestFilmScript(t *testing.T) {
	steps, err := readFilm("first-look.film")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := parseHost(steps[0]); err != nil {
		t.Error(err)
	}
	for _, s := range steps[1:] {
		if !knownVerb(s.verb) {
			t.Errorf("there is no step %s", s.verb)
		}
	}
}
