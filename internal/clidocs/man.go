package clidocs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// man is the manual page of a command. There is no date in it: it is made from
// the program, and would differ every day.
func man(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	name := fileName(cmd)
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"ttmon\" \"User Commands\"\n", roff(strings.ToUpper(name)))
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
	manCommands(&b, cmd)
	return b.Bytes()
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

func manCommands(b *bytes.Buffer, cmd *cobra.Command) {
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
		also[i] = ".BR " + roff(also[i]) + " (1)"
	}
	if len(also) > 0 {
		fmt.Fprintf(b, ".SH SEE ALSO\n%s\n", strings.Join(also, ",\n"))
	}
}

// roff escapes what the formatter would take for its own.
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
