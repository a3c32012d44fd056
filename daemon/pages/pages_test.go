package pages

import (
	"errors"
	"testing"
)

func TestTroublesLastUntilAnAttemptGoesWell(t *testing.T) {
	var all Troubles
	all.Note("sea", errors.New("disk full\nand more"))
	all.Note("lake", nil)
	if all.Of("sea") != "disk full" || all.Of("lake") != "" {
		t.Errorf("troubles are %q and %q", all.Of("sea"), all.Of("lake"))
	}
	all.Note("sea", nil)
	if all.Of("sea") != "" {
		t.Errorf("trouble lasts: %q", all.Of("sea"))
	}
}
