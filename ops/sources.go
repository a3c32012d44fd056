package ops

import (
	"context"
	"errors"
	"time"
)

// Sources provide the data of the pages. Status is always there; a page whose
// source is nil says that it has nothing to show.
type Sources struct {
	Status   func(context.Context) (Status, error)
	Products string // folder of the finished files
	Days     Days
	Granules Granules
	Models   Models
	Actions  Actions
	// Catalogue lists the products; nil: there are no listings.
	Catalogue Catalogue
	Machine
}

// ErrNotFound says that there is no such dataset, day, granule or field.
var ErrNotFound = errors.New("not found")

// Days knows the states of the days of a dataset.
type Days interface {
	// Span returns the first and the last day with a state; zero times where
	// there is none. An unknown dataset is ErrNotFound.
	Span(ctx context.Context, dataset string) (first, last time.Time, err error)
	// Days returns the days from through to that have a state, in their order.
	Days(ctx context.Context, dataset string, from, to time.Time) ([]Day, error)
}

// Granules knows the granules and the maps in their products.
type Granules interface {
	// OfDay returns the granules with a field of that day.
	OfDay(ctx context.Context, dataset string, day time.Time) ([]GranuleLine, error)
	// Granule returns the details of a granule; ErrNotFound where there is
	// none.
	Granule(ctx context.Context, id GranuleID) (Granule, error)
	// Map returns a field of a product; ErrNotFound where there is none.
	Map(ctx context.Context, id GranuleID, field int) (Map, error)
}

// Models knows the versions of the models, and how well gaps are filled.
type Models interface {
	Models(ctx context.Context) (ModelBook, error)
	// Skill returns the newest n scores, oldest first.
	Skill(ctx context.Context, dataset string, n int) ([]Skill, error)
	// Picture returns the PNG of a window that judged a version; ErrNotFound where
	// there is none.
	Picture(ctx context.Context, version string) ([]byte, error)
}

// Actions are the actions of a visitor with the token. An error is shown to the
// visitor.
type Actions interface {
	// Retry puts a granule that was set aside back to work.
	Retry(ctx context.Context, dataset, granule string) error
	// RedoDay makes the products of a day again, as new revisions.
	RedoDay(ctx context.Context, dataset string, day time.Time, why string) error
	// Steer gives an order to the training of a dataset: pause, resume or
	// cancel. It returns a sentence about it.
	Steer(ctx context.Context, dataset, order string) (told string, err error)
}

// DayState is the state of a day in a word.
type DayState string

// The states of a day.
const (
	DayMissing      DayState = "missing"        // between days that are there, nothing was delivered
	DayWaiting      DayState = "waiting"        // delivered, and no product yet
	DayNearRealTime DayState = "near-real-time" // filled from the days before it
	DayDelayed      DayState = "delayed"        // filled from the days around it
	DayCloudedOut   DayState = "clouded-out"    // nothing was observed: filled from other days only
	DayNoGranule    DayState = "no-granule"     // the archive has no granule: filled from other days only
	DayQuarantined  DayState = "quarantined"    // set aside; needs an operator
)

// Day is a day of a dataset.
type Day struct {
	Date  time.Time // midnight, UTC
	State DayState
}

// GranuleID names a granule, or one revision of its product.
type GranuleID struct {
	Dataset, Name string
	Revision      int // 0: the newest
}

// GranuleLine is a granule in a list.
type GranuleLine struct {
	ID    GranuleID
	State string
	Time  time.Time // time of its first field; zero: it was not read
}

// Granule holds the details of a granule for its page.
type Granule struct {
	ID          GranuleID
	State       string
	Reason      string    // why it was set aside; else empty
	Note        string    // why nothing was observed, in a sentence; empty: something was
	First, Last time.Time // times of sensing; zero until it was read
	Fields      int       // maps in its product; 0: it has none
	Input       File      // as it was delivered
	Product     *Made     // nil: there is none
	Revisions   []Revision
	History     []Event
	ToDo        string // next step for the operator; empty: none
	Deliveries  []Delivery
}

// File is a file with its size and hash.
type File struct {
	Name   string
	Bytes  int64
	SHA256 string
	URL    string // path on this server; empty: not served
}

// Made is the product of a granule.
type Made struct {
	File
	QuickLook      string // below the folder of products; empty: none
	Members        *File  // file of its members; nil: none
	Drawn          int    // number of members that were drawn, of which the quick look shows two; 0: none
	Variable       string
	Units          string
	Mode           string
	Model          string // version of the model, or method
	Seed           uint64
	Created        time.Time
	ObservedBefore float64 // share of the sea, 0..1
	FilledAfter    float64
	Retracted      string // reason of the retraction; empty: not retracted
}

// Revision is one of the products of a granule.
type Revision struct {
	Number int
	Stored time.Time
	Note   string // such as its mode, or that it was retracted
}

// Event is a line of a granule's history.
type Event struct {
	At   time.Time
	Text string // a sentence
}

// Delivery is a delivery of a product to one sink, made or waiting.
type Delivery struct {
	Sink     string
	Kind     string // publish, retract or replay
	State    string // waiting, delivered or aside
	At       time.Time
	Attempts int
	Problem  string
	Message  string // reference for readers, such as the key of the Kafka message; empty: none
}

// Map is a field of a product, one number a cell, row by row.
type Map struct {
	Variable   string // for people
	Units      string
	SigmaUnits string
	Log        bool // colours follow the logarithm of the values
	Time       time.Time
	Lat, Lon   []float64    // axes of the rows and the columns, rising or falling
	Places     [2][]float32 // latitude and longitude of each cell, where they do not follow from the axes
	Value      []float32    // NaN where there is none
	Sigma      []float32
	Flags      []byte // bits: 1 land, 2 filled, 4 cannot be filled, 8 refused by quality control, none of these: observed; 16 its error is the input's own
}

// ModelBook is the content of the model store.
type ModelBook struct {
	Versions   []Version   // newest first
	Promotions []Promotion // newest first
	Problems   []string    // parts of the store that cannot be read
}

// Version is a version of a model.
type Version struct {
	ID, Dataset, Kind string
	Parent            string // the version it was made from; empty: none
	States            []string
	Created           time.Time
	From, To          time.Time // range of the days it was trained on
	TrainDays         int
	Parameters        int64
	Bytes             int64
	Hardware          string
	TrainingSeconds   float64
	ScoredOn          string
	Scores            []Score // by name
	Pictured          bool    // there is a picture of it and of what filled before
}

// Score is a score of a version and of the champion of its day, on the same
// gaps.
type Score struct {
	Name                 string
	Champion, Challenger float64 // NaN: not measured
}

// Promotion is a line of the log of promotions.
type Promotion struct {
	At                         time.Time
	Action                     string // promote, rollback, refuse or unjudged
	Dataset, Version, Previous string
	By                         string
	Why                        []string
}
