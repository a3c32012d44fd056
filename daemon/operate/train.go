package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lacuna/daemon/retrain"
	"lacuna/internal/faults"
	"lacuna/ledger"
)

// Orders to the training of a dataset.
const (
	PauseTraining  = "pause"  // stop it with a checkpoint, and let none begin
	ResumeTraining = "resume" // end a pause
	CancelTraining = "cancel" // end the one under way for good
)

// Steered is what an order did.
type Steered struct {
	Dataset string `json:"dataset"`
	Order   string `json:"order"`
	Changed bool   `json:"changed"` // false: it was so already
	Words   string `json:"words"`
}

// Training is how the training of a dataset stands.
type Training = retrain.Report

// errNotTrained says that the service has no trainings.
var errNotTrained = errors.New("nothing is trained here: train.store is empty")

// Trainings returns how the training of a dataset stands, or of all where the name
// is empty.
func (s Settings) Trainings(dataset string, now time.Time) ([]Training, error) {
	sets, err := s.named(dataset)
	if err != nil {
		return nil, err
	}
	if s.Train.Store == "" {
		return nil, errNotTrained
	}
	_, running := ledger.Holder(s.State.Ledger())
	var all []Training
	for _, set := range sets {
		r, err := s.desk(set.Name).Report(s.Train, set.Name, now, running)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// SteerTraining gives an order to the training of a dataset, or of all where the
// name is empty. A running daemon obeys within seconds, else the next one does.
func (s Settings) SteerTraining(dataset, order, by string, now time.Time) ([]Steered, error) {
	sets, err := s.named(dataset)
	if err != nil {
		return nil, err
	}
	if s.Train.Store == "" {
		return nil, errNotTrained
	}
	if order == CancelTraining && len(sets) > 1 {
		return nil, fmt.Errorf("%w: there are %d datasets, name the one whose training is to end", faults.ErrConfig, len(sets))
	}
	var all []Steered
	for _, set := range sets {
		done, err := s.steer(set.Name, order, by, now)
		if err != nil {
			return all, fmt.Errorf("%s the training of %s: %w", order, set.Name, err)
		}
		all = append(all, done)
	}
	return all, nil
}

func (s Settings) steer(dataset, order, by string, now time.Time) (Steered, error) {
	done := Steered{Dataset: dataset, Order: order}
	var err error
	words := map[bool]string{}
	switch order {
	case PauseTraining:
		done.Changed, err = s.desk(dataset).Pause(by, now)
		words = map[bool]string{true: "is paused: a training under way stops with a checkpoint, and none begins until it is resumed", false: "was paused already"}
	case ResumeTraining:
		done.Changed, err = s.desk(dataset).Resume()
		words = map[bool]string{true: "goes on: a training that is half done from its checkpoints, a new one when it is due", false: "was not paused"}
	case CancelTraining:
		done.Changed, err = true, s.desk(dataset).Cancel(by, now)
		words = map[bool]string{true: "ends without a version; the champion serves on, and the next trigger begins another"}
	default:
		err = fmt.Errorf("%q is no order: pause, resume or cancel", order)
	}
	done.Words = "the training of " + dataset + " " + words[done.Changed]
	return done, err
}

func (s Settings) desk(dataset string) retrain.Desk { return retrain.Desk(s.State.Training(dataset)) }

// Steer gives an order to the training of a dataset from the page.
func (o *Operations) Steer(_ context.Context, dataset, order string) (string, error) {
	if dataset == "" {
		return "", errors.New("name the dataset")
	}
	done, err := o.cfg.SteerTraining(dataset, order, "a visitor of the page with the token", o.now())
	if err != nil {
		return "", err
	}
	return done[0].Words, nil
}
