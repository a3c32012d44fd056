package disk

import (
	"errors"
	"os"
	"testing"
)

// A crash may have left members of an attempt that nobody was told of; the next
// attempt must not inherit them.
func TestARevisionHasTheMembersOfItsLastAttempt(t *testing.T) {
	s := Store{Root: t.TempDir()}
	stored := putWith(t, s, item(1), "one", "first")
	for _, members := range []string{"second", "", "third"} {
		putWith(t, s, item(1), "one", members)
		if got, err := os.ReadFile(MembersPath(stored.Path)); string(got) != members || (err == nil) != (members != "") {
			t.Errorf("the members are %q, %v, want %q", got, err, members)
		}
	}
}

func TestMembersThatWerePromisedStaySealed(t *testing.T) {
	s := Store{Root: t.TempDir()}
	stored := putWith(t, s, item(1), "one", "members")
	if err := errors.Join(s.Seal(stored.Path), s.Seal(MembersPath(stored.Path))); err != nil {
		t.Fatal(err)
	}
	putWith(t, s, item(1), "one", "members") // as after a crash before the promise
	info, err := os.Stat(MembersPath(stored.Path))
	if err != nil || info.Mode().Perm() != sealedMode {
		t.Errorf("the members are %v, %v, want them sealed", info, err)
	}
	if _, err := s.Put(t.Context(), item(1), func(path string) error {
		return errors.Join(content("other members")(MembersPath(path)), content("other")(path))
	}); err == nil {
		t.Error("other bytes under the number are accepted")
	}
	if got, err := os.ReadFile(MembersPath(stored.Path)); string(got) != "members" {
		t.Errorf("the promised members are now %q, %v", got, err)
	}
}
