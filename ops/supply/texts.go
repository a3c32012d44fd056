package supply

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Texts returns the licences of all that a package of the program holds, word for
// word, as most of them ask for: of the program, of the modules that are linked
// in, of the packages of the libraries, and of what the further files say. A part
// without a text is an error. What shares a text stands above it together.
func Texts(parts Parts, sources Sources, further map[string]string) ([]byte, error) {
	names := make(map[string][]string) // of the parts, by their text
	add := func(name string, files ...string) error {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("licence of %s: %w", name, err)
			}
			key := strings.TrimSpace(string(text))
			names[key] = append(names[key], name)
		}
		if len(files) == 0 {
			return fmt.Errorf("licence of %s: there is no file", name)
		}
		return nil
	}
	for _, m := range parts.Program.Modules {
		dir, err := sources.Dir(m)
		if err != nil {
			return nil, err
		}
		files, err := licenceFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
		}
		notices, err := filepath.Glob(filepath.Join(dir, "NOTICE*")) // which Apache-2.0 asks to keep too
		if err != nil {
			return nil, fmt.Errorf("notices of %s: %w", m.Path, err)
		}
		files = append(files, notices...)
		if err := add(m.Path+" "+m.Version, files...); err != nil {
			return nil, err
		}
	}
	for _, l := range parts.Libraries {
		if err := add(strings.TrimSpace(l.Package+" "+l.Version), filepath.Join("/usr/share/doc", l.Package, "copyright")); err != nil {
			return nil, err
		}
	}
	for name, file := range further {
		if err := add(name, file); err != nil {
			return nil, err
		}
	}
	return joined(names), nil
}

func joined(names map[string][]string) []byte {
	texts := slices.Collect(maps.Keys(names))
	for _, text := range texts {
		slices.Sort(names[text])
	}
	slices.SortFunc(texts, func(a, b string) int {
		if c := slices.Compare(names[a], names[b]); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	var out bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&out, "==== %s ====\n\n%s\n\n", strings.Join(names[text], ", "), text)
	}
	return out.Bytes()
}
