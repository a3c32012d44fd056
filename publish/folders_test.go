package publish

import (
	"testing"
	"time"
)

func TestFoldersOfATimeAreThoseOfTheTemplate(t *testing.T) {
	at := time.Date(2024, 2, 29, 23, 30, 0, 0, time.FixedZone("", -3600)) // the first of March in UTC
	for folders, want := range map[Folders]string{
		"":                       "sea/2024/03",
		"{year}/{doy}":           "sea/2024/061",
		"{year}":                 "sea/2024",
		"{year}/{year}{month}":   "sea/2024/202403",
		"{year}-{month}/{day}":   "sea/2024-03/01",
		"{year}/{month}/{day}":   "sea/2024/03/01",
		"{year}{month}{day}":     "sea/20240301",
		"{year}/{month}/{doy}":   "sea/2024/03/061",
		"{year}/{year}_{doy}":    "sea/2024/2024_061",
		"{year}/{month}-{month}": "sea/2024/03-03",
	} {
		if err := folders.Check(); err != nil {
			t.Error(err)
		}
		if got := folders.Folder("sea", at); got != want {
			t.Errorf("%q is %s, want %s", folders, got, want)
		}
	}
}

func TestFoldersThatLeadAstrayAreRefused(t *testing.T) {
	for _, folders := range []Folders{
		"{month}/{year}", "{year}/{day}", "{year}/{day}/{month}", "..", "{year}/../{month}", "/{year}", "{year}/", "{year}//{month}",
		"x{year}", "{year}/{dataset}", "{year}/.{month}", "{year}/{revision}", "{year}/month",
	} {
		if err := folders.Check(); err == nil {
			t.Errorf("%q is taken", folders)
		}
	}
}
