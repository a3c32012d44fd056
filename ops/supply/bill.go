package supply

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// Parts is the content of a bill of materials.
type Parts struct {
	Version   string // version of the program, as it prints it
	SHA256    string // hash of the program's file
	Own       []string
	Program   Program
	Licences  map[string][]string // licences of the modules, by path
	Libraries []Library           // shared libraries that the program loads
	Files     []File              // models and libraries that are files of their own
}

// A Library is a package of the system with the shared libraries out of it that
// the program loads. Version is empty where no package manager knows the file.
type Library struct {
	Package, Version, Arch, System string
	Sonames                        []string
}

// A File is built in (a model) or loaded while the program runs (a library).
type File struct {
	Kind                  cdx.ComponentType
	Name, Version, SHA256 string
	Licence               string // empty where it is that of the program
	Optional              bool   // the program runs without it
}

// Bill returns the bill of materials as CycloneDX 1.6 in JSON. It has no time
// in it, and its serial number is derived from the rest: the same parts give
// the same bytes, in whatever order they come.
func Bill(parts Parts) ([]byte, error) {
	root := cdx.Component{
		BOMRef: "lacuna", Type: cdx.ComponentTypeApplication, Name: "lacuna", Version: parts.Version,
		Hashes: sha256Hash(parts.SHA256), Licenses: licences(parts.Own),
	}
	components := make([]cdx.Component, 0, len(parts.Program.Modules)+len(parts.Libraries)+len(parts.Files))
	for _, m := range parts.Program.Modules {
		components = append(components, moduleComponent(m, parts.Licences[m.Path]))
	}
	for _, l := range parts.Libraries {
		components = append(components, libraryComponent(l))
	}
	for _, f := range parts.Files {
		components = append(components, fileComponent(f))
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &root}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: root.BOMRef, Dependencies: &refs}}
	unnumbered, err := encode(bom)
	if err != nil {
		return nil, err
	}
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, unnumbered).URN()
	return encode(bom)
}

func encode(bom *cdx.BOM) ([]byte, error) {
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("write the bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

func moduleComponent(m Module, names []string) cdx.Component {
	version := m.Version
	if m.Path == std {
		version = strings.TrimPrefix(version, "go")
	}
	// Paths keep their case, as those of other Go tools do: to Go it matters.
	purl := "pkg:golang/" + m.Path + "@" + purlVersion(version)
	c := cdx.Component{
		BOMRef: purl, PackageURL: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: version,
		Licenses: licences(names),
	}
	if m.Sum != "" {
		// No element of hashes: those are of a file's bytes, which this is not.
		c.Properties = &[]cdx.Property{{Name: "lacuna:go.sum", Value: m.Sum}}
	}
	return c
}

func libraryComponent(l Library) cdx.Component {
	c := cdx.Component{BOMRef: "system/" + l.Package, Type: cdx.ComponentTypeLibrary, Name: l.Package, Version: l.Version}
	if l.Version != "" {
		c.PackageURL = fmt.Sprintf("pkg:deb/%s/%s@%s?arch=%s", l.System, l.Package, purlVersion(l.Version), l.Arch)
	}
	sonames := slices.Sorted(slices.Values(l.Sonames))
	properties := make([]cdx.Property, len(sonames))
	for i, soname := range sonames {
		properties[i] = cdx.Property{Name: "lacuna:soname", Value: soname}
	}
	c.Properties = &properties
	return c
}

func fileComponent(f File) cdx.Component {
	c := cdx.Component{
		BOMRef: "file/" + f.Name, Type: f.Kind, Name: f.Name, Version: f.Version, Hashes: sha256Hash(f.SHA256),
	}
	if f.Licence != "" {
		c.Licenses = licences([]string{f.Licence})
	}
	if f.Optional {
		c.Scope = cdx.ScopeOptional
	}
	return c
}

// licences returns one identifier as such and several as an expression in which
// all of them hold.
func licences(names []string) *cdx.Licenses {
	switch len(names) {
	case 0:
		return nil
	case 1:
		return &cdx.Licenses{{License: &cdx.License{ID: names[0]}}}
	default:
		return &cdx.Licenses{{Expression: strings.Join(names, " AND ")}}
	}
}

func sha256Hash(sum string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sum}}
}

// purlVersion escapes a version for a package URL, in which a colon stays.
func purlVersion(version string) string {
	return strings.ReplaceAll(url.QueryEscape(version), "%3A", ":")
}
