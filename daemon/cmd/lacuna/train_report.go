package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/pipeline/version"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// trainReport tells people, the daemon and a log how a training goes: a bar on a
// terminal, a line now and then elsewhere, JSON lines for the daemon.
type trainReport struct {
	stdout, stderr io.Writer
	json           bool
	terminal       bool
	file           *os.File // of the log; nil: none
	csv            *csv.Writer

	mu      sync.Mutex // guards what follows: backgrounds report from goroutines
	phase   string
	began   time.Time // of the phase in this process
	first   int       // step with which it began here
	written time.Time // the last line
	score   *float64  // the last one
	pool    *mpb.Progress
	bar     *mpb.Bar
	caption string
}

// reportEvery is how often a line is written where there is no terminal.
const reportEvery = 5 * time.Second

func newTrainReport(stdout, stderr io.Writer, jsonLines bool, logPath string) (*trainReport, error) {
	r := &trainReport{stdout: stdout, stderr: stderr, json: jsonLines}
	if file, ok := stderr.(*os.File); ok && !jsonLines {
		r.terminal = term.IsTerminal(int(file.Fd()))
	}
	if logPath == "" {
		return r, nil
	}
	file, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	r.file, r.csv = file, csv.NewWriter(file)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		_ = r.csv.Write([]string{"time", "phase", "step", "steps", "loss", "held_out_score"}) // told by close
	}
	return r, nil
}

// start tells what is about to be trained.
func (r *trainReport) start(dataset string, t *retrain.Training, sets, beside []dataset) {
	if r.json {
		r.line(retrain.Event{Event: retrain.EventStart, Dataset: dataset, Checkpoints: t.Folder(), Resumed: t.Resumed()})
		return
	}
	verb := "training"
	if t.Resumed() {
		verb = "going on with the training of"
	}
	design := t.Settings().Imputer.Design
	days := daysOfSets(sets)
	if len(beside) > 0 {
		days += " days, beside " + daysOfSets(beside)
	}
	fmt.Fprintf(r.stderr, "%s a %s %s for %s on %s days; checkpoints in %s\n", verb, design.Size, design.Backbone, dataset, days, t.Folder())
}

func daysOfSets(sets []dataset) string {
	days := make([]string, len(sets))
	for i, set := range sets {
		days[i] = strconv.Itoa(len(set.series.Days))
	}
	return strings.Join(days, " + ")
}

// progress hears every step.
func (r *trainReport) progress(p version.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if p.Phase != r.phase {
		r.endBar()
		r.phase, r.began, r.first, r.score, r.written = p.Phase, now, p.Step, nil, time.Time{}
	}
	if p.Score != nil {
		r.score = p.Score
	}
	r.record(now, p)
	left := r.left(now, p)
	r.caption = caption(p, r.score, left)
	if r.terminal {
		r.show(p)
		return
	}
	if now.Sub(r.written) < reportEvery && p.Score == nil && p.Step < p.Steps {
		return
	}
	r.written = now
	if !r.json {
		fmt.Fprintf(r.stderr, "%s %d/%d  %s\n", p.Phase, p.Step, p.Steps, r.caption)
		return
	}
	event := retrain.Event{Event: retrain.EventProgress, Phase: p.Phase, Step: p.Step, Steps: p.Steps, Loss: p.Loss, Score: p.Score}
	if left > 0 {
		seconds := left.Seconds()
		event.LeftSeconds = &seconds
	}
	r.line(event)
}

// left estimates the rest of the phase from its pace in this process.
func (r *trainReport) left(now time.Time, p version.Progress) time.Duration {
	done := p.Step - r.first
	if done <= 0 {
		return 0
	}
	return time.Duration(float64(now.Sub(r.began)) / float64(done) * float64(p.Steps-p.Step))
}

func caption(p version.Progress, score *float64, left time.Duration) string {
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

func (r *trainReport) record(now time.Time, p version.Progress) {
	if r.csv == nil || p.Loss == 0 && p.Score == nil {
		return
	}
	score := ""
	if p.Score != nil {
		score = strconv.FormatFloat(*p.Score, 'g', -1, 64)
	}
	// An error stays with the writer and is told by close.
	_ = r.csv.Write([]string{
		now.UTC().Format(time.RFC3339), p.Phase, strconv.Itoa(p.Step), strconv.Itoa(p.Steps),
		strconv.FormatFloat(p.Loss, 'g', -1, 64), score,
	})
	r.csv.Flush()
}

// show moves the bar of the phase.
func (r *trainReport) show(p version.Progress) {
	if r.bar == nil {
		r.pool = mpb.New(mpb.WithOutput(r.stderr), mpb.WithWidth(40))
		r.bar = r.pool.AddBar(int64(max(p.Steps, 1)), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(p.Phase+" "), decor.CountersNoUnit("%d/%d ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.caption
			})))
	}
	r.bar.SetCurrent(int64(p.Step))
}

// endBar removes the bar. The lock is held, and the bar's caption wants it:
// it is given up for the moment.
func (r *trainReport) endBar() {
	if r.bar == nil {
		return
	}
	bar, pool := r.bar, r.pool
	r.bar = nil
	r.mu.Unlock()
	bar.Abort(true)
	pool.Wait()
	r.mu.Lock()
}

func (r *trainReport) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endBar()
}

// done tells the outcome.
func (r *trainReport) done(e retrain.Event) error {
	r.finish()
	if r.json {
		return retrain.WriteEvent(r.stdout, e)
	}
	for _, reason := range e.Reasons {
		fmt.Fprintf(r.stderr, "  %s\n", reason)
	}
	words := map[string]string{
		retrain.StatePromoted: "is champion now", retrain.StateRefused: "was refused: it stays in the store, and does not serve",
		retrain.StateWaiting: "won and waits for 'lacuna models promote'", retrain.StateWritten: "was written and not judged for promotion",
	}
	_, err := fmt.Fprintf(r.stdout, "%s %s\n", e.Version, words[e.State])
	return err
}

// stopped tells the daemon that the run is not over, and may go on.
func (r *trainReport) stopped(why error) {
	if r.json {
		r.line(retrain.Event{Event: retrain.EventStopped, Reasons: []string{why.Error()}})
	}
}

func (r *trainReport) line(e retrain.Event) {
	// Nobody listening is no reason to stop training.
	_ = retrain.WriteEvent(r.stdout, e)
}

// close tells what went wrong with the log.
func (r *trainReport) close() error {
	if r.file == nil {
		return nil
	}
	r.csv.Flush()
	return errors.Join(r.csv.Error(), r.file.Close())
}
