package ops

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"
)

// Supervisor notifies the service manager of the state of the service, by
// sd_notify. Without a service manager it does nothing. A message that cannot
// be sent is logged, and the service runs on.
type Supervisor struct {
	watchdog time.Duration // longest time between two heartbeats; 0: no watchdog
	listens  bool
	log      *slog.Logger
}

// NewSupervisor returns the Supervisor that the environment of the process
// names: NOTIFY_SOCKET and WATCHDOG_USEC.
func NewSupervisor(log *slog.Logger) *Supervisor {
	s := &Supervisor{listens: os.Getenv("NOTIFY_SOCKET") != "", log: log.With("component", "notify")}
	if !s.listens {
		return s
	}
	watchdog, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		s.log.Warn("watchdog not served", "err", err)
	}
	s.watchdog = watchdog
	return s
}

// Ready says that every stage runs.
func (s *Supervisor) Ready(status string) { s.send(sd.SdNotifyReady, statusLine(status)) }

// Status sends a line on the work of the service.
func (s *Supervisor) Status(status string) { s.send(statusLine(status)) }

// Reloading says that a new configuration is being loaded; Ready ends it.
func (s *Supervisor) Reloading() {
	s.send(sd.SdNotifyReloading, strings.TrimSuffix(sd.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping says that the service is about to end.
func (s *Supervisor) Stopping() {
	s.send(sd.SdNotifyStopping, statusLine("finishing the granules in hand"))
}

// statusInterval is the time between two status lines where no watchdog asks
// for more.
const statusInterval = 30 * time.Second

// Watch renews the status and sends heartbeats to the watchdog, until ctx is
// cancelled. It asks hung which stage makes no progress: while there is one, no
// heartbeat is sent and the manager restarts the service in the end.
func (s *Supervisor) Watch(ctx context.Context, hung func() string, status func() string) {
	if !s.listens {
		return
	}
	every := statusInterval
	if s.watchdog > 0 {
		every = min(every, s.watchdog/2)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		stage := hung()
		if stage != told {
			told = stage
			s.tell(stage)
		}
		if stage != "" {
			s.Status(stage + " hangs")
			continue
		}
		line := statusLine(status())
		if ctx.Err() != nil {
			return // ctx ended while the status was read
		}
		s.send(s.ping(), line)
	}
}

// tell logs when a stage begins or ceases to hang.
func (s *Supervisor) tell(stage string) {
	if stage == "" {
		s.log.Info("stages move again")
		return
	}
	s.log.Warn("stage hangs, so the watchdog is left to restart the service", "stage", stage, "watchdog", s.watchdog)
}

// ping returns the heartbeat, empty where there is no watchdog.
func (s *Supervisor) ping() string {
	if s.watchdog == 0 {
		return ""
	}
	return sd.SdNotifyWatchdog
}

// send sends assignments as one message, empty ones left out.
func (s *Supervisor) send(assignments ...string) {
	var lines []string
	for _, a := range assignments {
		if a != "" {
			lines = append(lines, a)
		}
	}
	if !s.listens || len(lines) == 0 {
		return
	}
	if _, err := sd.SdNotify(false, strings.Join(lines, "\n")); err != nil {
		s.log.Warn("service manager not told", "err", err)
	}
}

// statusLine is text as an assignment: one line, for a second one would be
// another assignment.
func statusLine(text string) string {
	if text == "" {
		return ""
	}
	return "STATUS=" + strings.Join(strings.Fields(text), " ")
}
