package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/fetch"
)

func TestListingOfAFolderThatIsTooFullIsCut(t *testing.T) {
	root := t.TempDir()
	for i := range 3 * batch {
		must(t, os.WriteFile(filepath.Join(root, fmt.Sprintf("%d.nc.tmp", i)), nil, 0o644)) // unfinished files count too
	}
	if objects, err := New(root, 3*batch).List(t.Context(), fetch.Scope{}); err != nil || len(objects) != 0 {
		t.Errorf("List() = %d objects, %v; want an archive that is just full", len(objects), err)
	}
	read := 0
	scope := fetch.Scope{Progress: func() { read++ }}
	_, err := New(root, 2*batch).List(t.Context(), scope)
	if !errors.Is(err, fetch.ErrUnacceptable) || !strings.Contains(err.Error(), "dir_max_objects") {
		t.Errorf("List() = %v, want an error that names dir_max_objects", err)
	}
	if read != 2*batch {
		t.Errorf("%d entries were read, want the %d that there may be", read, 2*batch)
	}
}
