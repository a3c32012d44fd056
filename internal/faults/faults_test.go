package faults_test

import (
	"errors"
	"testing"

	"lacuna/internal/faults"
)

func TestListHoldsEveryFaultInTheOrderFound(t *testing.T) {
	section := errors.New("interval is 0s, must be positive")
	l := faults.Of(nil, section)
	l.Check(true, "name is empty")
	l.Check(false, "port is %d, must be below 65536", 70000)
	l.Add(nil, errors.Join(errors.New("a is 1"), errors.New("b is 2")))
	err := l.Err()
	const want = "interval is 0s, must be positive\nport is 70000, must be below 65536\na is 1\nb is 2"
	if err == nil || err.Error() != want {
		t.Errorf("Err() = %v, want %s", err, want)
	}
	if !errors.Is(err, section) {
		t.Error("the fault of a section is no longer found by errors.Is")
	}
}

func TestCheckWrapsItsCause(t *testing.T) {
	cause := errors.New("no such product")
	var l faults.List
	l.Check(false, "product: %w", cause)
	if !errors.Is(l.Err(), cause) {
		t.Errorf("Err() = %v, which does not wrap its cause", l.Err())
	}
}

func TestNoFaultIsNoError(t *testing.T) {
	var l faults.List
	l.Check(true, "name is empty")
	l.Add(nil)
	if err := l.Err(); err != nil {
		t.Errorf("Err() = %v, want nil", err)
	}
}

func TestThePartAtFaultIsNamed(t *testing.T) {
	if err := faults.In("disk", nil); err != nil {
		t.Errorf("In() = %v of nothing wrong", err)
	}
	cause := errors.New("floor_mib is -1, must not be negative")
	err := faults.In("disk", cause)
	if part, ok := err.(interface{ Section() string }); !ok || part.Section() != "disk" || !errors.Is(err, cause) {
		t.Errorf("In() = %#v", err)
	}
	if want := "disk.floor_mib is -1, must not be negative"; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}
