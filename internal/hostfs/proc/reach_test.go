package proc

import (
	"fmt"
	"testing"
)

func TestTTYName(t *testing.T) {
	for number, want := range map[uint64]string{
		0: "", 136 << 8: "pts/0", 136<<8 | 3: "pts/3", 137<<8 | 1: "pts/257", 4<<8 | 1: "tty1", 4<<8 | 64: "ttyS0", 5 << 8: "",
		136<<8 | 0x100<<12: "pts/256",
	} {
		t.Run(fmt.Sprint(number), func(t *testing.T) {
			if got := ttyName(number); got != want {
				t.Errorf("%d is %q, want %q", number, got, want)
			}
		})
	}
}

func TestSSHFrom(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "10.1.2.3 4711 10.0.0.1 22": "10.1.2.3", "fe80::1%eth0 1 ::1 22": "fe80::1", "evil\x1b[2J 1 2 3": "", "10.1.2.3": "10.1.2.3",
	} {
		t.Run(text, func(t *testing.T) {
			if got := sshFrom(text); got != want {
				t.Errorf("%q is %q, want %q", text, got, want)
			}
		})
	}
}

func TestFullName(t *testing.T) {
	u := userNames{file: []byte("root:x:0:0:root:/root:/bin/sh\nanna:x:1000:1000:Anna Smith,Room 5,,:/home/anna:/bin/sh\nben:x:1001:1001::/home/ben:/bin/sh\nshort:x:1002\n")}
	for uid, want := range map[int]string{0: "root", 1000: "Anna Smith", 1001: "", 1002: "", 7: ""} {
		t.Run(fmt.Sprint(uid), func(t *testing.T) {
			if got := u.fullName(uid); got != want {
				t.Errorf("%d is %q, want %q", uid, got, want)
			}
		})
	}
}
