package daemon

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"
)

// Publish is where products go, beside the status page.
type Publish struct {
	publish.Config `yaml:",inline"`
	BaseURL        string `yaml:"base_url"`   // under which receivers reach products_dir; empty: links are relative
	QuickLook      bool   `yaml:"quick_look"` // a picture beside every product
	Disk           Disk   `yaml:"disk"`
	S3             *S3    `yaml:"s3"`    // the same tree in a bucket; absent: none
	Kafka          *Kafka `yaml:"kafka"` // absent: no Kafka
}

// Disk is how the folder of products is kept.
type Disk struct {
	FloorMiB int64    `yaml:"floor_mib"` // of the disk that stay free; below, no product is made
	KeepDays KeepDays `yaml:"keep_days"`
}

// KeepDays is how long products stay, in days; 0: for ever.
type KeepDays struct {
	NearRealTime int `yaml:"near_real_time"`
	Delayed      int `yaml:"delayed"`
	Superseded   int `yaml:"superseded"` // revisions that were replaced or retracted
}

// Kafka is the cluster that products go to, or a broker of our own to try it.
type Kafka struct {
	Embedded     bool `yaml:"embedded"`      // in memory, on the loopback interface, for trying out
	EmbeddedPort int  `yaml:"embedded_port"` // 0: any that is free
	kafka.Config `yaml:",inline"`
}

// S3 is a bucket that products go to.
type S3 struct {
	s3.Config `yaml:",inline"`
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (s *S3) UnmarshalYAML(unmarshal func(any) error) error {
	type plain S3
	*s = S3{Config: s3.DefaultConfig()}
	return unmarshal((*plain)(s))
}

func defaultPublish() Publish {
	return Publish{
		Config: publish.DefaultConfig(), QuickLook: true,
		Disk: Disk{
			FloorMiB: 1024,                     // what the spool and the ledger need to go on for a while
			KeepDays: KeepDays{Superseded: 30}, // a month to find out that the earlier revision was the better one
		},
	}
}

// UnmarshalYAML fills in the defaults before the keys are read.
func (k *Kafka) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Kafka
	*k = Kafka{Config: kafka.DefaultConfig()}
	return unmarshal((*plain)(k))
}

// Validate reports everything wrong with k.
func (k *Kafka) Validate() error {
	cfg := k.Config
	if k.Embedded {
		if len(cfg.Brokers) > 0 {
			return errors.New("embedded is true, but brokers are named: it is either the one or the others")
		}
		cfg.Brokers = []string{"127.0.0.1:9092"} // any: the real one is known when it runs
	}
	return cfg.Validate()
}

// faults returns everything wrong with p.
func (p Publish) faults() []fault {
	all := faultsOf("$.publish", p.Validate())
	check := func(ok bool, section, format string, args ...any) {
		if !ok {
			all = append(all, faultsOf(section, fmt.Errorf(format, args...))...)
		}
	}
	check(p.BaseURL == "" || strings.Contains(p.BaseURL, "://"), "$.publish", "base_url is %q, must be like https://example.org/products", p.BaseURL)
	check(p.Disk.FloorMiB >= 0, "$.publish.disk", "floor_mib is %d, must not be negative", p.Disk.FloorMiB)
	for name, days := range map[string]int{
		"near_real_time": p.Disk.KeepDays.NearRealTime, "delayed": p.Disk.KeepDays.Delayed, "superseded": p.Disk.KeepDays.Superseded,
	} {
		check(days >= 0, "$.publish.disk.keep_days", "%s is %d, must be a number of days, or 0 for ever", name, days)
	}
	if p.S3 != nil {
		all = append(all, faultsOf("$.publish.s3", p.S3.Validate())...)
	}
	if p.Kafka != nil {
		all = append(all, faultsOf("$.publish.kafka", p.Kafka.Validate())...)
	}
	return all
}

// keep returns the rules in the words of package disk.
func (d Disk) keep() disk.Keep {
	const day = 24 * time.Hour
	return disk.Keep{
		disk.NearRealTime: time.Duration(d.KeepDays.NearRealTime) * day,
		disk.Delayed:      time.Duration(d.KeepDays.Delayed) * day,
		disk.Superseded:   time.Duration(d.KeepDays.Superseded) * day,
	}
}

// store returns the folder of products that c describes.
func (c Config) store() disk.Store {
	const mib = 1 << 20
	return disk.Store{Root: c.ProductsDir, FloorBytes: c.Publish.Disk.FloorMiB * mib}
}
