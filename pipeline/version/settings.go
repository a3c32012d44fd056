package version

import (
	"fmt"
	"math"
	"slices"

	"lacuna/internal/faults"
	"lacuna/pipeline/impute"
	"lacuna/pipeline/learn"
	"lacuna/pipeline/masks"
	"lacuna/pipeline/nn"
	"lacuna/pipeline/nn/netfile"
	"lacuna/pipeline/partition"
	"lacuna/pipeline/prior"
	"lacuna/pipeline/samples"
	"lacuna/pipeline/skill"
)

// Strategies are the names of the ways to split an observation into context
// and query. The first two need a prior.
func Strategies() []string {
	return []string{"guided", "unconditional", "empirical", "coherent", "pixel", "block", "saliency"}
}

// Values of Settings.Only: the one part of a version that is trained, or the calibration,
// for which nothing is: the networks are those of the parent.
const (
	OnlyPrior       = "prior"
	OnlyImputer     = "imputer"
	OnlyCalibration = "calibration"
)

// Settings say how a version is made. They are recorded with it.
type Settings struct {
	Only     string              `json:"only,omitempty" yaml:"only"` // prior, imputer or calibration; empty: all
	Strategy string              `json:"strategy" yaml:"strategy"`
	Split    samples.SplitConfig `json:"split" yaml:"split"`
	Stride   int                 `json:"stride" yaml:"stride"` // cells between training patches
	// Partitions is how many ways a patch is split in where no pool draws them,
	// so that each is analysed once; 0: another one each time.
	Partitions int `json:"partitions,omitempty" yaml:"partitions"`

	Prior    learn.PriorConfig    `json:"prior" yaml:"prior"`
	Guidance prior.GuideConfig    `json:"guidance" yaml:"guidance"` // its weight is found
	Target   masks.Target         `json:"target" yaml:"target"`     // zero: the weight stays as Guidance has it
	Pool     partition.PoolConfig `json:"pool" yaml:"pool"`
	Drift    float64              `json:"drift" yaml:"drift"` // in standard deviations: how far masks may drift before a parent's prior is refitted

	// RefitPrior refits the prior of the parent, drifted or not.
	RefitPrior bool `json:"refit_prior,omitempty" yaml:"refit_prior"`

	// Teachers is how many imputers are trained first, each with a seed of its own,
	// for the one that serves to answer as they do together; 0: it learns alone.
	Teachers int `json:"teachers,omitempty" yaml:"teachers"`

	Imputer     learn.Config        `json:"imputer" yaml:"imputer"`
	Members     learn.Config        `json:"members" yaml:"members"`         // Steps 0: none
	Reliability learn.Config        `json:"reliability" yaml:"reliability"` // Steps 0: none
	Runner      impute.RunnerConfig `json:"workshop" yaml:"workshop"`

	ScoreEvery      int `json:"score_every" yaml:"score_every"` // steps between scores on days that choose
	Patience        int `json:"patience" yaml:"patience"`       // scores without a better one that end a training; 0: none do
	CheckpointEvery int `json:"checkpoint_every" yaml:"checkpoint_every"`

	Replay  Replay     `json:"replay" yaml:"replay"`
	Judging Judging    `json:"judging" yaml:"judging"`
	Rule    skill.Rule `json:"rule" yaml:"rule"`
}

// Judging sets the overlays, the mode and the members that models are judged
// with.
type Judging struct {
	Mode        impute.Mode              `json:"mode" yaml:"mode"`
	Overlays    int                      `json:"overlays" yaml:"overlays"`         // most overlays that judge
	Choosing    int                      `json:"choosing" yaml:"choosing"`         // most overlays that end trainings early and calibrate
	Scoring     int                      `json:"scoring" yaml:"scoring"`           // choosing overlays for each score of a training
	MemberCases int                      `json:"member_cases" yaml:"member_cases"` // overlays that judge for which members are drawn; of those that choose centreCases at most
	Members     int                      `json:"members" yaml:"members"`
	Observed    int                      `json:"observed" yaml:"observed"` // observations whose lowest P(query) is found; 0: none
	ODE         impute.ODE               `json:"ode" yaml:"ode"`
	Calibration impute.CalibrationConfig `json:"calibration" yaml:"calibration"`
	// Margin is how far outside of the range of the training values an output
	// may lie, as a share of that range.
	Margin float64 `json:"margin" yaml:"margin"`
}

// DefaultSettings returns the settings for a size of network. On a processor
// batches are small: two cores take as long for one of eight as a GPU for a
// hundred of sixty-four.
func DefaultSettings(size string, gpu bool) Settings {
	s := Settings{
		Strategy: "guided", Split: samples.DefaultSplit(), Stride: 32,
		Prior: learn.DefaultPrior(), Guidance: prior.DefaultGuidance(), Target: masks.DefaultTarget(), Pool: partition.DefaultPool(),
		Drift:   0.5, // half a standard deviation of the bits a mask costs: a lost sensor moves it by several
		Imputer: learn.DefaultConfig(), Runner: impute.DefaultRunner(),
		ScoreEvery: 500, Patience: 6, CheckpointEvery: 200,
		Replay: DefaultReplay(), Rule: skill.DefaultRule(),
		Judging: Judging{
			Mode: impute.Past, Overlays: 1000, Choosing: 500, Scoring: 200, MemberCases: 100, Members: 16, Observed: 8, ODE: impute.DefaultODE(),
			Calibration: impute.DefaultCalibration(), Margin: 0.5,
		},
	}
	s.Runner.Shared = true // every score of a training has other weights
	s.Prior.CheckpointEvery = 50
	s.Imputer.Design.Size = size
	// The prior runs forty times a mask: a size below the imputer keeps
	// drawing below a fifth of training.
	s.Prior.Model.Size = nn.Small
	if size == nn.Tiny || size == nn.Small {
		s.Prior.Model.Size = nn.Tiny
	}
	if gpu {
		s.Imputer.BFloat16 = true
		s.Imputer.CacheMB = 8192 // analyses of a hundred thousand partitions; made anew they would hold up the device
		s.Imputer.Workers = 16
		s.Partitions = 8
		s.Teachers = 3 // 3 % less error than one of them, for four times the steps
		s.Runner.Batch = 32
	} else {
		s.onProcessor()
	}
	s.Members = membersOf(s.Imputer, s.Imputer.Steps)
	s.Reliability = learn.ReliabilityConfig(s.Imputer)
	return s
}

// onProcessor shortens the trainings so that two cores take minutes for a small
// network.
func (s *Settings) onProcessor() {
	// A guided partition takes forty runs of a network, seconds on a processor;
	// masks of other days are free and score alike.
	s.Strategy = "empirical"
	s.Prior.Step.Steps, s.Prior.Batch, s.Prior.EvaluateEvery, s.Prior.EvaluateMasks = 600, 16, 200, 64
	s.Prior.Step.WarmupSteps, s.Prior.Step.EMADecay = 50, 0.99
	s.Pool.Size, s.Pool.Prime, s.Pool.Batch = 1024, 32, 32 // seconds a batch
	s.Imputer.Steps, s.Imputer.Batch, s.Imputer.WarmupSteps, s.Imputer.EMADecay = 800, 8, 50, 0.99
	s.Imputer.Workers = 2
	s.ScoreEvery, s.CheckpointEvery = 200, 50
	s.Judging.Overlays, s.Judging.Choosing, s.Judging.Scoring = 300, 200, 64
	s.Judging.MemberCases, s.Judging.Members = 8, 8
}

// WithPaper changes s to the preset "paper", see learn.Config.AsPaper: a single
// frame in, no variance, guidance with pixel anchors and the published weight.
func (s Settings) WithPaper() Settings {
	s.Imputer = s.Imputer.AsPaper()
	s.Strategy = "guided"
	s.Guidance, s.Target = prior.PaperGuidance(), masks.Target{}
	s.Judging.Mode = impute.Single
	s.Members.Steps, s.Teachers = 0, 0
	return s
}

// Budget holds the wishes of a person; zero leaves a setting as it is.
type Budget struct {
	Steps, PriorSteps int
	MembersSteps      int // negative: as it is; 0: no members
	ReliabilitySteps  int // negative: as it is; 0: no classifier
	// Sizes of the networks beside the imputer; empty: as they are.
	MembersSize, PriorSize string
	Batch                  int
	Teachers               int // negative: none
	Side                   int // cells
	Stride                 int // cells between training patches
	GapDays                int // days between learning and judging, at the first training of a dataset
	Seed                   uint64
}

// With returns s with the wishes of b. Intervals shrink with the steps, so that
// a short run is still scored and kept.
func (s Settings) With(b Budget) Settings {
	share := float64(s.Members.Steps) / float64(max(s.Imputer.Steps, 1))
	if b.Side > 0 {
		s.Imputer.Side, s.Prior.Side = b.Side, b.Side
		s.Stride, s.Prior.Stride = max(b.Side/2, 1), max(b.Side/2, 1)
		s.Pool = s.Pool.ForSide(b.Side)
	}
	if b.Batch > 0 {
		s.Imputer.Batch, s.Prior.Batch = b.Batch, b.Batch
	}
	if b.Steps > 0 {
		s.Imputer.Steps, s.Imputer.WarmupSteps = b.Steps, min(s.Imputer.WarmupSteps, b.Steps/10)
		s.ScoreEvery, s.CheckpointEvery = min(s.ScoreEvery, max(b.Steps/4, 1)), min(s.CheckpointEvery, max(b.Steps/4, 1))
	}
	if b.PriorSteps > 0 {
		s.Prior.Step.Steps, s.Prior.Step.WarmupSteps = b.PriorSteps, min(s.Prior.Step.WarmupSteps, b.PriorSteps/10)
		s.Prior.EvaluateEvery = min(s.Prior.EvaluateEvery, max(b.PriorSteps/3, 1))
		s.Prior.CheckpointEvery = min(s.Prior.CheckpointEvery, max(b.PriorSteps/4, 1))
	}
	if b.Seed > 0 {
		s.Prior.Seed, s.Imputer.Seed = b.Seed, b.Seed
	}
	if b.Stride > 0 {
		s.Stride = b.Stride
	}
	if b.GapDays > 0 {
		s.Split.GapDays = b.GapDays
	}
	if b.PriorSize != "" {
		s.Prior.Model.Size = b.PriorSize
	}
	if b.Teachers != 0 {
		s.Teachers = max(b.Teachers, 0)
	}
	return s.withBeside(b, share)
}

// withBeside makes the settings of the networks beside the imputer; share is how many
// steps members take for each of the imputer.
func (s Settings) withBeside(b Budget, share float64) Settings {
	members := int(math.Round(share * float64(s.Imputer.Steps)))
	if b.MembersSteps >= 0 {
		members = b.MembersSteps
	}
	size := s.Members.Design.Size
	s.Members = membersOf(s.Imputer, members)
	s.Members.Design.Size = size
	if b.MembersSize != "" {
		s.Members.Design.Size = b.MembersSize
	}
	reliability := learn.ReliabilityConfig(s.Imputer).Steps
	if b.ReliabilitySteps >= 0 {
		reliability = b.ReliabilitySteps
	}
	s.Reliability = reliabilityOf(s.Imputer, reliability)
	return s
}

// tuningRate is the learning rate of a fine-tune, as a share of that of a
// training from scratch: large first steps would undo weights that are
// good already.
const tuningRate = 0.3

// tuningSteps is how many steps a fine-tune takes, as a share of those of a
// training from scratch.
const tuningSteps = 0.6

// A fine-tune is scored after at most so many steps, and ends after so many scores
// without a better one. What it starts from is good already: days that choose found
// the best weights in the first few hundred steps of a base network and each later
// score worse, 0.157 after 500 steps and 0.225 after 3,000.
const tuningScore, tuningPatience = 200, 3

// tuningMembers is how many steps the members of a version take for each of its imputer
// where they begin with those of its parent. Their loss showed no trend over 3,000 steps.
const tuningMembers = 0.5

// From makes s the settings of a fine-tune of a version: the networks are
// those of the version, which is all that its teachers knew.
func (s *Settings) From(parent Parts) error {
	model, err := impute.Load(parent[PartImputer], nil) // for its design; it is never run
	if err != nil {
		return fmt.Errorf("read the version to begin from: %w", err)
	}
	s.Imputer.Design = model.Design()
	s.Teachers = 0
	s.Imputer.LearningRate *= tuningRate
	s.Imputer.Steps = max(int(tuningSteps*float64(s.Imputer.Steps)), 1)
	s.ScoreEvery, s.Patience = min(s.ScoreEvery, tuningScore), min(s.Patience, tuningPatience)
	if s.Members.Steps > 0 {
		s.Members.Steps = s.Imputer.Steps
		if parent[PartMembers] != nil {
			s.Members.Steps = max(int(tuningMembers*float64(s.Imputer.Steps)), 1)
		}
	}
	if parent[PartPrior] != nil {
		s.Prior.Step.Steps = max(int(tuningSteps*float64(s.Prior.Step.Steps)), 1)
	}
	for name, size := range map[Part]*string{PartMembers: &s.Members.Design.Size, PartPrior: &s.Prior.Model.Size} {
		if parent[name] == nil {
			continue
		}
		f, err := netfile.Decode(parent[name])
		if err != nil {
			return fmt.Errorf("read the version to begin from: %s: %w", name, err)
		}
		*size = f.Config.Size
	}
	return nil
}

// Validate reports everything wrong with s.
func (s Settings) Validate() error {
	errs := faults.Of(s.Split.Validate(), s.Imputer.Validate(), s.Replay.validate())
	errs.Check(slices.Contains([]string{"", OnlyPrior, OnlyImputer, OnlyCalibration}, s.Only), "only is %q, must be %q, %q or %q", s.Only, OnlyPrior, OnlyImputer, OnlyCalibration)
	errs.Check(slices.Contains(Strategies(), s.Strategy), "strategy is %q, must be one of %v", s.Strategy, Strategies())
	errs.Check(s.Teachers >= 0, "teachers is %d, must not be negative", s.Teachers)
	errs.Check(s.Teachers == 0 || s.Imputer.Design.Variance && !s.Imputer.SpreadOnly, "teachers is %d: they teach a mean and a variance, not a spread alone or a network without one", s.Teachers)
	errs.Check(s.Stride > 0, "stride is %d cells, must be positive", s.Stride)
	errs.Check(s.Prior.Side == s.Imputer.Side, "side is %d cells for the prior and %d for the imputer, must be the same", s.Prior.Side, s.Imputer.Side)
	if s.needsPrior() {
		errs.Add(s.Prior.Validate(), s.Guidance.Validate(), s.Pool.Validate())
	}
	if s.Members.Steps > 0 {
		errs.Check(s.Members.Side == s.Imputer.Side, "side is %d cells for the members, must be %d", s.Members.Side, s.Imputer.Side)
		errs.Add(s.Members.Validate(), s.Judging.ODE.Validate())
		errs.Check(s.Judging.Members > 1, "judging.members is %d, must be at least 2", s.Judging.Members)
	}
	errs.Check(s.Judging.Overlays > 0 && s.Judging.Choosing > 0 && s.Judging.Scoring > 0, "judging needs overlays of every kind")
	errs.Check(s.Judging.Margin >= 0, "judging.margin is %g, must not be negative", s.Judging.Margin)
	_, err := impute.ParseMode(string(s.Judging.Mode))
	errs.Add(err)
	return errs.Err()
}

// needsPrior reports whether the strategy draws from a prior.
func (s Settings) needsPrior() bool {
	return s.Strategy == "guided" || s.Strategy == "unconditional" || s.Only == OnlyPrior
}

// membersOf returns the settings of the members of an imputer, with so many
// steps.
func membersOf(cfg learn.Config, steps int) learn.Config {
	cfg = learn.MembersConfig(cfg)
	cfg.Steps = steps
	return cfg
}

// reliabilityOf returns the settings of the classifier beside an imputer, with
// so many steps.
func reliabilityOf(cfg learn.Config, steps int) learn.Config {
	cfg = learn.ReliabilityConfig(cfg)
	cfg.Steps, cfg.WarmupSteps = steps, min(cfg.WarmupSteps, steps/10)
	return cfg
}
