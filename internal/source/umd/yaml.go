package umd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a scalar, a map (keys, items) or a sequence (items). Scalars stay
// text: ids need all 64 bits, and bus addresses look like numbers.
type node struct {
	kind  nodeKind
	line  int
	text  string
	plain bool // text was not quoted
	keys  []string
	items []node
}

type nodeKind uint8

const (
	scalar nodeKind = iota
	mapping
	sequence
)

// maxDepth is far above what descriptors nest (5).
const maxDepth = 32

type yamlError struct {
	line int
	what string
}

func (e *yamlError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

// parseYAML reads the first document of a file.
func parseYAML(src []byte) (node, error) {
	var doc yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(src)).Decode(&doc)
	switch {
	case errors.Is(err, io.EOF), err == nil && len(doc.Content) == 0:
		return node{}, errors.New("the file is empty")
	case err != nil:
		return node{}, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	return convert(doc.Content[0], 0)
}

// convert converts the node kinds that descriptors use, and rejects the rest: a
// file with a duplicate key, or an alias to itself, was not written by UMD.
func convert(from *yaml.Node, depth int) (n node, err error) {
	n = node{line: from.Line}
	if depth++; depth > maxDepth {
		return n, &yamlError{from.Line, "nested too deeply"}
	}
	switch from.Kind {
	case yaml.ScalarNode:
		n.text, n.plain = from.Value, from.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0
		return n, nil
	case yaml.SequenceNode:
		n.kind = sequence
	case yaml.MappingNode:
		n.kind = mapping
	default:
		return n, &yamlError{from.Line, "an alias, which cluster descriptors do not have"}
	}
	seen := map[string]bool{}
	for i, child := range from.Content {
		if n.kind == mapping && i%2 == 0 {
			switch {
			case child.Kind != yaml.ScalarNode:
				return n, &yamlError{child.Line, "a key that is not a word or a number"}
			case seen[child.Value]:
				return n, &yamlError{child.Line, fmt.Sprintf("key %q is there twice", child.Value)}
			}
			seen[child.Value] = true
			n.keys = append(n.keys, child.Value)
			continue
		}
		item, err := convert(child, depth)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	return n, nil
}
