package umd

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
)

// Access to nodes of a descriptor. A wrong kind is an error that names the
// line.

func (n node) null() bool {
	return n.kind == scalar && n.plain && (n.text == "" || n.text == "~" || n.text == "null")
}

// get finds a key of a map; other nodes have none.
func (n node) get(key string) (node, bool) {
	if n.kind != mapping {
		return node{line: n.line}, false
	}
	i := slices.Index(n.keys, key)
	if i < 0 {
		return node{line: n.line}, false
	}
	return n.items[i], true
}

// all iterates over a map.
func (n node) all() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		for i, k := range n.keys {
			if !yield(k, n.items[i]) {
				return
			}
		}
	}
}

// each calls f for the items of a sequence; nothing is an empty one.
func (n node) each(f func(node) error) error {
	if n.kind != sequence && !n.null() {
		return &yamlError{n.line, "want a sequence"}
	}
	for _, v := range n.items {
		if err := f(v); err != nil {
			return err
		}
	}
	return nil
}

// eachInt calls f for the entries of a map whose keys are small numbers.
func (n node) eachInt(f func(int, node) error) error {
	if n.kind != mapping {
		return &yamlError{n.line, "want a map by chip"}
	}
	for i, key := range n.keys {
		id, err := node{text: key, line: n.items[i].line}.int()
		if err != nil {
			return err
		}
		if err := f(id, n.items[i]); err != nil {
			return err
		}
	}
	return nil
}

// int is a small number: a chip, a channel, a coordinate.
func (n node) int() (int, error) {
	v, err := n.uint(31)
	return int(v), err
}

func (n node) uint(bits int) (uint64, error) {
	v, err := strconv.ParseUint(n.text, 10, bits)
	if err != nil || n.kind != scalar {
		return 0, &yamlError{n.line, fmt.Sprintf("%q is not a number of %d bits", n.text, bits)}
	}
	return v, nil
}

func (n node) end() (e End, err error) {
	chip, _ := n.get("chip")
	if e.Chip, err = chip.int(); err != nil {
		return e, fmt.Errorf("chip: %w", err)
	}
	channel, _ := n.get("chan")
	if e.Channel, err = channel.int(); err != nil {
		return e, fmt.Errorf("chan: %w", err)
	}
	return e, nil
}
