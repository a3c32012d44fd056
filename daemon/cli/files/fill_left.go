package files

import (
	"errors"
	"fmt"
	"io"

	"lacuna/pipeline/ingest"
)

// leftOut are the files of the history that could not be read, by their fault:
// what is wrong with one of them is mostly wrong with all.
type leftOut struct {
	faults []string // in the order of their first file
	files  map[string][]string
}

func (l *leftOut) add(err error) {
	file, fault := "", err.Error()
	if bad := (*ingest.BadGranule)(nil); errors.As(err, &bad) {
		file, fault = bad.File, bad.Problem+"; "+bad.Remedy
	}
	if l.files == nil {
		l.files = map[string][]string{}
	}
	if l.files[fault] == nil {
		l.faults = append(l.faults, fault)
	}
	l.files[fault] = append(l.files[fault], file)
}

func (l *leftOut) print(w io.Writer) {
	for _, fault := range l.faults {
		switch files := l.files[fault]; {
		case files[0] == "":
			fmt.Fprintf(w, "lacuna: left out of the history: %s\n", fault)
		case len(files) == 1:
			fmt.Fprintf(w, "lacuna: left out of the history: %s: %s\n", files[0], fault)
		default:
			fmt.Fprintf(w, "lacuna: left out of the history: %d files such as %s: %s\n", len(files), files[0], fault)
		}
	}
}
