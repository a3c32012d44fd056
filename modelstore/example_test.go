package modelstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"lacuna/modelstore"
)

// A version is written whole, promoted with a reason, and read back with every
// byte checked.
func Example() {
	dir, remove := folder()
	defer remove()
	ctx := context.Background()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	store := modelstore.New(dir, func() time.Time { return now })

	_, err := store.LoadChampion("black-sea")
	fmt.Println("at first:", errors.Is(err, modelstore.ErrNoChampion))

	card := modelstore.Card{Kind: "trained", Dataset: "black-sea", Variable: "CHL", Created: now, Lacuna: "0.2.0"}
	version, err := store.Write(ctx, card, map[string]io.Reader{modelstore.ImputerFile: strings.NewReader("weights")})
	if err != nil {
		fmt.Println(err)
		return
	}
	change := modelstore.Change{Version: version.ID, By: "an operator", Why: []string{"MSE is 4 % lower on held-out days"}}
	if _, err := store.Promote(ctx, change); err != nil {
		fmt.Println(err)
		return
	}
	champion, err := store.Champion("black-sea")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("champion:", champion.Version == version.ID)
	fmt.Println("because:", champion.Why[0])
	// Output:
	// at first: true
	// champion: true
	// because: MSE is 4 % lower on held-out days
}

// folder returns an empty folder, and a function that removes it although those
// of versions are read-only.
func folder() (string, func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	return dir, func() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				return os.Chmod(path, 0o700)
			}
			return err
		})
		_ = os.RemoveAll(dir)
	}
}
