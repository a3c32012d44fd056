package models

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

	"lacuna/daemon/cli"
	"lacuna/daemon/cli/input"
	"lacuna/daemon/retrain"
	"lacuna/pipeline/version"
)

// trainReport tells people, the daemon and a log how a training goes: a bar on a
// terminal, a line now and then elsewhere, JSON lines for the daemon.
type trainReport struct {
	stdout, stderr io.Writer
	json           bool
	phases         *cli.Phases

	mu   sync.Mutex // guards the log: phases report from goroutines
	file *os.File   // of the log; nil: none
	csv  *csv.Writer
}

func newTrainReport(stdout, stderr io.Writer, jsonLines bool, logPath string) (*trainReport, error) {
	r := &trainReport{stdout: stdout, stderr: stderr, json: jsonLines, phases: cli.NewPhases(stderr)}
	if jsonLines {
		r.phases = cli.TellPhases(r.event)
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
		_ = r.csv.Write([]string{"time", "phase", "step", "steps", "loss", "held_out_score"}) // close returns its error
	}
	return r, nil
}

// start reports the training that begins.
func (r *trainReport) start(dataset string, t *retrain.Training, engine string, sets, beside []input.Dataset) {
	if r.json {
		r.line(retrain.Event{Event: retrain.EventStart, Dataset: dataset, Checkpoints: t.Folder(), Resumed: t.Resumed(), Engine: engine})
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

func daysOfSets(sets []input.Dataset) string {
	days := make([]string, len(sets))
	for i, set := range sets {
		days[i] = strconv.Itoa(len(set.Series.Days))
	}
	return strings.Join(days, " + ")
}

// progress is called with every step.
func (r *trainReport) progress(p version.Progress) {
	r.record(time.Now(), p)
	r.phases.Step(cli.PhaseStep(p))
}

// event tells the daemon of a step.
func (r *trainReport) event(s cli.PhaseStep, left time.Duration) {
	event := retrain.Event{Event: retrain.EventProgress, Phase: s.Phase, Step: s.Step, Steps: s.Steps, Loss: s.Loss, Score: s.Score}
	if left > 0 {
		seconds := left.Seconds()
		event.LeftSeconds = &seconds
	}
	r.line(event)
}

// record adds a step to the log.
func (r *trainReport) record(now time.Time, p version.Progress) {
	if r.csv == nil || p.Loss == 0 && p.Score == nil {
		return
	}
	score := ""
	if p.Score != nil {
		score = strconv.FormatFloat(*p.Score, 'g', -1, 64)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// An error stays with the writer, and close returns it.
	_ = r.csv.Write([]string{
		now.UTC().Format(time.RFC3339), p.Phase, strconv.Itoa(p.Step), strconv.Itoa(p.Steps),
		strconv.FormatFloat(p.Loss, 'g', -1, 64), score,
	})
	r.csv.Flush()
}

func (r *trainReport) finish() { r.phases.Finish() }

// done reports the outcome.
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
		retrain.StateUnjudged: "could not be judged: it stays in the store, and 'lacuna models promote " + e.Version + "' makes it serve all the same",
		retrain.StateWaiting:  "won and waits for 'lacuna models promote " + e.Version + "'", retrain.StateWritten: "was written and not judged for promotion",
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

// close returns the errors of the log.
func (r *trainReport) close() error {
	if r.file == nil {
		return nil
	}
	r.csv.Flush()
	return errors.Join(r.csv.Error(), r.file.Close())
}
