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

// A Section is what is wrong with a part of a value, under the key of that part.
type Section struct {
	Key string
	Err error
}

// In returns what is wrong with the part of a value under a key; nil where
// nothing is.
func In(key string, err error) error {
	if err == nil {
		return nil
	}
	return &Section{Key: key, Err: err}
}

// Error puts the key before the message.
func (s *Section) Error() string { return s.Key + "." + s.Err.Error() }

// Unwrap returns the error without its key.
func (s *Section) Unwrap() error { return s.Err }
