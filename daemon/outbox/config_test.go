package outbox

import (
	"log/slog"
	"strings"
	"testing"

	"lacuna/internal/convert"
	"lacuna/publish/kafka"
	"lacuna/publish/push"
	"lacuna/publish/s3"
)

func TestSinksStandInTheLedgerByTheNamesTheyHave(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Kafka = &Kafka{Config: kafka.DefaultConfig()}
	cfg.Kafka.Brokers = []string{"127.0.0.1:1"}
	cfg.S3 = &S3{Config: s3.Config{Endpoint: "http://127.0.0.1:1", Bucket: "b", Prefix: "p/q"}}
	cfg.Zarr = &Zarr{Dir: t.TempDir()}
	cfg.ZarrS3 = &S3{Config: s3.Config{Endpoint: "http://127.0.0.1:1", Bucket: "b", Prefix: "zarr/"}}
	cfg.FTP = &FTP{push.DefaultFTPConfig()}
	cfg.FTP.Address, cfg.FTP.User, cfg.FTP.Root = "ftp.example.org", "me", "/in/"
	cfg.SFTP = &SFTP{push.DefaultSFTPConfig()}
	cfg.SFTP.Address, cfg.SFTP.User, cfg.SFTP.KeyFile, cfg.SFTP.KnownHosts = "ftp.example.org:2222", "me", "key", "known_hosts"
	o := &Outbox{log: slog.New(slog.DiscardHandler)}
	sinks, err := o.open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	names := convert.Each(sinks, func(s Placed) string { return s.Name() })
	if got := cfg.SinkNames(); strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("SinkNames() = %v, the sinks are %v", got, names)
	}
}

func TestZarrStoresHaveAPlaceOfTheirOwn(t *testing.T) {
	bucket := s3.Config{Endpoint: "http://127.0.0.1:1", Bucket: "b", Prefix: "p"}
	cfg := DefaultConfig()
	cfg.S3, cfg.ZarrS3 = &S3{Config: bucket}, &S3{Config: bucket}
	cfg.Zarr = &Zarr{}
	err := cfg.Validate()
	for _, want := range []string{"zarr.dir is empty", "zarr_s3.prefix is that of s3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() = %v, want a message with %q", err, want)
		}
	}
	cfg.ZarrS3.Prefix, cfg.Zarr.Dir = "zarr", "somewhere"
	if err := cfg.Validate(); err != nil {
		t.Errorf("Validate() = %v with places of their own", err)
	}
}
