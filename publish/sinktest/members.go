package sinktest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lacuna/publish"
)

// WithMembers returns p with a file of members in a temporary folder. Their bytes
// follow from the identity of p.
func WithMembers(t *testing.T, p publish.Product) publish.Product {
	t.Helper()
	content := []byte("members of " + p.ID())
	path := filepath.Join(t.TempDir(), "members")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	p.Members = &publish.Members{
		Name: publish.MembersName(p.Name), Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), Count: 4,
	}
	return p
}

func membersCome(t *testing.T, s Subject) {
	a, b := WithMembers(t, Product(t, "sea", "a", 1)), Product(t, "sea", "b", 1)
	publishAll(t, s.Sink, a, b)
	publishAll(t, s.Restart(t), a, a)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a), b.Granule: seen(b)})
}

func membersGo(t *testing.T, s Subject) {
	a, b := WithMembers(t, Product(t, "sea", "a", 1)), WithMembers(t, Product(t, "sea", "b", 1))
	publishAll(t, s.Sink, a, b)
	a = retract(t, s.Sink, a)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a), b.Granule: seen(b)})
}

func membersReplaced(t *testing.T, s Subject) {
	first, second := WithMembers(t, Product(t, "sea", "a", 1)), WithMembers(t, Product(t, "sea", "a", 2))
	third, fourth := Product(t, "sea", "a", 3), WithMembers(t, Product(t, "sea", "a", 4))
	for _, p := range []publish.Product{first, second, third, fourth} {
		publishAll(t, s.Sink, p)
		if p.Revision == 4 {
			publishAll(t, s.Sink, second) // late
		}
		want(t, s, "sea", map[string]Seen{p.Granule: seen(p)})
	}
}

func membersLost(t *testing.T, s Subject) {
	first := WithMembers(t, Product(t, "sea", "a", 1))
	publishAll(t, s.Sink, first)
	lost, damaged := WithMembers(t, Product(t, "sea", "a", 2)), WithMembers(t, Product(t, "sea", "a", 2))
	if err := errors.Join(os.Remove(lost.Members.Path), os.WriteFile(damaged.Members.Path, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]publish.Product{"lost": lost, "damaged": damaged} {
		if err := s.Sink.Publish(t.Context(), p); !errors.Is(err, publish.ErrPermanent) {
			t.Errorf("Publish() = %v with %s members, want ErrPermanent", err, name)
		}
	}
	want(t, s, "sea", map[string]Seen{first.Granule: seen(first)})
}
