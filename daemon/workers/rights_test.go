package workers

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"lacuna/daemon/jobs"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/brokertest"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The rights of the table in docs/scaling.md are enough for each role, over a login,
// and no role can do the other's part.
func TestTheLeastRightsOfEachRoleAreEnough(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker with an authorizer")
	}
	t.Parallel()
	cluster := brokertest.Start(t, brokertest.Options{Secure: true, Properties: map[string]string{
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS", // who comes over the open listener
		"listener.name.sasl.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required ` +
			`user_coordinator="secret" user_worker="secret";`,
	}})
	cfg := DefaultConfig()
	cfg.Type, cfg.Prefix, cfg.Session, cfg.Partitions, cfg.Train = Kafka, "rights", 3*time.Second, 2, true
	cfg.Brokers = cluster.Addrs()
	grant(t, cfg)
	as := func(user string) Config {
		own := cfg
		password := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(password, []byte("secret\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		own.Brokers, own.SASL = cluster.SASLAddrs(), kafka.SASL{Mechanism: "plain", User: user, PasswordFile: password}
		return own
	}
	coordinator, worker := as("coordinator"), as("worker")
	log := slog.New(slog.DiscardHandler)
	_, release, err := Turn{Config: coordinator, Log: log}.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	s := &site{t: t, cfg: coordinator, folder: jobs.Folder{Storage: jobs.Dir(t.TempDir())}}
	if s.fleet, err = NewFleet(coordinator, s.folder, time.Now, log); err != nil {
		t.Fatal(err)
	}
	defer s.fleet.Close()
	if err := s.fleet.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var ran sync.WaitGroup
	defer ran.Wait()
	defer cancel()
	ran.Go(func() { _ = s.fleet.Run(ctx) })
	s.cfg = worker
	s.cfg.Tries = 1
	s.worker("a", func(_ context.Context, m jobs.Message) (jobs.Result, error) {
		if m.Granule == "bad.nc" {
			return jobs.Result{}, errors.New("it fails")
		}
		return jobs.Result{}, nil
	})
	s.await("a live job", s.send("live.nc", true))
	s.await("a job of the backfill", s.send("old.nc", false))
	if r := s.await("a bad job", s.send("bad.nc", true)); r.Dead != 1 { // it writes to the dead letters
		t.Errorf("%+v", r)
	}
	s.run("gpu", true, fine)
	s.await("a training", s.train("training"))
	if _, _, err := lag(t.Context(), s.fleet.admin, coordinator); err != nil {
		t.Errorf("the coordinator cannot count the jobs that wait: %v", err)
	}
	for _, tt := range []struct {
		who   Config
		topic string
	}{{worker, cfg.live()}, {worker, cfg.training()}, {worker, cfg.turn()}, {coordinator, cfg.results()}, {coordinator, cfg.dead()}} {
		client, err := tt.who.client(kgo.RecordRetries(1))
		if err != nil {
			t.Fatal(err)
		}
		err = client.ProduceSync(t.Context(), &kgo.Record{Topic: tt.topic, Value: []byte("x")}).FirstErr()
		client.Close()
		if !errors.Is(err, kerr.TopicAuthorizationFailed) {
			t.Errorf("the %s may write to %s: %v", tt.who.SASL.User, tt.topic, err)
		}
	}
}

// grant gives each role the rights of the table.
func grant(t *testing.T, cfg Config) {
	t.Helper()
	client, err := cfg.client()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, right := range []*kadm.ACLBuilder{
		kadm.NewACLs().Allow("User:coordinator").AllowHosts().Topics(cfg.live(), cfg.backfill(), cfg.training()).Operations(kadm.OpWrite, kadm.OpCreate, kadm.OpDescribe),
		kadm.NewACLs().Allow("User:coordinator").AllowHosts().Topics(cfg.results(), cfg.turn()).Operations(kadm.OpRead, kadm.OpCreate, kadm.OpDescribe),
		kadm.NewACLs().Allow("User:coordinator").AllowHosts().Groups(cfg.Prefix + ".coordinator").Operations(kadm.OpRead),
		kadm.NewACLs().Allow("User:coordinator").AllowHosts().Groups(cfg.group()).Operations(kadm.OpDescribe),
		kadm.NewACLs().Allow("User:worker").AllowHosts().Topics(cfg.live(), cfg.backfill(), cfg.training()).Operations(kadm.OpRead, kadm.OpDescribe),
		kadm.NewACLs().Allow("User:worker").AllowHosts().Topics(cfg.results(), cfg.dead()).Operations(kadm.OpWrite, kadm.OpCreate, kadm.OpDescribe),
		kadm.NewACLs().Allow("User:worker").AllowHosts().Groups(cfg.group(), cfg.trainers()).Operations(kadm.OpRead),
	} {
		made, err := kadm.NewClient(client).CreateACLs(t.Context(), right.ResourcePatternType(kadm.ACLPatternLiteral))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range made {
			if one.Err != nil {
				t.Fatal(one.Err)
			}
		}
	}
}
