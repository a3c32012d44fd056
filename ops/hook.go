package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"lacuna/internal/durable"
	"lacuna/internal/faults"
)

// HookConfig sets the receivers of alarms, and the limits of alarms.
type HookConfig struct {
	Webhook     string        `yaml:"webhook"`      // URL that messages are posted to
	WebhookFile string        `yaml:"webhook_file"` // file with that URL, where the URL is a secret
	Command     []string      `yaml:"command"`      // program and arguments that get the message on standard input
	CommandEnv  []string      `yaml:"command_env"`  // names of variables that it gets beside the usual ones
	Check       time.Duration `yaml:"check"`        // how often alarms are checked
	Repeat      time.Duration `yaml:"repeat"`       // an alarm that lasts is sent again after this; 0: never
	Timeout     time.Duration `yaml:"timeout"`      // time limit of one message
	Limits      `yaml:",inline"`
}

// DefaultHookConfig returns the settings that hold where a file is silent.
func DefaultHookConfig() HookConfig {
	return HookConfig{
		Command:    []string{},
		CommandEnv: []string{},
		Check:      time.Minute,
		Repeat:     24 * time.Hour, // once a day, so that nobody forgets it
		Timeout:    30 * time.Second,
		Limits: Limits{
			Lag:         4 * 24 * time.Hour, // near-real-time products are two days old when they appear
			Backlog:     6 * time.Hour,
			SetAside:    5,
			DiskFreeMiB: 2048, // twice the floor at which nothing is stored any more

			TrainRefusals: 3,       // one is chance, two a pity
			TrainOverdue:  7 * day, // by then the next one would be due
		},
	}
}

// Validate reports everything wrong with c.
func (c HookConfig) Validate() error {
	var errs faults.List
	errs.Check(c.Webhook == "" || c.WebhookFile == "", "webhook and webhook_file exclude one another; keep one")
	errs.Check(c.Webhook == "" || webURL(c.Webhook), "webhook is not a URL like https://example.org/hook")
	errs.Check(len(c.Command) == 0 || c.Command[0] != "", "command has an empty program: name it with its path, like [/usr/bin/mail, -s, lacuna, ops@example.org]")
	for _, name := range c.CommandEnv {
		errs.Check(variableName.MatchString(name), "command_env has %q, must be names of environment variables like SMTP_RELAY, without values", name)
	}
	errs.Check(c.Check > 0, "check is %v, must be positive", c.Check)
	errs.Check(c.Repeat >= 0, "repeat is %v, must not be negative", c.Repeat)
	errs.Check(c.Timeout > 0, "timeout is %v, must be positive", c.Timeout)
	errs.Check(c.Lag >= 0, "lag is %v, must not be negative", c.Lag)
	errs.Check(c.Backlog >= 0, "backlog is %v, must not be negative", c.Backlog)
	errs.Check(c.SetAside >= 0, "set_aside is %d, must not be negative", c.SetAside)
	errs.Check(c.DiskFreeMiB >= 0, "disk_free_mib is %d, must not be negative", c.DiskFreeMiB)
	errs.Check(c.TrainRefusals >= 0, "train_refusals is %d, must not be negative", c.TrainRefusals)
	errs.Check(c.TrainOverdue >= 0, "train_overdue is %v, must not be negative", c.TrainOverdue)
	return errs.Err()
}

func webURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// off reports whether no receiver is configured.
func (c HookConfig) off() bool { return c.Webhook == "" && c.WebhookFile == "" && len(c.Command) == 0 }

// Message is the JSON that a hook sends.
type Message struct {
	State   string    `json:"state"` // firing or resolved
	Alarm             // as it is, or was before it ended
	Since   time.Time `json:"since"`          // when the alarm began
	At      time.Time `json:"at"`             // when this was sent
	Repeat  int       `json:"repeat"`         // earlier messages about it
	Service string    `json:"service"`        // lacuna, for hooks that serve many
	Host    string    `json:"host,omitempty"` // where it runs
	Text    string    `json:"text"`           // all of it in a line, for chat systems
}

// Hook sends messages about alarms: one when an alarm begins, more while it
// lasts, and one when it is over. It remembers them through restarts.
type Hook struct {
	cfg    HookConfig
	status func(context.Context) (Status, error)
	memory string // file of the messages sent
	now    func() time.Time
	log    *slog.Logger
	host   string

	machine Machine
	lookup  func(string) (string, bool) // environment variables
}

// HookParts are the collaborators of a Hook.
type HookParts struct {
	Status func(context.Context) (Status, error)
	Memory string // path of the file of the messages sent
	Now    func() time.Time
	Log    *slog.Logger
	Machine
}

// NewHook returns the hook that cfg describes. It checks cfg and touches
// nothing; Run does.
func NewHook(cfg HookConfig, parts HookParts) (*Hook, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("alarms: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "" // the message lacks it
	}
	return &Hook{
		cfg: cfg, status: parts.Status, memory: parts.Memory, now: parts.Now, host: host, log: parts.Log.With("component", "alarms"),
		machine: parts.Machine, lookup: os.LookupEnv,
	}, nil
}

// Run checks for alarms until ctx is cancelled, then returns nil. Nobody waits
// for it: a hook that hangs is cut off and tried again at the next check.
func (h *Hook) Run(ctx context.Context) error {
	tick := time.NewTicker(h.cfg.Check)
	defer tick.Stop()
	told, err := h.load()
	if err != nil {
		h.log.Warn("messages about alarms are forgotten, they may be repeated", "err", err)
	}
	failing := "" // logged once, not at every check
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := h.look(ctx, told)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && err.Error() != failing:
			failing = err.Error()
			h.log.Warn("alarm not told", "err", err, "retry_in", h.cfg.Check)
		case err == nil:
			failing = ""
		}
	}
}

// look sends the messages that are due.
func (h *Hook) look(ctx context.Context, told map[string]notice) error {
	ctx, cancel := context.WithTimeout(ctx, statusLimit+2*h.cfg.Timeout)
	defer cancel()
	s, err := h.status(ctx)
	current := Alarms(s, h.cfg.Limits)
	if err != nil {
		current = []Alarm{statusLost(err)}
	}
	var errs []error
	for _, m := range due(h.now(), current, told, h.cfg.Repeat) {
		m.Service, m.Host = "lacuna", h.host
		m.Text = h.text(m)
		if err := h.tell(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", m.Summary, err))
			continue
		}
		note(told, m)
		h.log.Warn("alarm", "state", m.State, "alarm", m.Name, "subject", m.Subject, "summary", m.Summary, "remedy", m.Remedy)
	}
	return errors.Join(append(errs, h.save(told))...)
}

// statusLost is the alarm of a service whose status cannot be read.
func statusLost(err error) Alarm {
	return Alarm{
		Name: "status", Summary: "the status of the service cannot be read: " + err.Error(),
		Remedy: "look at the log and the disk of state_dir; 'lacuna ledger check' reads the ledger through",
	}
}

func (h *Hook) text(m Message) string {
	if m.State == resolved {
		return fmt.Sprintf("lacuna on %s: over: %s", h.host, m.Summary)
	}
	return fmt.Sprintf("lacuna on %s: %s. What to do: %s", h.host, m.Summary, m.Remedy)
}

// tell sends a message to the configured receivers.
func (h *Hook) tell(ctx context.Context, m Message) error {
	if h.cfg.off() {
		return nil // the log has it
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	return errors.Join(h.post(ctx, body), h.run(ctx, m, body))
}

// post sends body to the webhook. Its errors do not repeat the URL, which may
// be a secret.
func (h *Hook) post(ctx context.Context, body []byte) error {
	target := h.cfg.Webhook
	if h.cfg.WebhookFile != "" {
		text, err := h.machine.secret(h.cfg.WebhookFile)
		if err != nil {
			return fmt.Errorf("read webhook: %w", err)
		}
		target = strings.TrimSpace(text)
	}
	if target == "" {
		return nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return errors.New("post to webhook: its URL cannot be read")
	}
	request.Header.Set("Content-Type", "application/json")
	// A redirect would take the message, and the address of the webhook, to a
	// host that nobody configured.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := (&http.Client{CheckRedirect: stay}).Do(request)
	if err != nil {
		if failed := (*url.Error)(nil); errors.As(err, &failed) {
			err = failed.Err
		}
		return fmt.Errorf("post to webhook: %w", err)
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, headerBytes) // so that the connection can be used again
	if response.StatusCode >= http.StatusMultipleChoices && response.StatusCode < http.StatusBadRequest {
		return fmt.Errorf("post to webhook: it answers %s; give the address that it leads to", response.Status)
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("post to webhook: it answers %s", response.Status)
	}
	return nil
}

// load reads the messages sent before the start.
func (h *Hook) load() (map[string]notice, error) {
	told := map[string]notice{}
	text, err := os.ReadFile(h.memory)
	if errors.Is(err, os.ErrNotExist) {
		return told, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil {
		return map[string]notice{}, fmt.Errorf("read alarms: %w", err)
	}
	return told, nil
}

func (h *Hook) save(told map[string]notice) error {
	text, err := json.Marshal(told)
	if err != nil {
		return err
	}
	if there, err := os.ReadFile(h.memory); err == nil && bytes.Equal(there, text) {
		return nil
	}
	if err := durable.WriteFile(h.memory, text, 0o644); err != nil {
		return fmt.Errorf("remember alarms: %w", err)
	}
	return nil
}
