package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"lacuna/fetch"
	"lacuna/internal/faults"
	"lacuna/publish"
	"lacuna/publish/disk"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/embedded"
	"lacuna/publish/s3"
	"lacuna/publish/zarr"
)

// Config is the section publish of the configuration: the sinks of products.
type Config struct {
	publish.Config `yaml:",inline"`
	Folders        publish.Folders `yaml:"folders"`    // of products below that of their dataset, made of {year}, {month}, {day} and {doy}; it stays once there are products
	BaseURL        string          `yaml:"base_url"`   // address of products_dir for receivers; empty: links are relative
	QuickLook      bool            `yaml:"quick_look"` // a picture beside every product
	Disk           Disk            `yaml:"disk"`
	S3             *S3             `yaml:"s3"`      // the same tree in a bucket; absent: none
	Kafka          *Kafka          `yaml:"kafka"`   // absent: no Kafka
	Zarr           *Zarr           `yaml:"zarr"`    // a growing Zarr store a dataset, in a folder; absent: none
	ZarrS3         *S3             `yaml:"zarr_s3"` // the same stores in a bucket; absent: none
	FTP            *FTP            `yaml:"ftp"`     // products are pushed to an FTP server; absent: none
	SFTP           *SFTP           `yaml:"sftp"`    // products are pushed to an SSH server; absent: none
}

// Zarr is the folder that Zarr stores are kept in.
type Zarr struct {
	Dir string `yaml:"dir"` // folder of the stores, DATASET.zarr
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
		Config: publish.DefaultConfig(), Folders: publish.DefaultFolders, QuickLook: true,
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
	if err := c.Folders.Check(); err != nil {
		errs.Add(fmt.Errorf("folders is %w", err))
	}
	for _, k := range c.sinks() {
		errs.Add(faults.In(k.key, k.validate(c)))
	}
	errs.Check(c.S3 == nil || c.ZarrS3 == nil || c.S3.Endpoint != c.ZarrS3.Endpoint || path.Join(c.S3.Bucket, c.S3.Prefix) != path.Join(c.ZarrS3.Bucket, c.ZarrS3.Prefix),
		"zarr_s3.prefix is that of s3, must be one of its own")
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
	return disk.Store{Root: root, Folders: c.Folders, FloorBytes: c.Disk.FloorMiB * mib, Mark: new(publish.Mark), Hold: new(disk.Hold), Hashed: new(publish.Hashed)}
}

// Kafka is the cluster that products go to, or an embedded broker to try it.
type Kafka struct {
	Embedded     bool `yaml:"embedded"`      // use a broker in memory on the loopback interface, for trying out
	EmbeddedPort int  `yaml:"embedded_port"` // port of that broker; 0: any free one
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

// UnmarshalYAML fills in the defaults before the keys are read.
func (k *Kafka) UnmarshalYAML(unmarshal func(any) error) error {
	type plain Kafka
	*k = Kafka{Config: kafka.DefaultConfig()}
	return unmarshal((*plain)(k))
}

// Validate reports everything wrong with z.
func (z *Zarr) Validate() error {
	if z.Dir == "" {
		return errors.New("dir is empty, must be a folder for Zarr stores")
	}
	return nil
}

// Validate reports everything wrong with k.
func (k *Kafka) Validate() error {
	cfg := k.Config
	if k.Embedded {
		if len(cfg.Brokers) > 0 {
			return errors.New("embedded is true, but brokers are named too: remove one of the two")
		}
		cfg.Brokers = []string{"127.0.0.1:9092"} // a placeholder: the address is known when the broker runs
	}
	return cfg.Validate()
}

// kind is one kind of sink, with everything that depends on it.
type kind struct {
	key string // its section of the configuration
	// name returns the name of the sink in the ledger; empty: it is not
	// configured.
	name     func(c Config) string
	validate func(c Config) error
	secrets  func(c Config) map[string]string // secret files, by their keys in the section
	open     func(c Config, store disk.Store, log *slog.Logger) (sink Placed, close func(), err error)

	// trial describes the check of the sink; nil: it has none.
	trial func(c Config) Trial
}

// Trial is the name of a check, the words for success and the remedy for failure.
type Trial struct{ What, Good, ToDo string }

// kinds are the kinds of sinks, in the order in which they are opened.
var kinds = []kind{
	{
		key:      "disk",
		name:     func(Config) string { return "disk" },
		validate: func(c Config) error { return c.Disk.Validate() },
		open: func(_ Config, store disk.Store, _ *slog.Logger) (Placed, func(), error) {
			return disk.NewSink(store), func() {}, nil
		},
	},
	{
		key: "s3",
		name: func(c Config) string {
			if c.S3 == nil {
				return ""
			}
			return "s3:" + path.Join(c.S3.Bucket, c.S3.Prefix)
		},
		validate: func(c Config) error { return c.S3.Validate() },
		secrets:  func(c Config) map[string]string { return map[string]string{"credentials_file": c.S3.CredentialsFile} },
		open: func(c Config, _ disk.Store, _ *slog.Logger) (Placed, func(), error) {
			bucket, err := s3.New(c.S3.Config, c.Folders)
			return bucket, func() {}, err
		},
		trial: func(c Config) Trial {
			return Trial{
				"bucket " + c.S3.Bucket, c.S3.Endpoint + " has it", "make the bucket, or mend endpoint, bucket and credentials under publish.s3",
			}
		},
	},
	{
		key: "kafka",
		name: func(c Config) string {
			if c.Kafka == nil {
				return ""
			}
			return "kafka:" + c.Kafka.Prefix
		},
		validate: func(c Config) error { return c.Kafka.Validate() },
		secrets: func(c Config) map[string]string {
			if c.Kafka.Embedded {
				return nil
			}
			return map[string]string{"sasl.password_file": c.Kafka.SASL.PasswordFile, "tls.key_file": c.Kafka.TLS.KeyFile}
		},
		open: openKafka,
		trial: func(c Config) Trial {
			if c.Kafka.Embedded {
				return Trial{} // the embedded broker starts with the daemon
			}
			return Trial{"Kafka topics " + c.Kafka.Prefix, "the cluster has them", "mend brokers, topics and credentials under publish.kafka as the message says"}
		},
	},
}

// zarrKinds are the kinds of sinks that keep Zarr stores.
var zarrKinds = []kind{
	{
		key: "zarr",
		name: func(c Config) string {
			if c.Zarr == nil {
				return ""
			}
			return zarr.FolderName
		},
		validate: func(c Config) error { return c.Zarr.Validate() },
		open: func(c Config, _ disk.Store, _ *slog.Logger) (Placed, func(), error) {
			return zarr.InFolder(c.Zarr.Dir), func() {}, nil
		},
		trial: func(c Config) Trial {
			return Trial{"Zarr stores in " + c.Zarr.Dir, "it can be written to", "make publish.zarr.dir a folder that the service may write to"}
		},
	},
	{
		key: "zarr_s3",
		name: func(c Config) string {
			if c.ZarrS3 == nil {
				return ""
			}
			return zarr.BucketName(c.ZarrS3.Config)
		},
		validate: func(c Config) error { return c.ZarrS3.Validate() },
		secrets: func(c Config) map[string]string {
			return map[string]string{"credentials_file": c.ZarrS3.CredentialsFile}
		},
		open: func(c Config, _ disk.Store, _ *slog.Logger) (Placed, func(), error) {
			bucket, err := zarr.InBucket(c.ZarrS3.Config)
			return bucket, func() {}, err
		},
		trial: func(c Config) Trial {
			return Trial{
				"bucket " + c.ZarrS3.Bucket + " of Zarr stores", c.ZarrS3.Endpoint + " has it",
				"make the bucket, or mend endpoint, bucket and credentials under publish.zarr_s3",
			}
		},
	},
}

func openKafka(c Config, _ disk.Store, log *slog.Logger) (Placed, func(), error) {
	k, end := *c.Kafka, func() {}
	if k.Embedded {
		cfg := embedded.DefaultConfig()
		cfg.Port = k.EmbeddedPort
		broker, err := embedded.New(cfg)
		if err != nil {
			return nil, end, err
		}
		end = broker.Close
		k.Brokers = []string{broker.Addr()}
		log.Info("embedded broker started: in memory, for trying out", "kafka", broker.Addr())
	}
	sink, err := kafka.New(k.Config, log)
	if err != nil {
		end()
		return nil, func() {}, err
	}
	return sink, func() { sink.Close(); end() }, nil
}

// sinks returns the kinds that are configured.
func (c Config) sinks() []kind {
	var all []kind
	for _, k := range slices.Concat(kinds, zarrKinds, pushKinds) {
		if k.name(c) != "" {
			all = append(all, k)
		}
	}
	return all
}

// SinkNames returns the names of the configured sinks in the ledger, without
// opening them.
func (c Config) SinkNames() []string {
	var names []string
	for _, k := range c.sinks() {
		names = append(names, k.name(c))
	}
	return names
}

// CheckSecretFiles refuses secret files of the sinks that others may read or
// change. The sinks read these files through their libraries, which do not check.
func (c Config) CheckSecretFiles() error {
	files := map[string]string{}
	for _, k := range c.sinks() {
		if k.secrets == nil {
			continue
		}
		for key, file := range k.secrets(c) {
			files["publish."+k.key+"."+key] = file
		}
	}
	return fetch.CheckSecretFiles(files)
}

// Try opens each sink of the configuration in turn and calls visit with it, the
// words of its trial and the error of its check. check runs a check with a
// context of its own.
func (c Config) Try(store disk.Store, log *slog.Logger, check func(func(context.Context) error) error, visit func(Placed, Trial, error)) {
	for _, k := range c.sinks() {
		var trial Trial
		if k.trial != nil {
			if trial = k.trial(c); trial == (Trial{}) {
				continue
			}
		}
		sink, end, err := k.open(c, store, log)
		if checker, ok := sink.(interface{ Check(context.Context) error }); err == nil && ok {
			err = check(checker.Check)
		}
		if err != nil && k.trial == nil { // a failure has to be reported in some words
			trial = Trial{What: "sink " + k.name(c), ToDo: "mend publish." + k.key + " in the configuration"}
		}
		visit(sink, trial, err)
		end()
	}
}
