// Package starters holds the models that come with the program, so that a
// dataset without a model of its own has a network to try.
//
// A starter is a version of a model as 'lacuna models export' writes it, at
// most one for each quantity (chlorophyll, sea surface temperature), trained on
// public real data of other regions. It is built into the program: there is one file
// to carry, and nothing to install or to find. List checks every byte of it
// against its card.
//
// Package starters does not choose a starter for a dataset, say how far it is
// followed, or load networks: that is the daemon's part.
package starters

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sync"

	"lacuna/modelstore"
)

//go:embed versions
var embedded embed.FS

// builtIn is unpacked and checked once: a program that starts one service after
// another, as tests do, would spend a tenth of a second on each.
var builtIn = sync.OnceValues(func() ([]*modelstore.Version, error) {
	return list(context.Background(), embedded)
})

// List returns the starters of this program, in order of their files' names. All
// callers share the versions.
func List(ctx context.Context) ([]*modelstore.Version, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, err := builtIn()
	return slices.Clone(all), err
}

func list(ctx context.Context, files fs.FS) ([]*modelstore.Version, error) {
	names, err := fs.Glob(files, "versions/*.tar")
	if err != nil {
		return nil, fmt.Errorf("list starters: %w", err)
	}
	var all []*modelstore.Version
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read starter: %w", err)
		}
		v, err := modelstore.Unpack(ctx, bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("starter %s: %w", path.Base(name), err)
		}
		all = append(all, v)
	}
	return all, nil
}
