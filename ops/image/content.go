package image

import (
	"context"
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"lacuna/ops/supply"
)

// Sources are the files that an image is made of.
type Sources struct {
	Program  string // the program, built
	Runtime  string // libonnxruntime
	Config   string // configuration with every key at its default
	Bill     string // bill of materials
	Licences string // texts of all licences
	CAs      string // certificates of authorities
	Zones    string // time zones, the zip file of a Go tree
}

// Layers returns the content of the image: first what the machine brings, which
// is the same for many builds, then the program.
func Layers(ctx context.Context, s Sources) ([]Tree, error) {
	libraries, err := supply.Loaded(ctx, s.Program, s.Runtime)
	if err != nil {
		return nil, err
	}
	linker, err := interpreter(s.Program)
	if err != nil {
		return nil, err
	}
	folder := "" // where the linker looks without being told, as its own libc lies there
	for _, library := range libraries {
		if strings.HasPrefix(filepath.Base(library), "libc.so.") {
			folder = filepath.Dir(library)
		}
	}
	if folder == "" {
		return nil, fmt.Errorf("%s loads no libc: it is not built with cgo", s.Program)
	}
	system := Tree{
		"etc/passwd":                        {Mode: 0o644, Text: fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\nlacuna:x:%d:%[1]d:Lacuna:/var/lib/lacuna:/sbin/nologin\n", User)},
		"etc/group":                         {Mode: 0o644, Text: fmt.Sprintf("root:x:0:\nlacuna:x:%d:\n", User)},
		"etc/ld.so.conf":                    {Mode: 0o644, Text: folder + "\n"}, // read by the loader of GPU plug-ins, which complains without it
		"etc/nsswitch.conf":                 {Mode: 0o644, Text: "passwd: files\ngroup: files\nhosts: files dns\n"},
		"etc/ssl/certs/ca-certificates.crt": {Mode: 0o644, From: s.CAs},
		strings.TrimPrefix(zoneinfo, "/"):   {Mode: 0o644, From: s.Zones},
		"tmp":                               {Mode: fs.ModeDir | fs.ModeSticky | 0o777},
		"usr/lib/lacuna/libonnxruntime.so":  {Mode: 0o755, From: s.Runtime},
		"var/lib/lacuna":                    {Mode: fs.ModeDir | 0o750, Owner: User},
	}
	for _, name := range []string{"lib", "lib64"} { // as all distributions have it by now
		system[name] = Entry{Mode: fs.ModeSymlink, Link: "usr/" + name}
	}
	for _, library := range libraries {
		system[merged(path.Join(folder, path.Base(library)))] = Entry{Mode: 0o755, From: library}
	}
	system[merged(linker)] = Entry{Mode: 0o755, From: linker}
	program := Tree{
		"etc/lacuna/lacuna.yaml":               {Mode: 0o644, From: s.Config},
		"usr/bin/lacuna":                       {Mode: 0o755, From: s.Program},
		"usr/share/doc/lacuna/lacuna.cdx.json": {Mode: 0o644, From: s.Bill},
		"usr/share/doc/lacuna/licences.txt":    {Mode: 0o644, From: s.Licences},
	}
	return []Tree{system, program}, nil
}

const zoneinfo = "/usr/share/zoneinfo.zip"

// merged returns the place of a file of the system below usr.
func merged(file string) string {
	return "usr/" + strings.TrimPrefix(strings.TrimPrefix(file, "/"), "usr/")
}

// interpreter returns the dynamic linker that a program names. The kernel starts
// that one, wherever ldd has found it.
func interpreter(program string) (string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return "", fmt.Errorf("read the program: %w", err)
	}
	defer file.Close()
	section := file.Section(".interp")
	if section == nil {
		return "", fmt.Errorf("%s names no dynamic linker: it is not built with cgo", program)
	}
	name, err := section.Data()
	if err != nil {
		return "", fmt.Errorf("read the dynamic linker's name in %s: %w", program, err)
	}
	return strings.TrimRight(string(name), "\x00"), nil
}
