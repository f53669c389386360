package clidocs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Manual is what manual pages have beside the tree of commands. The zero Manual
// is right for programs of users.
type Manual struct {
	Number   string // of the section; empty: 1
	Sections func(*cobra.Command) []Section
}

// Section is a part of a manual page: prose, then a list.
type Section struct {
	Title string // "FILES"
	Prose string
	Terms []Term
}

// Term is an entry of a list.
type Term struct{ Name, Meaning string }

func (m Manual) number() string {
	if m.Number == "" {
		return "1"
	}
	return m.Number
}

// page is the manual page of a command. There is no date in it: it is made from
// the program, and would differ every day.
func (m Manual) page(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := fileName(cmd)
	kind := "User Commands"
	if m.number() == "8" {
		kind = "System Administration"
	}
	fmt.Fprintf(&b, ".TH %s %s \"\" \"ttmon\" \"%s\"\n", roff(strings.ToUpper(name)), m.number(), kind)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(strings.ToLower(cmd.Short[:1])+cmd.Short[1:]))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	prose(&b, cmd.Long)
	if cmd.Long == "" {
		fmt.Fprintln(&b, roff(sentence(cmd.Short)))
	}
	manOptions(&b, cmd)
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(example(cmd)))
	}
	if m.Sections != nil {
		for _, s := range m.Sections(cmd) {
			s.write(&b)
		}
	}
	m.commands(&b, cmd)
	return b.Bytes()
}

func (s *Section) write(b *bytes.Buffer) {
	fmt.Fprintf(b, ".SH %s\n", roff(s.Title))
	prose(b, s.Prose)
	for _, t := range s.Terms {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR\n%s\n", roff(t.Name), roff(t.Meaning))
	}
}

// prose writes a help text: paragraphs, and indented lines as they are.
func prose(b *bytes.Buffer, text string) {
	if text == "" {
		return
	}
	for i, part := range blocks(text) {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		if part.code {
			fmt.Fprintf(b, ".nf\n.RS\n%s\n.RE\n.fi\n", roff(strings.Join(part.lines, "\n")))
			continue
		}
		for _, line := range part.lines {
			if line == "" {
				b.WriteString(".PP\n")
				continue
			}
			fmt.Fprintln(b, roff(line))
		}
	}
}

func manOptions(b *bytes.Buffer, cmd *cobra.Command) {
	list := append(options(cmd.NonInheritedFlags()), options(cmd.InheritedFlags())...)
	if len(list) > 0 {
		b.WriteString(".SH OPTIONS\n")
	}
	for _, o := range list {
		b.WriteString(".TP\n")
		if o.short != "" {
			fmt.Fprintf(b, "\\fB\\-%s\\fR, ", o.short)
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", roff(o.long))
		if o.value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(o.value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(o.meaning))
	}
}

func (m Manual) commands(b *bytes.Buffer, cmd *cobra.Command) {
	var also []string
	if cmd.HasParent() {
		also = append(also, fileName(cmd.Parent()))
	}
	head := false
	for _, c := range available(cmd) {
		if !isSection(c) {
			also = append(also, fileName(c))
			continue
		}
		if !head {
			b.WriteString(".SH COMMANDS\n")
			head = true
		}
		fmt.Fprintf(b, ".SS %s\n", roff(c.UseLine()))
		if c.Long == "" {
			fmt.Fprintln(b, roff(sentence(c.Short)))
		}
		prose(b, c.Long)
	}
	for i := range also {
		also[i] = ".BR " + roff(also[i]) + " (" + m.number() + ")"
	}
	if len(also) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(also, ",\n"))
	}
}

// roff escapes what the formatter would interpret.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "…", `...`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
