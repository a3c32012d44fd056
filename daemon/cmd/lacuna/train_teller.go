package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"lacuna/pipeline/finetune"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// teller tells people, the daemon and a log how a training goes: a bar on a
// terminal, a line now and then elsewhere, JSON lines for the daemon.
type teller struct {
	stdout, stderr io.Writer
	json           bool
	terminal       bool
	file           *os.File // of the log; nil: none
	csv            *csv.Writer

	mu      sync.Mutex // guards what follows: backgrounds report from goroutines
	phase   string
	began   time.Time // of the phase in this process
	first   int       // step with which it began here
	told    time.Time
	score   *float64 // the last one
	spent   []phaseTime
	pool    *mpb.Progress
	bar     *mpb.Bar
	caption string
}

// tellEvery is how often a line is written where there is no terminal.
const tellEvery = 5 * time.Second

func newTeller(stdout, stderr io.Writer, jsonLines bool, logPath string) (*teller, error) {
	t := &teller{stdout: stdout, stderr: stderr, json: jsonLines}
	if file, ok := stderr.(*os.File); ok && !jsonLines {
		t.terminal = term.IsTerminal(int(file.Fd()))
	}
	if logPath == "" {
		return t, nil
	}
	file, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	t.file, t.csv = file, csv.NewWriter(file)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		_ = t.csv.Write([]string{"time", "phase", "step", "steps", "loss", "held_out_score"}) // told by close
	}
	return t, nil
}

// trainEvent is a JSON line about progress.
type trainEvent struct {
	Event       string   `json:"event"`
	Phase       string   `json:"phase,omitempty"`
	Step        int      `json:"step,omitempty"`
	Steps       int      `json:"steps,omitempty"`
	Loss        float64  `json:"loss,omitempty"`
	Score       *float64 `json:"held_out_score,omitempty"`
	LeftSeconds *float64 `json:"left_seconds,omitempty"` // of the phase
	Dataset     string   `json:"dataset,omitempty"`
	Checkpoints string   `json:"checkpoints,omitempty"`
	Resumed     bool     `json:"resumed,omitempty"`
	Reasons     []string `json:"reasons,omitempty"`
}

// trained is the last JSON line of a training that made a version.
type trained struct {
	Event    string   `json:"event"`
	Version  string   `json:"version"`
	State    string   `json:"state"` // promoted, refused, waiting (for a person), written
	Won      bool     `json:"won"`
	Parent   string   `json:"parent,omitempty"`
	Champion string   `json:"champion,omitempty"` // that it was judged against
	Reasons  []string `json:"reasons"`
}

// job tells what is about to be trained.
func (t *teller) job(j *trainJob) {
	if t.json {
		t.line(trainEvent{Event: "start", Dataset: j.flags.dataset, Checkpoints: j.request.Folder, Resumed: j.resumed})
		return
	}
	verb := "training"
	if j.resumed {
		verb = "going on with the training of"
	}
	s := j.request.Settings
	days := daysOfSets(j.sets)
	if len(j.beside) > 0 {
		days += " days, beside " + daysOfSets(j.beside)
	}
	fmt.Fprintf(t.stderr, "%s a %s %s for %s on %s days; checkpoints in %s\n", verb, s.Imputer.Design.Size, s.Imputer.Design.Backbone,
		j.flags.dataset, days, j.request.Folder)
}

func daysOfSets(sets []dataset) string {
	days := make([]string, len(sets))
	for i, set := range sets {
		days[i] = strconv.Itoa(len(set.series.Days))
	}
	return strings.Join(days, " + ")
}

// tell hears every step.
func (t *teller) tell(p finetune.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if p.Phase != t.phase {
		t.endBar()
		t.spent = append(t.spent, phaseTime{p.Phase, now})
		t.phase, t.began, t.first, t.score, t.told = p.Phase, now, p.Step, nil, time.Time{}
	}
	if p.Score != nil {
		t.score = p.Score
	}
	t.record(now, p)
	left := t.left(now, p)
	t.caption = caption(p, t.score, left)
	if t.terminal {
		t.show(p)
		return
	}
	if now.Sub(t.told) < tellEvery && p.Score == nil && p.Step < p.Steps {
		return
	}
	t.told = now
	if !t.json {
		fmt.Fprintf(t.stderr, "%s %d/%d  %s\n", p.Phase, p.Step, p.Steps, t.caption)
		return
	}
	event := trainEvent{Event: "progress", Phase: p.Phase, Step: p.Step, Steps: p.Steps, Loss: p.Loss, Score: p.Score}
	if left > 0 {
		seconds := left.Seconds()
		event.LeftSeconds = &seconds
	}
	t.line(event)
}

// phaseTime is when a phase began.
type phaseTime struct {
	phase string
	began time.Time
}

// phases returns how long each took until now, in seconds.
func (t *teller) phases() map[string]float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]float64{}
	for i, s := range t.spent {
		end := time.Now()
		if i+1 < len(t.spent) {
			end = t.spent[i+1].began
		}
		out[s.phase] += end.Sub(s.began).Seconds()
	}
	return out
}

// left estimates the rest of the phase from its pace in this process.
func (t *teller) left(now time.Time, p finetune.Progress) time.Duration {
	done := p.Step - t.first
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(t.began)) / float64(done) * float64(p.Steps-p.Step))
}

func caption(p finetune.Progress, score *float64, left time.Duration) string {
	text := ""
	if p.Loss != 0 {
		text += fmt.Sprintf("loss %.4g  ", p.Loss)
	}
	if score != nil {
		text += fmt.Sprintf("held-out %.4g  ", *score)
	}
	if left > 0 {
		text += left.Round(time.Second).String() + " left"
	}
	return text
}

func (t *teller) record(now time.Time, p finetune.Progress) {
	if t.csv == nil || p.Loss == 0 && p.Score == nil {
		return
	}
	score := ""
	if p.Score != nil {
		score = strconv.FormatFloat(*p.Score, 'g', -1, 64)
	}
	// An error stays with the writer and is told by close.
	_ = t.csv.Write([]string{
		now.UTC().Format(time.RFC3339), p.Phase, strconv.Itoa(p.Step), strconv.Itoa(p.Steps),
		strconv.FormatFloat(p.Loss, 'g', -1, 64), score,
	})
	t.csv.Flush()
}

// show moves the bar of the phase.
func (t *teller) show(p finetune.Progress) {
	if t.bar == nil {
		t.pool = mpb.New(mpb.WithOutput(t.stderr), mpb.WithWidth(40))
		t.bar = t.pool.AddBar(int64(max(p.Steps, 1)), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.Phase+" "), decor.CountersNoUnit("%d/%d ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				t.mu.Lock()
				defer t.mu.Unlock()
				return t.caption
			})))
	}
	t.bar.SetCurrent(int64(p.Step))
}

// endBar removes the bar. The lock is held, and the bar's caption wants it:
// it is given up for the moment.
func (t *teller) endBar() {
	if t.bar == nil {
		return
	}
	bar, pool := t.bar, t.pool
	t.bar = nil
	t.mu.Unlock()
	bar.Abort(true)
	pool.Wait()
	t.mu.Lock()
}

func (t *teller) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endBar()
}

// done tells the outcome.
func (t *teller) done(d trained) error {
	if t.json {
		return json.NewEncoder(t.stdout).Encode(d)
	}
	for _, r := range d.Reasons {
		fmt.Fprintf(t.stderr, "  %s\n", r)
	}
	words := map[string]string{
		"promoted": "is champion now", "refused": "was refused: it stays in the store, and does not serve",
		"waiting": "won and waits for 'lacuna models promote'", "written": "was written and not judged for promotion",
	}
	_, err := fmt.Fprintf(t.stdout, "%s %s\n", d.Version, words[d.State])
	return err
}

// stopped tells the daemon that the run is not over, and may go on.
func (t *teller) stopped(why error) {
	if t.json {
		t.line(trainEvent{Event: "stopped", Reasons: []string{why.Error()}})
	}
}

func (t *teller) line(v any) {
	// Nobody listening is no reason to stop training.
	_ = json.NewEncoder(t.stdout).Encode(v)
}

// close tells what went wrong with the log.
func (t *teller) close() error {
	if t.file == nil {
		return nil
	}
	t.csv.Flush()
	return errors.Join(t.csv.Error(), t.file.Close())
}
