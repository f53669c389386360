package metaltrace

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// table reads lines whose columns are named.
type table struct {
	*lines
	columns map[string]int
	count   int
	row     []string
}

// newTable finds the columns. Those that must be there are named.
func newTable(in *lines, columns []string, must ...string) (*table, error) {
	t := &table{lines: in, columns: map[string]int{}, count: len(columns)}
	for i, c := range columns {
		t.columns[c] = i
	}
	for _, name := range must {
		if _, ok := t.columns[name]; !ok {
			return nil, in.bad("there is no column %q: the file is of another version of tt-metal", name)
		}
	}
	return t, nil
}

// read takes the next line apart; ok is false at the end.
func (t *table) read() (ok bool, err error) {
	line, ok := t.next()
	if !ok {
		if err := t.s.Err(); err != nil {
			t.n++
			return false, t.bad("%v", err)
		}
		return false, nil
	}
	if t.row, err = fields(line); err != nil {
		return false, t.bad("%v", err)
	}
	// The last columns are left out where they are empty, and those with free
	// text may have commas of their own: both come last.
	if len(t.row) < t.count-2 {
		return false, t.bad("it has %d columns, and %d are named", len(t.row), t.count)
	}
	return true, nil
}

func (t *table) text(name string) string {
	if i, ok := t.columns[name]; ok && i < len(t.row) {
		return t.row[i]
	}
	return ""
}

func (t *table) int(name string) (int64, error) {
	s := t.text(name)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		if f, ferr := strconv.ParseFloat(s, 64); ferr == nil && math.Abs(f) < 1<<62 { // spreadsheets write 1.0
			return int64(f), nil
		}
		return 0, t.bad("%s is %.40q, and no number", name, s)
	}
	return n, nil
}

var errQuote = errors.New("a quotation that does not end")

// fields takes a line of CSV apart; spaces around fields do not count.
func fields(line []byte) (out []string, err error) {
	rest := string(line)
	for {
		rest = strings.TrimLeft(rest, " \t")
		if !strings.HasPrefix(rest, `"`) {
			field, more, found := strings.Cut(rest, ",")
			out = append(out, strings.TrimSpace(field))
			if !found {
				return out, nil
			}
			rest = more
			continue
		}
		var b strings.Builder
		rest = rest[1:]
		for {
			part, more, found := strings.Cut(rest, `"`)
			if !found {
				return nil, errQuote
			}
			b.WriteString(part)
			if rest = more; !strings.HasPrefix(rest, `"`) {
				break
			}
			b.WriteByte('"')
			rest = rest[1:]
		}
		out = append(out, b.String())
		_, more, found := strings.Cut(rest, ",")
		if !found {
			return out, nil
		}
		rest = more
	}
}
