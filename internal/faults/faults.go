// Package faults collects everything wrong with a value, so that a person who
// corrects a configuration sees all of it at once and not one fault a run.
//
// It knows no stage and no format: a fault is a message that by convention
// begins with the key at fault. Package daemon finds the line of that key.
package faults

import (
	"errors"
	"fmt"
)

// A List is the faults found so far. Its zero value is empty and ready.
type List struct{ errs []error }

// Of returns the list of the errors that are not nil, such as those of the
// sections of a configuration.
func Of(errs ...error) *List {
	var l List
	l.Add(errs...)
	return &l
}

// Check adds the fault that format and args describe unless ok. It takes %w as
// fmt.Errorf does.
func (l *List) Check(ok bool, format string, args ...any) {
	if !ok {
		l.errs = append(l.errs, fmt.Errorf(format, args...))
	}
}

// Add adds the errors that are not nil.
func (l *List) Add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			l.errs = append(l.errs, err)
		}
	}
}

// Err returns all faults joined, in the order found, or nil.
func (l *List) Err() error { return errors.Join(l.errs...) }

// section is everything wrong with a part of a value, under the key of that part.
type section struct {
	key string
	err error
}

// In returns the faults of the part of a value under a key; nil where there are
// none. Its method Section returns the key, for whoever looks for the line.
func In(key string, err error) error {
	if err == nil {
		return nil
	}
	return section{key: key, err: err}
}

func (s section) Error() string   { return s.key + "." + s.err.Error() }
func (s section) Unwrap() error   { return s.err }
func (s section) Section() string { return s.key }

// ErrConfig marks a configuration that cannot be used, or a name that it does not
// have.
var ErrConfig = errors.New("bad configuration")
