package modelstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"
)

// day0 is the time at which the clock of the tests starts.
var day0 = time.Date(2024, 4, 1, 12, 0, 0, 0, time.UTC)

// newStore returns an empty store with a clock that moves on by a minute at
// every reading.
func newStore(t testing.TB) *Store {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	t.Cleanup(func() { unlockFolders(dir) })
	return New(dir, tickingClock())
}

func tickingClock() func() time.Time {
	now := day0
	return func() time.Time {
		now = now.Add(time.Minute)
		return now
	}
}

// unlockFolders makes folders writable, so that the test can remove them.
func unlockFolders(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, folderMode)
		}
		return nil
	})
}

// testCard is a card with something in every section.
func testCard(note string) Card {
	return Card{
		Kind: "trained", Dataset: "blk-chl", Variable: "CHL", Units: "mg m-3", Lacuna: "0.1", Note: note,
		Data: Data{From: day0.AddDate(-1, 0, 0), To: day0, Granules: []Granule{
			{Name: "a.nc", SHA256: strings.Repeat("a", 64)}, {Name: "b.nc", SHA256: strings.Repeat("b", 64)},
		}},
		Split: testSplit(), Transform: "log10",
		Normalisation: Normalisation{Mean: -0.25, Std: 0.5},
		Networks:      []Network{{File: ImputerFile, Backbone: "unet", Size: "small", Parameters: 2100000}},
		Settings:      map[string]json.RawMessage{"train": json.RawMessage(`{"batch":8,"lr":0.0003}`)},
		Seeds:         map[string]uint64{"weights": 1<<63 + 1},
		Scores:        Comparison{On: "20 overlays of April", Champion: map[string]float64{"mse": 0.25}, Challenger: map[string]float64{"mse": 0.125, "cbgd": 1.01}},
		Calibration:   Calibration{File: CalibrationFile, Note: "by gap distance"}, Guidance: 1.5,
		Engine:   Engine{Name: "ort", Device: "cpu", Libraries: map[string]string{"onnxruntime": "1.31.1"}},
		Training: Training{Started: day0, Seconds: 5400, Steps: 1000, Hardware: "2 cores", PeakMemoryBytes: 3e9},
	}
}

// testSplit lists a few days of one sea.
func testSplit() Split {
	learn, choose, judge := []string{"2023-04-01", "2023-04-02", "2023-04-03"}, []string{"2023-06-01"}, []string{"2023-08-01", "2023-08-02"}
	box := Box{South: 40, North: 47, West: 27, East: 42}
	return Split{
		Rule: "by the calendar", TrainDays: 3, CheckDays: 1, TestDays: 2, Learn: learn, Choose: choose, Judge: judge,
		Seas: map[string]Sea{box.String(): {
			Variable: "CHL", Box: box, Learn: learn, Choose: choose, Judge: judge,
			Calendar: json.RawMessage(`{"gap_days":12}`),
		}},
		Seen: []Seen{{Variable: "CHL", Box: &Box{South: 30, North: 50, West: -140, East: -120}, Learn: []string{"2021-01-01"}}},
	}
}

// testFiles are the files of a version with every name; note makes them its
// own.
func testFiles(note string) map[string]io.Reader {
	files := map[string]io.Reader{}
	for _, name := range []string{PriorFile, ImputerFile, MembersFile, ReliabilityFile, QueryFile, CalibrationFile, EvaluationFile} {
		files[name] = strings.NewReader(strings.Repeat(name+" of "+note+"\n", 50))
	}
	return files
}

func write(t testing.TB, s *Store, note string) *Version {
	t.Helper()
	return writeCard(t, s, testCard(note))
}

func writeCard(t testing.TB, s *Store, card Card) *Version {
	t.Helper()
	v, err := s.Write(context.Background(), card, testFiles(card.Note))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVersionIsReadBackAsItWasWritten(t *testing.T) {
	s := newStore(t)
	written := write(t, s, "one")
	if !strings.HasPrefix(written.ID, "blk-chl-2024-04-01-") {
		t.Errorf("version is called %s, want dataset and day in front", written.ID)
	}
	v, err := s.Load(written.ID)
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range testFiles("one") {
		want, _ := io.ReadAll(r)
		got, err := v.ReadFile(name)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s: read %q, %v", name, got, err)
		}
	}
	if v.Card.Seeds["weights"] != 1<<63+1 || v.Card.Normalisation.Mean != -0.25 || string(v.Card.Settings["train"]) == "" {
		t.Errorf("card came back as %+v", v.Card)
	}
	if v.Has("nothing.onnx") {
		t.Error("the version says it has a file it does not have")
	}
}

func TestVersionCannotBeWrittenTo(t *testing.T) {
	s := newStore(t)
	v := write(t, s, "one")
	for _, name := range []string{".", CardFile, ImputerFile} {
		info, err := os.Stat(filepath.Join(v.dir, name))
		if err != nil || info.Mode().Perm()&0o222 != 0 {
			t.Errorf("%s has mode %v, %v, want no write permission", name, info.Mode(), err)
		}
	}
}

func TestSameContentIsOneVersion(t *testing.T) {
	s := newStore(t)
	card := testCard("one")
	card.Created = day0
	a, b := writeCard(t, s, card), writeCard(t, s, card)
	if a.ID != b.ID || len(s.entries("versions")) != 1 {
		t.Errorf("the same content became %s and %s", a.ID, b.ID)
	}
	card.Seeds = map[string]uint64{"weights": 2}
	if c := writeCard(t, s, card); c.ID == a.ID {
		t.Error("another seed has the same name")
	}
	if left := s.entries("incoming"); len(left) != 0 {
		t.Errorf("writing left %v", left)
	}
}

// damages are the ways in which a file goes bad.
var damages = map[string]func(path string) error{
	"changed": func(path string) error {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data[len(data)/2] ^= 1
		return os.WriteFile(path, data, fileMode)
	},
	"cut":     func(path string) error { return os.Truncate(path, 10) },
	"emptied": func(path string) error { return os.Truncate(path, 0) },
	"longer": func(path string) error {
		data, err := os.ReadFile(path)
		return errors.Join(err, os.WriteFile(path, append(data, 0), fileMode))
	},
	"lost": os.Remove,
	"a pipe": func(path string) error {
		return errors.Join(os.Remove(path), unix.Mkfifo(path, fileMode))
	},
	"a folder": func(path string) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, folderMode))
	},
}

func TestDamagedFileIsRefusedByName(t *testing.T) {
	names := append(slices.Collect(maps.Keys(testFiles(""))), CardFile)
	for how, damage := range damages {
		for _, name := range names {
			t.Run(how+" "+name, func(t *testing.T) {
				s := newStore(t)
				v := write(t, s, "one")
				unlockFolders(s.dir)
				path := filepath.Join(v.dir, name)
				if err := os.Chmod(path, fileMode); err != nil {
					t.Fatal(err)
				}
				if err := damage(path); err != nil {
					t.Fatal(err)
				}
				_, err := s.Load(v.ID)
				var bad *BadVersion
				if !errors.As(err, &bad) || bad.File != name || bad.Version != v.ID {
					t.Fatalf("Load() = %v, want a BadVersion that names %s", err, name)
				}
				if !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "lacuna models") {
					t.Errorf("message %q does not name the file and the remedy", err)
				}
				if name != CardFile {
					if _, err := v.ReadFile(name); !errors.As(err, &bad) {
						t.Errorf("ReadFile() = %v after the damage, want a BadVersion", err)
					}
				}
			})
		}
	}
}

func TestWritingAgainReplacesADamagedVersion(t *testing.T) {
	s := newStore(t)
	card := testCard("one")
	card.Created = day0
	v := writeCard(t, s, card)
	unlockFolders(s.dir)
	if err := os.Remove(filepath.Join(v.dir, PriorFile)); err != nil {
		t.Fatal(err)
	}
	writeCard(t, s, card)
	if _, err := s.Load(v.ID); err != nil {
		t.Errorf("after writing it again: %v", err)
	}
}

func TestWriteThatFailsLeavesNothing(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	broken := func(name string, r io.Reader) map[string]io.Reader {
		files := testFiles("one")
		files[name] = r
		return files
	}
	nan := testCard("one")
	nan.Scores.Challenger["mse"] = 0
	nan.Scores.Challenger["mse"] /= nan.Scores.Challenger["mse"]
	unlisted := testCard("one")
	unlisted.Networks = append(unlisted.Networks, Network{File: "other.onnx"})
	nameless := testCard("one")
	nameless.Dataset = "../Black Sea"
	tests := []struct {
		name  string
		ctx   context.Context
		card  Card
		files map[string]io.Reader
		want  string
	}{
		{"source that breaks", t.Context(), testCard("one"), broken(PriorFile, iotest.ErrReader(errors.New("disk on fire"))), "prior.onnx: disk on fire"},
		{"cancelled", cancelled, testCard("one"), testFiles("one"), "context canceled"},
		{"name with a path", t.Context(), testCard("one"), broken("../prior.onnx", strings.NewReader("")), "../prior.onnx"},
		{"file in place of the card", t.Context(), testCard("one"), broken(CardFile, strings.NewReader("")), "card.json"},
		{"score that is no number", t.Context(), nan, testFiles("one"), "mse"},
		{"network without its file", t.Context(), unlisted, testFiles("one"), "other.onnx"},
		{"dataset that is no name", t.Context(), nameless, testFiles("one"), "Black Sea"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			_, err := s.Write(tt.ctx, tt.card, tt.files)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Write() = %v, want a message with %q", err, tt.want)
			}
			if left := append(s.entries("versions"), s.entries("incoming")...); len(left) != 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestVersionNamesCannotLeaveTheStore(t *testing.T) {
	s := newStore(t)
	id := write(t, s, "one").ID
	for _, name := range []string{"", ".", "..", "../versions/" + id, id + "/", id + "/..", "a-2024-04-01-", "-2024-04-01-0123456789abcdef", strings.ToUpper(id), "a-2024-13-01-0123456789abcdef", "a/b-2024-04-01-0123456789abcdef"} {
		if _, err := s.Load(name); !errors.Is(err, ErrNotFound) {
			t.Errorf("Load(%q) = %v, want ErrNotFound", name, err)
		}
	}
	if !validID("a-2024-04-01-0123456789abcdef") {
		t.Error("a good name is refused")
	}
}

func TestStoreThatIsNotThereIsEmpty(t *testing.T) {
	s := newStore(t)
	versions, bad, err := s.List()
	if len(versions) != 0 || len(bad) != 0 || err != nil {
		t.Errorf("List() = %v, %v, %v", versions, bad, err)
	}
	if _, err := s.LoadChampion("blk-chl"); !errors.Is(err, ErrNoChampion) {
		t.Errorf("LoadChampion() = %v, want ErrNoChampion", err)
	}
	if _, err := os.Stat(s.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the folder: %v", err)
	}
}

func TestListShowsTheSoundAndNamesTheDamaged(t *testing.T) {
	s := newStore(t)
	var ids []string
	for i := range 3 {
		ids = append(ids, write(t, s, fmt.Sprint(i)).ID)
	}
	unlockFolders(s.dir)
	if err := os.Remove(filepath.Join(s.versionDir(ids[1]), CardFile)); err != nil {
		t.Fatal(err)
	}
	versions, bad, err := s.List()
	if err != nil || len(versions) != 2 || versions[0].ID != ids[0] || versions[1].ID != ids[2] {
		t.Errorf("List() = %v, %v, want the first and the third by age", versions, err)
	}
	if len(bad) != 1 || !strings.Contains(bad[0].Error(), ids[1]) {
		t.Errorf("damaged: %v, want %s", bad, ids[1])
	}
}
