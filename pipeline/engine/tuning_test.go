package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTuningIsKeptInTheFirstFolderThereIs(t *testing.T) {
	top := t.TempDir()
	in := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	if err := os.WriteFile(in("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	user := func() (string, error) { return in("user"), nil }
	homeless := func() (string, error) { return "", errors.New("neither $XDG_CACHE_HOME nor $HOME are defined") }
	for _, tt := range []struct {
		name, named, service string
		user                 func() (string, error)
		want                 string
	}{
		{"named in the settings", in("named"), in("service"), user, in("named")},
		{"of the service", "", in("service"), user, in("service", "xla")},
		{"the first of several of the service", "", in("one") + ":" + in("two"), user, in("one", "xla")},
		{"of the user", "", "", user, in("user", "lacuna", "xla")},
		{"of a user without a home", "", "", homeless, ""},
		{"with a space, which would end the flag", in("my cache"), "", user, ""},
		{"a file", in("file"), "", user, ""},
		{"below a file", in("file", "below"), "", user, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := func(name string) string { return map[string]string{"CACHE_DIRECTORY": tt.service}[name] }
			got := tuningFolder(tt.named, env, tt.user)
			if got != tt.want {
				t.Fatalf("the folder is %q, want %q", got, tt.want)
			}
			if got == "" {
				return
			}
			left, err := os.ReadDir(got)
			if err != nil || len(left) > 0 {
				t.Errorf("the folder holds %v (%v), want nothing", left, err)
			}
			if info, err := os.Stat(got); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("the folder has mode %v (%v), want that of its owner alone", info.Mode(), err)
			}
		})
	}
}
