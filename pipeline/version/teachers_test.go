package version

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lacuna/pipeline/engine/enginetest"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/samples"
)

func taughtSettings() Settings {
	s := shortSettings()
	s.Strategy, s.Teachers = "empirical", 2
	s.Imputer.Steps, s.ScoreEvery = 20, 10
	s.Members.Steps, s.Reliability.Steps = 0, 0
	s.Judging.Overlays, s.Judging.Choosing = 8, 8
	return s
}

// The imputer is another one than any teacher, each teacher another one than the
// others, and a run that is stopped in any of the trainings ends with the same
// weights.
func TestAVersionIsTaughtAndAnInterruptionChangesNothing(t *testing.T) {
	req := Request{Series: []samples.Series{series(t)}, Settings: taughtSettings(), Backend: enginetest.Open(t), Folder: t.TempDir()}
	teachers := map[string][]byte{}
	last, total := 0, 0
	want, err := Make(t.Context(), req, Hooks{Progress: func(p Progress) {
		if p.Phase != PhaseImputer {
			return
		}
		if p.Step < last {
			t.Errorf("progress goes back from step %d to %d", last, p.Step)
		}
		last, total = p.Step, p.Steps
		files, _ := filepath.Glob(filepath.Join(req.Folder, "teacher-*.onnx"))
		for _, f := range files {
			teachers[filepath.Base(f)], _ = os.ReadFile(f)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if last != total || total != 2*20+10 {
		t.Errorf("the progress ended at %d of %d, want 50: two teachers and half of the steps of one", last, total)
	}
	if len(teachers) != 2 || bytes.Equal(teachers["teacher-1.onnx"], teachers["teacher-2.onnx"]) {
		t.Fatalf("there were %d teachers, or equal ones", len(teachers))
	}
	for name, data := range teachers {
		if bytes.Equal(data, want.Parts[PartImputer]) {
			t.Errorf("the imputer is %s itself", name)
		}
	}
	if got := len(want.Evaluation.Reports.Teachers); got != 2 {
		t.Errorf("the evaluation tells of %d teachers", got)
	}
	if left, _ := filepath.Glob(filepath.Join(req.Folder, "teacher-*.onnx")); len(left) > 0 {
		t.Errorf("files of teachers are left: %v", left)
	}

	req.Folder = t.TempDir()
	for _, at := range []int{7, 33, 44} { // in either teacher, and in what they teach
		ctx, stop := context.WithCancel(t.Context())
		_, err := Make(ctx, req, Hooks{Progress: func(p Progress) {
			if p.Phase == PhaseImputer && p.Step >= at {
				stop()
			}
		}})
		stop()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted at step %d: error %v", at, err)
		}
	}
	got, err := Make(t.Context(), req, Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Parts[PartImputer], want.Parts[PartImputer]) {
		t.Error("the weights differ from those of an uninterrupted run")
	}
}

// A fine-tune begins with all that the teachers knew, and the preset of the paper
// has none.
func TestWhoHasNoTeachers(t *testing.T) {
	s := DefaultSettings("small", true)
	if s.Teachers == 0 {
		t.Fatal("a training from scratch on a GPU has no teachers")
	}
	if paper := s.WithPaper(); paper.Teachers != 0 {
		t.Errorf("the preset of the paper has %d teachers", paper.Teachers)
	}
	if err := s.From(Parts{PartImputer: firstModel(t).Parts[PartImputer]}); err != nil || s.Teachers != 0 {
		t.Errorf("a fine-tune has %d teachers, error %v", s.Teachers, err)
	}
	spread := DefaultSettings("small", true)
	spread.Imputer.SpreadOnly = true
	if err := spread.Validate(); err == nil || !strings.Contains(err.Error(), "teachers") {
		t.Errorf("teachers of a spread alone: %v", err)
	}
}

func TestAPatchHasAsManyPartitionsAsThereIsRoomForTheirAnalyses(t *testing.T) {
	for _, c := range []struct {
		name                       string
		wanted, patches, mb, gives int
	}{
		{"one sea", 8, 4618, 4096, 8},
		{"five seas", 8, 7300, 4096, 5},
		{"little memory", 8, 7300, 512, 4},
		{"fewer are wanted", 2, 7300, 512, 2},
	} {
		r := run{refs: make([]samples.Ref, c.patches), material: learn.Material{Analyses: learn.NewAnalyses(c.mb)}}
		r.s.Partitions, r.s.Imputer.Side = c.wanted, 64
		if n := r.partitionsOfAPatch(); n != c.gives {
			t.Errorf("%s: %d partitions of a patch, must be %d", c.name, n, c.gives)
		}
	}
}
