package hermetic

import "testing"

func TestMapped(t *testing.T) {
	for ids, want := range map[string]bool{
		"         0          0 4294967295\n":                           true,  // a host
		"      1000       1000          1\n":                           false, // a namespace of an ordinary user
		"         0       1000          1\n":                           false,
		"         0       1000          1\n         1 100000  65536\n": true, // a container without root
		"         0       1000          1\n         1 100000  65533\n": false,
		"": false,
	} {
		t.Run(ids, func(t *testing.T) {
			if got := mapped(ids, otherUser); got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}
