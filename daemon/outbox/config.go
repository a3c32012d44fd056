package outbox

import (
	"errors"
	"path"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/internal/faults"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/s3"
)

// Config is where products go, beside the status page.
type Config struct {
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

// DefaultConfig returns the settings that hold where a file is silent.
func DefaultConfig() Config {
	return Config{
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

// Validate reports everything wrong with c. Each message begins with the key.
func (c Config) Validate() error {
	errs := faults.Of(c.Config.Validate())
	errs.Check(c.BaseURL == "" || strings.Contains(c.BaseURL, "://"), "base_url is %q, must be like https://example.org/products", c.BaseURL)
	errs.Add(faults.In("disk", c.Disk.Validate()))
	if c.S3 != nil {
		errs.Add(faults.In("s3", c.S3.Validate()))
	}
	if c.Kafka != nil {
		errs.Add(faults.In("kafka", c.Kafka.Validate()))
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

// SinkNames returns the names under which the configured sinks stand in the
// ledger, without opening them.
func (c Config) SinkNames() []string {
	names := []string{"disk"}
	if c.S3 != nil {
		names = append(names, "s3:"+path.Join(c.S3.Bucket, c.S3.Prefix))
	}
	if c.Kafka != nil {
		names = append(names, "kafka:"+c.Kafka.Prefix)
	}
	return names
}

// CheckSecretFiles refuses files of the sinks that others may read or change.
// The sinks read them by themselves, with what the libraries have for it.
func (c Config) CheckSecretFiles() error {
	files := map[string]string{}
	if c.Kafka != nil && !c.Kafka.Embedded {
		files["publish.kafka.sasl.password_file"] = c.Kafka.SASL.PasswordFile
		files["publish.kafka.tls.key_file"] = c.Kafka.TLS.KeyFile
	}
	if c.S3 != nil {
		files["publish.s3.credentials_file"] = c.S3.CredentialsFile
	}
	return fetch.CheckSecretFiles(files)
}

// Keep returns the rules in the words of package disk.
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
