package supply

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// allowed are the licences that may be linked into a program under Apache-2.0,
// by SPDX identifier.
var allowed = map[string]bool{
	"0BSD": true, "Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "CC0-1.0": true, "ISC": true,
	"MIT": true, "Unlicense": true, "Zlib": true,
	// These ask for more than to keep their text.
	"CC-BY-4.0": true, // name the author and say what was changed
	"FTL":       true, // say in the documentation that FreeType code is used
	"MPL-2.0":   true, // publish the changes made to its files
	"OFL-1.1":   true, // do not sell the fonts by themselves
}

// decided are licence files that no classifier knows, by the sha256 of their
// text, so that a changed text is reviewed again. An empty licence covers
// nothing that is linked in.
var decided = map[string]string{
	// github.com/golang/freetype: FTL or GPL, at the user's choice.
	"d3ba056adc2b7909e95681deaae397fb37c97ed491a920f491214f07b62c41d0": "FTL",
	// github.com/ajstarks/svgo: the address of the licence beside it.
	"faef26bb83b741b22eed4593980048f1607bdc679232ca9635ccf505cf2abe77": "CC-BY-4.0",
	// modernc.org/memory: the address of a picture for its page.
	"5ae5bee3072a841376451b48d8cfcec7188e10543926d5870828d36c8a750dc5": "",
}

// licenceFile matches the names that licences have at the top of a module.
var licenceFile = regexp.MustCompile(`(?i)^(un)?licen[cs]e|^copying`)

// A Classifier names licences by their text.
type Classifier struct{ known *classifier.Classifier }

// NewClassifier loads the texts of all known licences, which takes a second.
func NewClassifier() (*Classifier, error) {
	known, err := assets.DefaultClassifier()
	if err != nil {
		return nil, fmt.Errorf("load the known licences: %w", err)
	}
	return &Classifier{known}, nil
}

// Licences returns the SPDX identifiers of the licence files in the folder of a
// module, in order. All of them hold. A file that cannot be named is an error,
// and so is a folder without one.
func (c *Classifier) Licences(dir string) ([]string, error) {
	files, err := licenceFiles(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a licence: %w", err)
		}
		names, err := c.name(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		found = append(found, names...)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// licenceFiles returns the licence files at the top of a module; none is an error.
func licenceFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for a licence (is the module in the cache? 'go mod download' fetches it): %w", err)
	}
	var files []string
	for _, entry := range entries {
		if !entry.IsDir() && licenceFile.MatchString(entry.Name()) {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no licence file")
	}
	return files, nil
}

// name returns the licences of a text.
func (c *Classifier) name(text []byte) ([]string, error) {
	sum := sha256.Sum256(text)
	if name, ok := decided[hex.EncodeToString(sum[:])]; ok {
		return strings.Fields(name), nil
	}
	var names []string
	for _, match := range c.known.Match(text).Matches {
		if match.MatchType != "Copyright" {
			names = append(names, match.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("unknown licence, sha256 %x: read it and add it to those decided in ops/supply/licence.go", sum)
	}
	return names, nil
}

// Licences returns the licences of every module of the program, by its path,
// and a sentence for each that may not be linked in or that has none.
func Licences(p Program, sources Sources, c *Classifier) (map[string][]string, []string) {
	byModule := make(map[string][]string)
	var faults []string
	for _, m := range p.Modules {
		dir, err := sources.Dir(m)
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		names, err := c.Licences(dir)
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s %s: %v", m.Path, m.Version, err))
			continue
		}
		byModule[m.Path] = names
		for _, name := range names {
			if !allowed[name] {
				faults = append(faults, fmt.Sprintf("%s %s: licence %s is not one that may be linked in: replace the module", m.Path, m.Version, name))
			}
		}
	}
	return byModule, faults
}
