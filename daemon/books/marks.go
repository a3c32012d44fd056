package books

import (
	"slices"
	"sync"

	"lacuna/daemon/state"
	"lacuna/publish"
)

// marks are the folders that a state has marked as its own.
type marks struct {
	Folders []string `json:"folders"`
}

// keeping guards the file of marks, which several sinks add to.
var keeping sync.Mutex

// RecallMark lets a folder that this state has marked before count as seen with its
// marker: without one it is not that folder, because its disk is not mounted.
func RecallMark(dir state.Dir, place publish.Foldered) error {
	folder, mark := place.Folder()
	all, err := loadMarks(dir)
	if slices.Contains(all.Folders, folder) {
		_ = mark.Look(true)
	}
	return err
}

// KeepMark remembers that a folder has been marked.
func KeepMark(dir state.Dir, place publish.Foldered) error {
	folder, _ := place.Folder()
	if folder == "" {
		return nil
	}
	keeping.Lock()
	defer keeping.Unlock()
	all, err := loadMarks(dir)
	if err == nil && slices.Contains(all.Folders, folder) {
		return nil // one that cannot be read is written anew
	}
	all.Folders = append(all.Folders, folder)
	return state.Save(dir.Marked(), all)
}

func loadMarks(dir state.Dir) (all marks, err error) {
	_, err = state.Load(dir.Marked(), &all)
	return all, err
}
