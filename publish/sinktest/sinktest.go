// Package sinktest checks that a publish.Sink keeps its contract. Every
// implementation runs it in its tests.
//
// It observes a sink through a receiver, which the caller provides, and knows
// nothing else of the destination of products.
package sinktest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lacuna/publish"
)

// Seen is a granule's product as a receiver has it.
type Seen struct {
	Revision  int
	SHA256    string // hash of the bytes that the receiver read, not the announced one
	Members   string // hash of the file of members; empty: there is none
	Retracted bool   // the product must not be used
	Why       string
}

// Subject is a sink with a receiver of its products.
type Subject struct {
	Sink publish.Sink
	// Restart returns the sink of a new process on the same place.
	Restart func(t *testing.T) publish.Sink
	// Receive returns the products of a dataset as a receiver has them that has
	// read everything, by granule. It fails t where a product is not whole, or
	// where one revision is seen twice as news.
	Receive func(t *testing.T, dataset string) map[string]Seen
	// WithoutMembers says that the sink does not keep members.
	WithoutMembers bool
}

// Run checks the sink that open returns, a fresh one for every check.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	checks := []struct {
		name  string
		check func(*testing.T, Subject)
	}{
		{"WhatIsPublishedIsReceivedWhole", receivedWhole},
		{"PublishingAgainChangesNothing", publishedAgain},
		{"PublishingAgainAfterARestartChangesNothing", publishedAgainAfterRestart},
		{"ALaterRevisionReplacesAnEarlier", laterReplaces},
		{"ALaterRevisionUnderAnotherNameReplacesAnEarlier", laterReplacesByName},
		{"AnEarlierRevisionNeverComesBack", earlierStaysAway},
		{"RetractionTakesAProductOutOfUse", retracted},
		{"RetractingAgainChangesNothing", retractedAgain},
		{"ARetractedRevisionDoesNotComeBack", retractedStaysAway},
		{"ARevisionAfterARetractionHolds", revisionAfterRetraction},
		{"TheNameOfARetractedProductIsFree", retractedNameIsFree},
		{"RetractingWhatWasNeverPublishedIsNoError", retractedUnpublished},
		{"ALostFileIsPermanent", lostFile},
		{"ADamagedFileIsPermanentAndNotShown", damagedFile},
		{"OtherBytesUnderARevisionAreRefused", otherBytes},
		{"OtherBytesUnderARevisionAreRefusedAfterARestart", otherBytesAfterRestart},
		{"OtherBytesUnderASupersededRevisionAreNotShown", otherBytesSuperseded},
		{"OtherBytesAreNotSentAgain", otherBytesAgain},
		{"RetractingOtherBytesChangesNothing", otherBytesRetracted},
		{"ADisplacedRevisionMakesRoomForTheNext", displaced},
		{"APlaceHasTheOwnerThatClaimedItLast", owned},
		{"APlaceTellsTheHighestRevisions", holdings},
		{"MembersComeWithTheirProduct", membersCome},
		{"MembersGoWithTheirProduct", membersGo},
		{"MembersOfAnotherRevisionAreNotShown", membersReplaced},
		{"LostOrDamagedMembersHoldTheProductBack", membersLost},
		{"DatasetsAreKeptApart", datasetsApart},
		{"ACancelledCallSaysSo", cancelled},
		{"TheNameStaysTheSame", nameStays},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			s := open(t)
			if s.WithoutMembers && strings.Contains(c.name, "Members") {
				t.Skip("the sink keeps no members")
			}
			c.check(t, s)
		})
	}
}

// Product makes a product with a file in a temporary folder. Its bytes follow
// from its identity.
func Product(t *testing.T, dataset, granule string, revision int) publish.Product {
	t.Helper()
	content := fmt.Appendf(nil, "%s %s %d", dataset, granule, revision)
	for len(content) < 5000 {
		content = append(content, content...)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return publish.Product{
		Dataset: dataset, Granule: granule + ".nc", Name: granule + "_l4.nc",
		Time: time.Date(2024, 4, 30, 12, 0, 0, 0, time.UTC), Revision: revision, Supersedes: revision - 1,
		Path: path, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		BBox: [4]float64{26.5, 40, 42, 48}, Variable: "CHL", Units: "milligram m^-3",
		Model: "oi", Mode: publish.NearRealTime, CoverageBefore: 0.2, CoverageAfter: 1, MeanUncertainty: 0.3,
		Created: time.Date(2024, 5, 1, 6, 0, revision, 0, time.UTC),
	}
}

func receivedWhole(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "sea", "b", 1)
	publishAll(t, s.Sink, a, b)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a), b.Granule: seen(b)})
}

func publishedAgain(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a, a, a)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func publishedAgainAfterRestart(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "sea", "b", 1)
	publishAll(t, s.Sink, a)
	publishAll(t, s.Restart(t), a, b)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a), b.Granule: seen(b)})
}

func laterReplaces(t *testing.T, s Subject) {
	first, second := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, first, second)
	want(t, s, "sea", map[string]Seen{first.Granule: seen(second)})
}

// laterReplacesByName is for names that tell revisions apart: a receiver that looks at
// all files must find the current one only.
func laterReplacesByName(t *testing.T, s Subject) {
	all := []publish.Product{Product(t, "sea", "a", 1), Product(t, "sea", "a", 2), Product(t, "sea", "a", 3), Product(t, "sea", "a", 4)}
	for i := range all {
		all[i].Name = fmt.Sprintf("a_r%d.nc", all[i].Revision)
	}
	publishAll(t, s.Sink, all[0], all[2]) // the second comes late
	publishAll(t, s.Restart(t), all[1], all[2])
	want(t, s, "sea", map[string]Seen{all[0].Granule: seen(all[2])})
	all[3].Name = all[0].Name // as after a change of the template
	publishAll(t, s.Sink, all[3], all[0])
	want(t, s, "sea", map[string]Seen{all[0].Granule: seen(all[3])})
	all[3] = retract(t, s.Sink, all[3])
	want(t, s, "sea", map[string]Seen{all[0].Granule: seen(all[3])})
}

func earlierStaysAway(t *testing.T, s Subject) {
	first, second := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, second, first)
	publishAll(t, s.Restart(t), first)
	want(t, s, "sea", map[string]Seen{first.Granule: seen(second)})
}

func retracted(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "sea", "b", 1)
	publishAll(t, s.Sink, a, b)
	a = retract(t, s.Sink, a)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a), b.Granule: seen(b)})
}

// retractedNameIsFree is for names without that of the granule: the product of an
// absence is retracted when its granule comes, and has the same name.
func retractedNameIsFree(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "sea", "b", 1)
	b.Name = a.Name
	publishAll(t, s.Sink, a)
	gone := retract(t, s.Sink, a)
	publishAll(t, s.Sink, b)
	gone = retract(t, s.Restart(t), gone)
	want(t, s, "sea", map[string]Seen{gone.Granule: seen(gone), b.Granule: seen(b)})
}

func retractedAgain(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a)
	retract(t, s.Sink, a)
	a = retract(t, s.Restart(t), a)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func retractedStaysAway(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	publishAll(t, s.Sink, a)
	gone := retract(t, s.Sink, a)
	publishAll(t, s.Restart(t), a) // a queue that was restored from a backup
	want(t, s, "sea", map[string]Seen{a.Granule: seen(gone)})
}

func revisionAfterRetraction(t *testing.T, s Subject) {
	first, second := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, first)
	retract(t, s.Sink, first)
	publishAll(t, s.Sink, second)
	want(t, s, "sea", map[string]Seen{first.Granule: seen(second)})
}

func retractedUnpublished(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "sea", "b", 1)
	publishAll(t, s.Sink, b)
	retract(t, s.Sink, a)
	got := s.Receive(t, "sea")
	if one, ok := got[a.Granule]; ok && !one.Retracted {
		t.Errorf("a product retracted before it was published is received as %+v", one)
	}
	if got[b.Granule] != seen(b) {
		t.Errorf("the other product is received as %+v, want %+v", got[b.Granule], seen(b))
	}
}

func lostFile(t *testing.T, s Subject) {
	a := Product(t, "sea", "a", 1)
	if err := os.Remove(a.Path); err != nil {
		t.Fatal(err)
	}
	if err := s.Sink.Publish(t.Context(), a); !errors.Is(err, publish.ErrPermanent) {
		t.Errorf("Publish() = %v without a file, want ErrPermanent", err)
	}
	want(t, s, "sea", map[string]Seen{})
}

func damagedFile(t *testing.T, s Subject) {
	first, second := Product(t, "sea", "a", 1), Product(t, "sea", "a", 2)
	publishAll(t, s.Sink, first)
	if err := os.WriteFile(second.Path, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Sink.Publish(t.Context(), second); !errors.Is(err, publish.ErrPermanent) {
		t.Errorf("Publish() = %v with a damaged file, want ErrPermanent", err)
	}
	want(t, s, "sea", map[string]Seen{first.Granule: seen(first)})
}

func datasetsApart(t *testing.T, s Subject) {
	a, b := Product(t, "sea", "a", 1), Product(t, "lake", "a", 3)
	publishAll(t, s.Sink, a, b)
	retract(t, s.Sink, b)
	want(t, s, "sea", map[string]Seen{a.Granule: seen(a)})
}

func cancelled(t *testing.T, s Subject) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Sink.Publish(ctx, Product(t, "sea", "a", 1)); err == nil || errors.Is(err, publish.ErrPermanent) {
		t.Errorf("Publish() = %v when cancelled, want an error that is not permanent", err)
	}
}

func nameStays(t *testing.T, s Subject) {
	if again := s.Restart(t).Name(); s.Sink.Name() == "" || again != s.Sink.Name() {
		t.Errorf("name is %q and after a restart %q", s.Sink.Name(), again)
	}
}

func publishAll(t *testing.T, s publish.Sink, products ...publish.Product) {
	t.Helper()
	for _, p := range products {
		if err := s.Publish(t.Context(), p); err != nil {
			t.Fatalf("Publish(%s) = %v", p.ID(), err)
		}
	}
}

// retract retracts p and returns it as it was passed to the sink.
func retract(t *testing.T, s publish.Sink, p publish.Product) publish.Product {
	t.Helper()
	p.Retracted, p.Why = true, "sensor fault"
	if err := s.Retract(t.Context(), p); err != nil {
		t.Fatalf("Retract(%s) = %v", p.ID(), err)
	}
	return p
}

// seen returns p as a receiver should have it.
func seen(p publish.Product) Seen {
	if p.Retracted {
		return Seen{Revision: p.Revision, Retracted: true, Why: p.Why}
	}
	s := Seen{Revision: p.Revision, SHA256: p.SHA256}
	if p.Members != nil {
		s.Members = p.Members.SHA256
	}
	return s
}

func want(t *testing.T, s Subject, dataset string, products map[string]Seen) {
	t.Helper()
	got := s.Receive(t, dataset)
	for granule, w := range products {
		if g, ok := got[granule]; !ok || g != w {
			t.Errorf("receiver has %+v of %s (%v), want %+v", g, granule, ok, w)
		}
	}
	for granule, g := range got {
		if _, ok := products[granule]; !ok {
			t.Errorf("receiver has %+v of %s, which was not published", g, granule)
		}
	}
}
