package supply

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	"golang.org/x/vuln/scan"
)

// ErrNoDatabase says that there is no database of vulnerabilities.
var ErrNoDatabase = errors.New("no database of known vulnerabilities: 'make vulns' tries to download it, " +
	"or set LACUNA_VULNDB to a folder of OSV files or to https://vuln.go.dev")

// Module golang.org/x/vulndb carries the database; this is the version of it
// that is used, which 'make vulndb' moves on.
//
//go:embed vulndb.version
var databaseVersion string

//go:embed exceptions.txt
var exceptionsText string

//go:embed floors.txt
var floorsText string

// Database returns the address of the database: the folder or URL that is named
// where one is, else the one in the module cache, else ErrNoDatabase. It does
// not touch the network.
func Database(named string, sources Sources) (string, error) {
	if strings.Contains(named, "://") {
		return named, nil
	}
	folder := named
	if folder == "" {
		dir, err := sources.Dir(Module{Path: "golang.org/x/vulndb", Version: strings.TrimSpace(databaseVersion)})
		if err != nil {
			return "", err
		}
		folder = filepath.Join(dir, "data", "osv")
		if _, err := os.Stat(folder); err != nil {
			return "", ErrNoDatabase
		}
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("database of vulnerabilities: %w", err)
	}
	return "file://" + filepath.ToSlash(folder), nil
}

// A Finding is a known vulnerability of a package that is linked in.
type Finding struct{ ID, Summary, Module, Version, Package, Fixed string }

// Vulnerabilities looks the program's packages, and the standard library it was
// built with, up in a database, by means of govulncheck. A vulnerability of a
// module whose affected packages are not linked in is left out.
func Vulnerabilities(ctx context.Context, program, database string) ([]Finding, error) {
	var out, complaints bytes.Buffer
	cmd := scan.Command(ctx, "-db", database, "-mode", "binary", "-scan", "package", "-format", "json", program)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(""), &out, &complaints
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("look for vulnerabilities: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("look for vulnerabilities in %s: %w: %s", database, err, complaints.String())
	}
	return readFindings(&out)
}

// readFindings reads the output of govulncheck: a stream of objects with one of
// many fields each.
func readFindings(out io.Reader) ([]Finding, error) {
	var message struct {
		OSV     *struct{ ID, Summary string }
		Finding *struct {
			OSV   string
			Fixed string `json:"fixed_version"`
			Trace []struct{ Module, Version, Package string }
		}
	}
	summaries := make(map[string]string)
	var found []Finding
	for decoder := json.NewDecoder(out); ; {
		message.OSV, message.Finding = nil, nil
		err := decoder.Decode(&message)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read findings: %w", err)
		}
		if message.OSV != nil {
			summaries[message.OSV.ID] = message.OSV.Summary
		}
		if f := message.Finding; f != nil && len(f.Trace) > 0 && f.Trace[0].Package != "" {
			at := f.Trace[0]
			found = append(found, Finding{ID: f.OSV, Module: at.Module, Version: at.Version, Package: at.Package, Fixed: f.Fixed})
		}
	}
	for i := range found {
		found[i].Summary = summaries[found[i].ID]
	}
	return found, nil
}

// Exceptions returns the vulnerabilities that may stay, with the reason.
func Exceptions() (map[string]string, error) { return readExceptions(exceptionsText) }

func readExceptions(text string) (map[string]string, error) {
	reasons := make(map[string]string)
	for _, words := range rows(text) {
		if len(words) < 3 {
			return nil, fmt.Errorf("exception %q: want ID DATE REASON", strings.Join(words, " "))
		}
		if _, err := time.Parse(time.DateOnly, words[1]); err != nil {
			return nil, fmt.Errorf("exception %s: when was it looked at? %w", words[0], err)
		}
		reasons[words[0]] = strings.Join(words[2:], " ")
	}
	return reasons, nil
}

// Judge returns a sentence for each finding that is no exception, and for each
// exception without a finding.
func Judge(found []Finding, exceptions map[string]string) []string {
	var faults []string
	for _, f := range found {
		if _, ok := exceptions[f.ID]; ok {
			continue
		}
		todo := "no version mends it: stop using it, or say in ops/supply/exceptions.txt why it may stay"
		if f.Fixed != "" {
			todo = "mended in " + f.Fixed
		}
		faults = append(faults, fmt.Sprintf("%s: %s: package %s of %s %s: %s", f.ID, f.Summary, f.Package, f.Module, f.Version, todo))
	}
	for id := range exceptions {
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.ID == id }) {
			faults = append(faults, id+": is an exception and no longer found: take it out of ops/supply/exceptions.txt")
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// BelowFloors returns a sentence for each module of the program that is older
// than it may be, and for each floor under no module.
func BelowFloors(p Program) ([]string, error) { return below(p, floorsText) }

func below(p Program, floors string) ([]string, error) {
	var faults []string
	for _, words := range rows(floors) {
		if len(words) < 4 || (words[0] == std && !version.IsValid(words[1])) || (words[0] != std && !semver.IsValid(words[1])) {
			return nil, fmt.Errorf("floor %q: want MODULE VERSION ID REASON", strings.Join(words, " "))
		}
		at := slices.IndexFunc(p.Modules, func(m Module) bool { return m.Path == words[0] })
		switch {
		case at < 0:
			faults = append(faults, words[0]+": is no longer linked in: take it out of ops/supply/floors.txt")
		case older(p.Modules[at], words[1]):
			faults = append(faults, fmt.Sprintf("%s %s: older than %s, %s: %s", words[0], p.Modules[at].Version, words[1], words[2], strings.Join(words[3:], " ")))
		}
	}
	return faults, nil
}

func older(m Module, floor string) bool {
	if m.Path == std {
		return version.Compare(m.Version, floor) < 0
	}
	return semver.Compare(m.Version, floor) < 0
}

// rows returns the words of each line that is neither empty nor a comment.
func rows(text string) [][]string {
	var all [][]string
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			all = append(all, words)
		}
	}
	return all
}
