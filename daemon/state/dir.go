// Package state is the layout of the state folder, and reads and writes the small
// JSON files in it. A file is written whole or not at all.
//
// It knows the names of the files, not their content.
package state

import "path/filepath"

// Dir is the folder that the configuration names as state_dir.
type Dir string

func (d Dir) in(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

// Ledger returns the file of the ledger.
func (d Dir) Ledger() string { return d.in("ledger.db") }

// Spool returns the folder of granules that were fetched.
func (d Dir) Spool() string { return d.in("spool") }

// Quarantine returns the folder of granules that were set aside, with a folder
// for each dataset.
func (d Dir) Quarantine() string { return d.in("quarantine") }

// Training returns the folder in which the model of a dataset is trained.
func (d Dir) Training(dataset string) string { return d.in("train", dataset) }

// SentTraining returns the file with the training of a dataset that a worker is at.
func (d Dir) SentTraining(dataset string) string { return d.in("train", dataset, "sent.json") }

// Scaling returns the file with the scaling that was learned for a dataset.
func (d Dir) Scaling(dataset string) string { return d.in("scaling", dataset+".json") }

// Calibration returns the file with the scored days of a dataset by which the
// uncertainties of its products are calibrated.
func (d Dir) Calibration(dataset string) string { return d.in("calibration", dataset+".json") }

// Constants returns the file with the constants of optimal interpolation that were
// tuned for a dataset.
func (d Dir) Constants(dataset string) string { return d.in("constants", dataset+".json") }

// Beside returns the file with the maps of covariates that the latest products of a
// dataset were made with.
func (d Dir) Beside(dataset string) string { return d.in("covariates", dataset+".json") }

// Seen returns the file with the cells of a dataset that were observed so far.
func (d Dir) Seen(dataset string) string { return d.in("seen", dataset+".json") }

// Sources returns the file with the comparison of the sources of a dataset, day by
// day.
func (d Dir) Sources(dataset string) string { return d.in("sources", dataset+".json") }

// Backfill returns the file of the requested backfill of a dataset.
func (d Dir) Backfill(dataset string) string { return d.in("backfill-of-" + dataset + ".json") }

// BackfillPaused returns the file that is there while the backfill of a dataset
// rests.
func (d Dir) BackfillPaused(dataset string) string { return d.in("backfill-of-" + dataset + ".paused") }

// BackfillRate returns the file with the most products an hour of the backfill of a
// dataset.
func (d Dir) BackfillRate(dataset string) string { return d.in("backfill-of-" + dataset + ".rate") }

// Champion returns the file with the champion of a dataset whose products were last
// asked to be made again.
func (d Dir) Champion(dataset string) string { return d.in("champion-of-" + dataset + ".json") }

// Version returns the file with the chosen version of a Copernicus Marine dataset.
func (d Dir) Version(dataset string) string { return d.in("cmems-version-of-" + dataset) }

// Versions returns the file with what is known of the versions of a dataset.
func (d Dir) Versions(dataset string) string { return d.in("versions", dataset+".json") }

// Shadow returns the folder in which a new version of a dataset is tried, a state
// of its own.
func (d Dir) Shadow(dataset string) string { return d.in("shadow", dataset) }

// ShadowReport returns the file with the comparison of that version.
func (d Dir) ShadowReport(dataset string) string { return d.in("shadow", dataset+".json") }

// Speeds returns the file that keeps how fast models are on this machine.
func (d Dir) Speeds() string { return d.in("speeds.json") }

// Marked names the folders that this state has marked as its own.
func (d Dir) Marked() string { return d.in("marked.json") }

// Alarms returns the file with the alarms that were sent.
func (d Dir) Alarms() string { return d.in("alarms.json") }

// Coordinator returns the file that names the last coordinator of workers.
func (d Dir) Coordinator() string { return d.in("coordinator.json") }
