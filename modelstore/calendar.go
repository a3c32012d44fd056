package modelstore

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"lacuna/internal/durable"
)

// Calendar returns the calendar of a dataset, as the program that trains wrote
// it; nil: it has none yet.
func (s *Store) Calendar(dataset string) ([]byte, error) {
	if !plainName(dataset) {
		return nil, fmt.Errorf("%q is not the name of a dataset", dataset)
	}
	data, err := readAtMost(s.calendarPath(dataset), maxCardBytes)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the calendar of %s: %w", dataset, err)
	}
	return data, nil
}

// ChangeCalendar replaces the calendar of a dataset by what change makes of it,
// which no other process changes meanwhile. The new one appears whole or not at
// all, and is on disk for good when ChangeCalendar returns.
func (s *Store) ChangeCalendar(ctx context.Context, dataset string, change func(now []byte) ([]byte, error)) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return fmt.Errorf("change the calendar of %s: %w", dataset, err)
	}
	defer unlock()
	now, err := s.Calendar(dataset)
	if err != nil {
		return err
	}
	data, err := change(now)
	if err != nil {
		return fmt.Errorf("change the calendar of %s: %w", dataset, err)
	}
	if bytes.Equal(data, now) {
		return nil
	}
	if err := durable.WriteFile(s.calendarPath(dataset), data, fileMode); err != nil {
		return fmt.Errorf("change the calendar of %s: %w", dataset, s.explain(err))
	}
	return syncFolder(filepath.Join(s.dir, "calendars"))
}

func (s *Store) calendarPath(dataset string) string {
	return filepath.Join(s.dir, "calendars", dataset+".json")
}
