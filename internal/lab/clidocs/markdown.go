package clidocs

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// markdown is the page of a command.
func markdown(cmd *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", cmd.CommandPath(), sentence(cmd.Short))
	fmt.Fprintf(&b, "```\n%s\n```\n", cmd.UseLine())
	description(&b, cmd)
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\n## Examples\n\n```\n%s\n```\n", example(cmd))
	}
	flagTable(&b, "Flags", cmd.NonInheritedFlags())
	flagTable(&b, "Global flags", cmd.InheritedFlags())
	subcommands(&b, cmd)
	return b.Bytes()
}

func description(b *bytes.Buffer, cmd *cobra.Command) {
	long := strings.TrimSpace(strings.TrimPrefix(cmd.Long, sentence(cmd.Short)))
	if long == "" {
		return
	}
	for _, part := range blocks(long) {
		text := strings.Join(part.lines, "\n")
		if part.code {
			text = "```\n" + text + "\n```"
		}
		fmt.Fprintf(b, "\n%s\n", text)
	}
}

func flagTable(b *bytes.Buffer, title string, set *pflag.FlagSet) {
	list := options(set)
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n| Flag | Meaning |\n|---|---|\n", title)
	for _, o := range list {
		name := "`" + strings.TrimSpace("--"+o.long+" "+o.value) + "`"
		if o.short != "" {
			name = "`-" + o.short + "`, " + name
		}
		fmt.Fprintf(b, "| %s | %s |\n", name, strings.ReplaceAll(o.meaning, "|", `\|`))
	}
}

// subcommands lists what is below: pages of their own as links, small ones
// here.
func subcommands(b *bytes.Buffer, cmd *cobra.Command) {
	var pages, sections bytes.Buffer
	for _, c := range available(cmd) {
		if !isSection(c) {
			fmt.Fprintf(&pages, "- [%s](%s.md): %s\n", c.CommandPath(), fileName(c), c.Short)
			continue
		}
		fmt.Fprintf(&sections, "\n### %s\n\n%s\n", c.UseLine(), sentence(c.Short))
		description(&sections, c)
	}
	if pages.Len()+sections.Len() == 0 {
		return
	}
	b.WriteString("\n## Commands\n")
	if pages.Len() > 0 {
		b.WriteString("\n" + pages.String())
	}
	b.Write(sections.Bytes())
}
