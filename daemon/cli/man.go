package cli

import (
	"fmt"
	"io"
	"strings"

	"lacuna/daemon/version"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand prints the manual page. It is made from the same texts as --help,
// so the two cannot disagree; the package build calls it.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man", Short: "print the manual page in roff", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return writeManual(c.OutOrStdout(), c.Root()) },
	}
}

// writeManual writes lacuna(1).
func writeManual(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH LACUNA 1 \"\" \"lacuna %s\" \"User Commands\"\n", roff(version.String()))
	fmt.Fprintf(&b, ".SH NAME\nlacuna \\- %s\n", roff(root.Short))
	b.WriteString(".SH SYNOPSIS\n.B lacuna\n.I COMMAND\n[\\fIOPTION\\fR]...\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", paragraphs(root.Long))
	b.WriteString(".SH COMMANDS\n")
	for _, c := range root.Commands() {
		describe(&b, c, "lacuna")
	}
	b.WriteString(`.SH FILES
.TP
.I /etc/lacuna/lacuna.yaml
The configuration of the service; every key stands in it at its default.
.TP
.I /etc/lacuna/credentials
Secrets, one file each, readable by root only.
.TP
.I /var/lib/lacuna
Ledger, spool, products and models.
`)
	_, err := io.WriteString(w, b.String())
	return err
}

// describe writes the section of a command and of those below it.
func describe(b *strings.Builder, c *cobra.Command, parent string) {
	if c.Hidden || !c.IsAvailableCommand() || c.Name() == "help" || c.Name() == "completion" {
		return
	}
	fmt.Fprintf(b, ".SS %s %s\n", roff(parent), roff(c.Use))
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "%s\n", paragraphs(text))
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR \\fI%s\\fR\n%s", roff(name), roff(value), roff(usage))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
			fmt.Fprintf(b, " (default %s)", roff(f.DefValue))
		}
		b.WriteString("\n")
	})
	if c.Example != "" {
		fmt.Fprintf(b, ".PP\n.nf\n%s\n.fi\n", roff(c.Example))
	}
	for _, sub := range c.Commands() {
		describe(b, sub, parent+" "+c.Name())
	}
}

func paragraphs(text string) string {
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n")
}

// roff keeps text from being read as markup.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
