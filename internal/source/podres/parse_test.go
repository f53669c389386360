package podres

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ttmon/ttmon/internal/model"
)

// message joins fields: a number and its bytes, in turn.
func message(parts ...any) (b []byte) {
	for i := 0; i < len(parts); i += 2 {
		b = protowire.AppendTag(b, protowire.Number(parts[i].(int)), protowire.BytesType)
		switch v := parts[i+1].(type) {
		case string:
			b = protowire.AppendString(b, v)
		case []byte:
			b = protowire.AppendBytes(b, v)
		}
	}
	return b
}

func TestParse(t *testing.T) {
	plugin := message(1, "tenstorrent.com/n300", 2, "0000:01:00.0", 2, "0000:02:00.0")
	dynamic := message(2, "claim", 4, message(2, "tenstorrent.com", 3, "node1", 4, "tt-3", 1, message(1, "tenstorrent.com/card=3")))
	container := message(1, "serve", 2, plugin, 5, dynamic)
	container = protowire.AppendVarint(protowire.AppendTag(container, 3, protowire.VarintType), 7) // cpu_ids
	got, err := parseList(message(1, message(3, container, 1, "llama-0", 2, "ml"), 1, message(1, "idle", 2, "ml")))
	want := []model.PodClaim{
		{Namespace: "ml", Pod: "llama-0", Container: "serve", Resource: "tenstorrent.com/n300", Names: []string{"0000:01:00.0"}},
		{Namespace: "ml", Pod: "llama-0", Container: "serve", Resource: "tenstorrent.com/n300", Names: []string{"0000:02:00.0"}},
		{Namespace: "ml", Pod: "llama-0", Container: "serve", Resource: "tenstorrent.com", Names: []string{"tt-3", "tenstorrent.com/card=3"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, bad := range [][]byte{{0xff}, {0x0a, 5, 1}, message(1, []byte{0x0a, 9})} {
		t.Run(fmt.Sprintf("% x", bad), func(t *testing.T) {
			if _, err := parseList(bad); err == nil {
				t.Errorf("%x is read", bad)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add(message(1, message(1, "pod", 3, message(2, message(1, "r", 2, "id")))))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseList(b) })
}
