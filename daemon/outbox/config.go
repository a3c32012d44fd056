package outbox

import (
	"strings"
	"time"

	"lacuna/internal/faults"
	"lacuna/publish"
	"lacuna/publish/disk"
)

// Config is the section publish of the configuration: the sinks of products.
type Config struct {
	publish.Config `yaml:",inline"`
	BaseURL        string `yaml:"base_url"`   // address of products_dir for receivers; empty: links are relative
	QuickLook      bool   `yaml:"quick_look"` // a picture beside every product
	Disk           Disk   `yaml:"disk"`
	S3             *S3    `yaml:"s3"`    // the same tree in a bucket; absent: none
	Kafka          *Kafka `yaml:"kafka"` // absent: no Kafka
}

// Disk are the limits of the folder of products.
type Disk struct {
	FloorMiB int64    `yaml:"floor_mib"` // free space that stays on the disk; with less, no product is made
	KeepDays KeepDays `yaml:"keep_days"`
}

// KeepDays is the retention of products, in days; 0: for ever.
type KeepDays struct {
	NearRealTime int `yaml:"near_real_time"`
	Delayed      int `yaml:"delayed"`
	Superseded   int `yaml:"superseded"` // revisions that were replaced or retracted
}

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
		Config: publish.DefaultConfig(), QuickLook: true,
		Disk: Disk{
			FloorMiB: 1024,                     // enough for the spool and the ledger to go on for a while
			KeepDays: KeepDays{Superseded: 30}, // a month to find out that the earlier revision was the better one
		},
	}
}

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	errs := faults.Of(c.Config.Validate())
	errs.Check(c.BaseURL == "" || strings.Contains(c.BaseURL, "://"), "base_url is %q, must be like https://example.org/products", c.BaseURL)
	for _, k := range c.sinks() {
		errs.Add(faults.In(k.key, k.validate(c)))
	}
	return errs.Err()
}

// Validate reports everything wrong with d.
func (d Disk) Validate() error {
	var errs, days faults.List
	errs.Check(d.FloorMiB >= 0, "floor_mib is %d, must not be negative", d.FloorMiB)
	for name, n := range map[string]int{
		"near_real_time": d.KeepDays.NearRealTime, "delayed": d.KeepDays.Delayed, "superseded": d.KeepDays.Superseded,
	} {
		days.Check(n >= 0, "%s is %d, must be a number of days, or 0 for ever", name, n)
	}
	errs.Add(faults.In("keep_days", days.Err()))
	return errs.Err()
}

// Keep returns the rules of retention for package disk.
func (d Disk) Keep() disk.Keep {
	const day = 24 * time.Hour
	return disk.Keep{
		disk.NearRealTime: time.Duration(d.KeepDays.NearRealTime) * day,
		disk.Delayed:      time.Duration(d.KeepDays.Delayed) * day,
		disk.Superseded:   time.Duration(d.KeepDays.Superseded) * day,
	}
}

// Store returns the folder of products below a root.
func (c Config) Store(root string) disk.Store {
	const mib = 1 << 20
	return disk.Store{Root: root, FloorBytes: c.Disk.FloorMiB * mib}
}
