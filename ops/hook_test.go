package ops

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func names(alarms []Alarm) []string {
	var all []string
	for _, a := range alarms {
		all = append(all, a.Key())
	}
	return all
}

func TestEveryAlarmHasASummaryAndARemedy(t *testing.T) {
	s := example()
	s.Hung, s.NoGPU, s.Unreloaded = "worker of blk-chl", "no device file", "lacuna.yaml:3: unknown key"
	s.Datasets[0] = Dataset{
		Name: "blk-chl", NewestField: s.Now.Add(-5 * day), Problem: "not reachable", Unfinished: "disk full",
		TrainFailed: "no memory", Drift: "error 40 % above that of last month", NewVersion: "version 202411 is out", Due: s.Now.Add(-time.Hour),
	}
	s.Datasets[0].Train = &Training{
		State: "paused", Since: s.Now.Add(-8 * day), Refusals: 3, NoGPU: "the last one ran on the processor", Last: &Outcome{Reasons: []string{"against: 2 % more error than the champion"}},
	}
	s.Datasets[1].Train = &Training{State: "training", Since: s.Now.Add(-6 * day), Refusals: 2}
	s.Datasets[1].DiskFull, s.Datasets[1].Problem = true, "no space left"
	s.Datasets[0].AsideToday, s.Datasets[0].Blank = 1, 12
	s.Sinks = []Sink{{Name: "disk", Unknown: 1}, {Name: "kafka:lacuna", Waiting: 3, Oldest: s.Now.Add(-7 * time.Hour), Aside: 1, Foreign: "it belongs to another state", Conflicts: 1}}
	s.Taken = []Taken{
		{Sink: "kafka:lacuna", Dataset: "blk-chl", Granule: "g.nc", Revision: 2, There: "b", Ours: "a"},
		{Sink: "disk", Dataset: "blk-chl", Granule: "g.nc", Revision: 3, There: "c"},
	}
	s.Disks = []Disk{{Folder: "products", FreeBytes: 1 << 30}, {Folder: "state", FreeBytes: 1 << 40}}
	limits := DefaultHookConfig().Limits
	limits.SetAside = 1
	got := Alarms(s, limits)
	want := []string{
		"archive/blk-chl", "aside/kafka:lacuna", "backlog/kafka:lacuna", "blank/blk-chl", "config/", "conflict/kafka:lacuna", "disk/products", "fill/blk-chl", "gpu/", "gpu/blk-chl", "hung/",
		"intake/med-sst", "lag/blk-chl", "late/blk-chl", "overdue/blk-chl", "owner/kafka:lacuna", "quarantine/blk-chl", "refused/blk-chl", "restored/disk", "skill/blk-chl", "training/blk-chl", "version/blk-chl",
	}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("Alarms() (-want +got):\n%s", diff)
	}
	for _, a := range got {
		if a.Summary == "" || a.Remedy == "" {
			t.Errorf("%s has no summary or remedy: %+v", a.Key(), a)
		}
	}
	if i := slices.IndexFunc(got, func(a Alarm) bool { return a.Name == "refused" }); i < 0 || !strings.Contains(got[i].Summary, "did not win, the last: 2 % more error") {
		t.Errorf("the alarm of refusals does not say why: %v", got)
	}
	if quiet := Alarms(Status{Now: s.Now, Datasets: []Dataset{{Name: "a", NewestField: s.Now.Add(-day), CloudedOut: 25, NoGranule: 5}}}, limits); len(quiet) != 0 {
		t.Errorf("a service that is well raises %v", names(quiet))
	}
	if off := Alarms(s, Limits{}); len(names(off)) != len(want)-6 {
		t.Errorf("without limits there are %v", names(off))
	}
}

// A field is late by the step of its series, not by days.
func TestAlarmsGoByTheStepOfTheSeries(t *testing.T) {
	now := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name              string
		step, age, within time.Duration
		want              []string
	}{
		{"monthly, a month and two days old", 31 * day, 33 * day, 0, nil},
		{"monthly, a month and four days old", 31 * day, 35 * day, 0, []string{"lag/sea"}},
		{"8-day, ten days old", 8 * day, 10 * day, 0, nil},
		{"8-day, twelve days old", 8 * day, 12 * day, 0, []string{"lag/sea"}},
		{"daily, five days old", day, 5 * day, 0, []string{"lag/sea"}},
		{"not known, five days old", 0, 5 * day, 0, []string{"lag/sea"}},
		{"hourly, expected within three hours, not yet", time.Hour, 4 * time.Hour, 3 * time.Hour, nil},
		{"hourly, expected within three hours", time.Hour, 4*time.Hour + time.Minute, 3 * time.Hour, []string{"late/sea"}},
		{"monthly, expected within ten days", 31 * day, 42 * day, 10 * day, []string{"lag/sea", "late/sea"}},
	} {
		d := Dataset{Name: "sea", NewestField: now.Add(-tt.age), StepSeconds: tt.step.Seconds()}
		if tt.within > 0 {
			d.Due = d.NewestField.Add(tt.step + tt.within)
		}
		got := names(Alarms(Status{Now: now, Datasets: []Dataset{d}}, Limits{Lag: 3*day + 12*time.Hour}))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		d.Now = now // a simulated sea of years ago is late by its own clock, not by ours
		got = names(Alarms(Status{Now: now.AddDate(2, 0, 0), Datasets: []Dataset{d}}, Limits{Lag: 3*day + 12*time.Hour}))
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s, simulated: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestAnAlarmIsSentOnceThenAgainAfterTheIntervalAndWhenItIsOver(t *testing.T) {
	start := time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC)
	lag, disk := Alarm{Name: "lag", Subject: "a"}, Alarm{Name: "disk", Subject: "state"}
	told := map[string]notice{}
	tests := []struct {
		after   time.Duration
		current []Alarm
		want    []string
	}{
		{0, nil, nil},
		{time.Minute, []Alarm{lag}, []string{"firing lag 0"}},
		{2 * time.Minute, []Alarm{lag}, nil},
		{3 * time.Minute, []Alarm{lag, disk}, []string{"firing disk 0"}},
		{61 * time.Minute, []Alarm{lag, disk}, []string{"firing lag 1"}},
		{64 * time.Minute, []Alarm{disk}, []string{"firing disk 1", "resolved lag 2"}},
		{65 * time.Minute, []Alarm{disk}, nil},
		{66 * time.Minute, []Alarm{lag}, []string{"firing lag 0", "resolved disk 2"}},
	}
	for _, tt := range tests {
		var got []string
		for _, m := range due(start.Add(tt.after), tt.current, told, time.Hour) {
			note(told, m)
			got = append(got, m.State+" "+m.Name+" "+string(rune('0'+m.Repeat)))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("after %v (-want +got):\n%s", tt.after, diff)
		}
	}
}

// receiver is a webhook that keeps its messages.
type receiver struct {
	*httptest.Server
	messages chan Message
	answer   int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{messages: make(chan Message, 16), answer: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var m Message
		if err := json.NewDecoder(req.Body).Decode(&m); err != nil || req.Method != http.MethodPost {
			t.Errorf("%s with %v", req.Method, err)
		}
		w.WriteHeader(r.answer)
		if r.answer < 300 {
			r.messages <- m
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// bell returns a hook whose status the test chooses.
func bell(t *testing.T, cfg HookConfig, memory string, status *Status) *Hook {
	t.Helper()
	h, err := NewHook(cfg, HookParts{
		Status: func(context.Context) (Status, error) { return *status, nil }, Memory: memory,
		Now: func() time.Time { return status.Now }, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return h
}

func TestAWebhookHearsOfAnAlarmAndOfItsEndAcrossARestart(t *testing.T) {
	r := newReceiver(t)
	cfg := DefaultHookConfig()
	cfg.Webhook = r.URL
	memory := filepath.Join(t.TempDir(), "alarms.json")
	s := Status{Now: time.Date(2024, 5, 20, 12, 0, 0, 0, time.UTC), Datasets: []Dataset{{Name: "sea", Problem: "archive away"}}}
	h := bell(t, cfg, memory, &s)
	told, err := h.load()
	must(t, err)
	for range 3 {
		must(t, h.look(t.Context(), told))
	}
	m := <-r.messages
	if m.State != firing || m.Name != "archive" || m.Subject != "sea" || !strings.Contains(m.Text, "archive away") || !strings.Contains(m.Text, "What to do") {
		t.Errorf("message is %+v", m)
	}
	// A new process knows the messages of the one before.
	h = bell(t, cfg, memory, &s)
	told, err = h.load()
	must(t, err)
	must(t, h.look(t.Context(), told))
	s.Datasets[0].Problem = ""
	s.Now = s.Now.Add(time.Hour)
	must(t, h.look(t.Context(), told))
	over := <-r.messages
	if over.State != resolved || over.Name != "archive" || !over.Since.Equal(m.Since) {
		t.Errorf("after the end the message is %+v", over)
	}
	if len(r.messages) != 0 {
		t.Errorf("%d messages too many, such as %+v", len(r.messages), <-r.messages)
	}
}

func TestAMessageThatDoesNotArriveIsSentAgainAndItsAddressIsKeptSecret(t *testing.T) {
	r := newReceiver(t)
	secret := filepath.Join(t.TempDir(), "webhook")
	must(t, os.WriteFile(secret, []byte(r.URL+"/token-123\n"), 0o600))
	cfg := DefaultHookConfig()
	cfg.WebhookFile = secret
	s := Status{Now: time.Unix(1e9, 0), Hung: "worker of sea"}
	h := bell(t, cfg, filepath.Join(t.TempDir(), "alarms.json"), &s)
	told := map[string]notice{}
	r.answer = http.StatusBadGateway
	if err := h.look(t.Context(), told); err == nil || !strings.Contains(err.Error(), "502") || len(told) != 0 {
		t.Errorf("look() = %v where the hook answers 502", err)
	}
	r.answer = http.StatusOK
	must(t, h.look(t.Context(), told))
	if m := <-r.messages; m.Name != "hung" {
		t.Errorf("message is %+v", m)
	}
	r.Close()
	s.Hung = ""
	if err := h.look(t.Context(), told); err == nil || strings.Contains(err.Error(), "token-123") {
		t.Errorf("look() = %v where the hook is away", err)
	}
}

func TestAWebhookIsNotFollowedElsewhere(t *testing.T) {
	stranger := newReceiver(t)
	moved := httptest.NewServer(http.RedirectHandler(stranger.URL, http.StatusTemporaryRedirect))
	t.Cleanup(moved.Close)
	cfg := DefaultHookConfig()
	cfg.Webhook = moved.URL + "/token-123"
	h := bell(t, cfg, filepath.Join(t.TempDir(), "alarms.json"), &Status{Now: time.Unix(1e9, 0), Hung: "worker of sea"})
	if err := h.look(t.Context(), map[string]notice{}); err == nil || !strings.Contains(err.Error(), "307") || strings.Contains(err.Error(), "token-123") {
		t.Errorf("look() = %v where the hook leads elsewhere", err)
	}
	if len(stranger.messages) != 0 {
		t.Error("a host that nobody named was sent the alarm")
	}
}

func TestACommandGetsTheMessageAndOneThatHangsIsCutOff(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cfg := DefaultHookConfig()
	cfg.Command = []string{"/bin/sh", "-c", "cat >>" + out}
	s := Status{Now: time.Unix(1e9, 0), Hung: "sink disk"}
	h := bell(t, cfg, filepath.Join(t.TempDir(), "alarms.json"), &s)
	must(t, h.look(t.Context(), map[string]notice{}))
	text, err := os.ReadFile(out)
	must(t, err)
	var m Message
	must(t, json.Unmarshal(text, &m))
	if m.State != firing || m.Summary == "" || m.Remedy == "" {
		t.Errorf("the command got %s", text)
	}
	h.cfg.Command, h.cfg.Timeout = []string{"/bin/sh", "-c", "sleep 60"}, 50*time.Millisecond
	began := time.Now()
	if err := h.look(t.Context(), map[string]notice{}); err == nil {
		t.Error("a command that hangs is a success")
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a command that hangs held the hook for %v", took)
	}
	h.cfg.Command, h.cfg.Timeout = []string{"/bin/sh", "-c", "echo no such list >&2; exit 3"}, time.Minute
	if err := h.look(t.Context(), map[string]notice{}); err == nil || !strings.Contains(err.Error(), "no such list") {
		t.Errorf("look() = %v, want the output of the command", err)
	}
}

func TestALostStatusIsAnAlarmAndCancellationEndsTheHookAtOnce(t *testing.T) {
	r := newReceiver(t)
	cfg := DefaultHookConfig()
	cfg.Webhook, cfg.Check = r.URL, time.Millisecond
	h, err := NewHook(cfg, HookParts{
		Status: func(context.Context) (Status, error) { return Status{}, errors.New("disk I/O error") },
		Memory: filepath.Join(t.TempDir(), "alarms.json"), Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	if m := <-r.messages; m.Name != "status" || !strings.Contains(m.Summary, "disk I/O error") {
		t.Errorf("message is %+v", m)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run() = %v after cancellation", err)
	}
}

func TestHookConfigReportsEveryFault(t *testing.T) {
	tests := []struct {
		name string
		edit func(*HookConfig)
		want string
	}{
		{"defaults", func(*HookConfig) {}, ""},
		{"two hooks", func(c *HookConfig) { c.Webhook, c.WebhookFile = "http://a/b", "f" }, "exclude one another"},
		{"no URL", func(c *HookConfig) { c.Webhook = "example.org" }, "not a URL"},
		{"a value for a name", func(c *HookConfig) { c.CommandEnv = []string{"A=b"} }, "without values"},
		{"empty program", func(c *HookConfig) { c.Command = []string{""} }, "empty program"},
		{"no interval", func(c *HookConfig) { c.Check = 0 }, "check is 0s"},
		{"negative lag", func(c *HookConfig) { c.Lag = -1 }, "lag is -1ns"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultHookConfig()
			tt.edit(&c)
			err := c.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want a message with %q", err, tt.want)
			}
		})
	}
}

func TestACommandGetsNoSecretsOfTheEnvironment(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cfg := DefaultHookConfig()
	cfg.Command, cfg.CommandEnv = []string{"/bin/sh", "-c", "env >" + out}, []string{"SMTP_RELAY"}
	for name, value := range map[string]string{"AWS_SECRET_ACCESS_KEY": "hush", "LACUNA_PASSWORD": "hush", "SMTP_RELAY": "mx.example.org", "LANG": "C.UTF-8"} {
		t.Setenv(name, value)
	}
	s := Status{Now: time.Unix(1e9, 0), Datasets: []Dataset{{Name: "sea", Problem: "archive away"}}}
	must(t, bell(t, cfg, filepath.Join(t.TempDir(), "alarms.json"), &s).look(t.Context(), map[string]notice{}))
	text, err := os.ReadFile(out)
	must(t, err)
	if strings.Contains(string(text), "hush") {
		t.Errorf("the command sees secrets:\n%s", text)
	}
	for _, want := range []string{"PATH=", "LANG=C.UTF-8", "SMTP_RELAY=mx.example.org", "LACUNA_STATE=firing", "LACUNA_ALARM=archive", "LACUNA_SUBJECT=sea"} {
		if !strings.Contains("\n"+string(text), "\n"+want) {
			t.Errorf("the command lacks %s:\n%s", want, text)
		}
	}
}

func TestACommandThatIsRefusedIsNotStarted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	cfg := DefaultHookConfig()
	cfg.Command = []string{"/bin/sh", "-c", "echo >" + out}
	s := Status{Now: time.Unix(1e9, 0), Hung: "sink disk"}
	h := bell(t, cfg, filepath.Join(t.TempDir(), "alarms.json"), &s)
	h.machine.Program = func(name string) (string, error) { return "", errors.New(name + " can be written by everybody") }
	if err := h.look(t.Context(), map[string]notice{}); err == nil || !strings.Contains(err.Error(), "/bin/sh can be written by everybody") {
		t.Errorf("look() = %v", err)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a program that was refused has run")
	}
}
