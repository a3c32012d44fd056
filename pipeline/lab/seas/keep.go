package seas

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"lacuna/pipeline/classical"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/samples"
)

// An estimate is a map of values with their sigma.
type estimate struct{ value, sigma []float32 }

// key names an estimate: a hash of everything that it depends on.
type key [16]byte

// kept holds estimates that were made, in memory and in a file to which each is
// added when it is made. It is safe for concurrent use.
type kept struct {
	mu   sync.Mutex
	made map[key]estimate
	file *os.File
	to   *bufio.Writer
	err  error // the first failure to write
}

// openKept reads the estimates of a file. A process that was killed may have left
// half of one at its end; that one is cut off.
func openKept(path string) (*kept, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by another process: give -work another folder, or wait: %w", path, err), f.Close())
	}
	k := &kept{made: map[key]estimate{}, file: f, to: bufio.NewWriterSize(f, 1<<20)}
	whole, err := k.read(bufio.NewReaderSize(f, 1<<20))
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return k, nil
}

// mostCells bounds a map of the file, so that a damaged length takes no memory.
const mostCells = 1 << 24

// read reads whole records, and returns how many bytes they take.
func (k *kept) read(r io.Reader) (int64, error) {
	var whole int64
	for {
		var head struct {
			Key   key
			Cells uint32
		}
		err := binary.Read(r, binary.LittleEndian, &head)
		if err == nil && head.Cells > mostCells {
			return whole, nil // damaged from here on
		}
		e := estimate{make([]float32, head.Cells), make([]float32, head.Cells)}
		if err == nil {
			err = errors.Join(binary.Read(r, binary.LittleEndian, e.value), binary.Read(r, binary.LittleEndian, e.sigma))
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		k.made[head.Key] = e
		whole += int64(binary.Size(head)) + 8*int64(head.Cells)
	}
}

// get returns an estimate that was made.
func (k *kept) get(name key) (estimate, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.made[name]
	return e, ok
}

// put keeps an estimate.
func (k *kept) put(name key, e estimate) {
	var b bytes.Buffer
	b.Write(name[:])
	for _, part := range []any{uint32(len(e.value)), e.value, e.sigma} {
		_ = binary.Write(&b, binary.LittleEndian, part) // to memory: it cannot fail
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, twice := k.made[name]; twice {
		return
	}
	k.made[name] = e
	if _, err := k.to.Write(b.Bytes()); err != nil && k.err == nil {
		k.err = err
	}
}

// flush writes what was made so far.
func (k *kept) flush() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return errors.Join(k.err, k.to.Flush())
}

func (k *kept) close() error { return errors.Join(k.flush(), k.file.Close()) }

// contextKey names an estimate of a window of a day from its visible cells. about
// names the rest of what it depends on.
func contextKey(about string, day time.Time, w samples.Window, visible []bool, mode impute.Mode) key {
	h := sha256.New()
	fmt.Fprint(h, about, day.Unix(), w, mode)
	cells := make([]byte, (len(visible)+7)/8)
	for i, v := range visible {
		if v {
			cells[i/8] |= 1 << (i % 8)
		}
	}
	h.Write(cells)
	return key(h.Sum(nil)[:len(key{})])
}

// days are the days that analyses are made of.
type days interface {
	Time(day int) time.Time
	Place(day int) *samples.Place
	Places() []*samples.Place
	Analyse(r samples.Ref, visible []bool, cfg samples.BackgroundConfig) (value, sigma []float32, err error)
}

// keptOI is an analyser: optimal interpolation with the settings that suit each
// place, made once.
type keptOI struct {
	days  days
	kept  *kept
	oi    map[*samples.Place]impute.OI
	about map[*samples.Place]string
}

// placed names the data of a place, which two analysers of other days must not
// share, and has its constants.
type placed struct {
	about    string
	settings func(classical.OI) classical.OI
}

// newKeptOI returns the analyser of some days.
func newKeptOI(of days, k *kept, settings func(classical.OI) classical.OI, about map[*samples.Place]placed) (keptOI, error) {
	a := keptOI{days: of, kept: k, oi: map[*samples.Place]impute.OI{}, about: map[*samples.Place]string{}}
	for _, p := range of.Places() {
		oi := settings(about[p].settings(classical.DefaultOI(p.Grid)))
		a.oi[p] = impute.OI{Days: of, Settings: oi}
		how, err := json.Marshal(oi)
		if err != nil {
			return a, err
		}
		a.about[p] = about[p].about + string(how)
	}
	return a, nil
}

// Analyse implements impute.Analyser.
func (a keptOI) Analyse(r samples.Ref, visible []bool, mode impute.Mode) (value, sigma []float32, err error) {
	p := a.days.Place(r.Day)
	name := contextKey(a.about[p], a.days.Time(r.Day), r.Window, visible, mode)
	if e, ok := a.kept.get(name); ok {
		return e.value, e.sigma, nil
	}
	if value, sigma, err = a.oi[p].Analyse(r, visible, mode); err == nil {
		a.kept.put(name, estimate{value, sigma})
	}
	return value, sigma, err
}

// fingerprint names the data of a series.
func fingerprint(s samples.Series) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{s.Grid.Lat, s.Grid.Lon, s.Sea, s.Transform}); err != nil {
		return "", err
	}
	for _, d := range s.Days {
		if err := errors.Join(binary.Write(h, binary.LittleEndian, d.Time.Unix()), binary.Write(h, binary.LittleEndian, d.Values)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), nil
}
