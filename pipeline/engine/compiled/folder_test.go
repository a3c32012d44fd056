package compiled

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestTheOldestProgramsGo(t *testing.T) {
	f := folder{dir: t.TempDir(), limit: 400}
	for i, name := range []string{"a", "b", "c"} {
		if err := f.write(name, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(filepath.Join(f.dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.read("a"); err != nil { // from now on b is the oldest
		t.Fatal(err)
	}
	if err := f.write("d", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for name, there := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, err := f.read(name); there != (err == nil) || !there && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestANameHasAllItsPartsInIt(t *testing.T) {
	if name("ab", "c") == name("a", "bc") || name("a") == name("a", "") {
		t.Error("different parts have one name")
	}
}
