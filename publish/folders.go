package publish

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Folders is the template of the folders of products below that of their dataset,
// such as {year}/{doy}. The empty one is DefaultFolders. One tree has one: a reader,
// and the revision after, finds a product by its time alone.
type Folders string

// DefaultFolders has the products of a month in one folder.
const DefaultFolders Folders = "{year}/{month}"

// folderParts is what a template of folders may be made of. It begins with the
// year, so that folders of products begin with a digit and nothing else does.
var folderParts = regexp.MustCompile(`^\{year\}([-_/]?\{(year|month|day|doy)\})*$`)

// Folder returns where the products of a dataset and time belong, with slashes,
// below the root of a tree.
func (f Folders) Folder(dataset string, t time.Time) string { return path.Join(dataset, f.below(t)) }

func (f Folders) below(t time.Time) string {
	if f == "" {
		f = DefaultFolders
	}
	t = t.UTC()
	return strings.NewReplacer("{year}", t.Format("2006"), "{month}", t.Format("01"), "{day}", t.Format("02"), "{doy}", t.Format("002")).Replace(string(f))
}

func (f Folders) parts(t time.Time) []string { return strings.Split(f.below(t), "/") }

// Depth returns how many folders lie one in another.
func (f Folders) Depth() int { return 1 + strings.Count(f.below(time.Time{}), "/") }

// Check returns why f cannot be the folders of a tree, in a sentence, or nil. In
// the order of their names, folders must be in the order of time: the newest
// product is looked for from the last one back.
func (f Folders) Check() error {
	if f == "" || f == DefaultFolders {
		return nil
	}
	if !folderParts.MatchString(string(f)) {
		return fmt.Errorf("%q must begin with {year} and go on with {month}, {day} or {doy}, with /, - or _ between them, as in %s", f, DefaultFolders)
	}
	day := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC)
	for before, last := f.parts(day), day; day.Year() < 2025; day = day.AddDate(0, 0, 1) {
		now := f.parts(day)
		if slices.Compare(before, now) > 0 {
			return fmt.Errorf("%q sorts %s before %s: put what is longer first, as in {year}/{month}/{day}", f, Day(day), Day(last))
		}
		before, last = now, day
	}
	return nil
}
