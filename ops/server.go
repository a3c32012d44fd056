package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Limits on a connection, so that a client that stalls costs nothing for
// long.
const (
	requestLimit  = 10 * time.Second // to send a request: a few hundred bytes
	responseLimit = 30 * time.Second // to take a page: some tens of kilobytes
	downloadLimit = 15 * time.Minute // to take a product: 100 MB at 1 Mbit/s
	idleLimit     = 2 * time.Minute  // between requests: longer than the page's refresh
	headerBytes   = 16 << 10         // header of a request: browsers send about one kilobyte
	// drainLimit is the time for requests under way to finish once the service
	// stops. It is well below the 90 s after which systemd kills.
	drainLimit = 10 * time.Second
)

// Server serves the status page.
type Server struct {
	cfg      Config
	feed     *feed
	handler  http.Handler
	metrics  *Metrics
	machine  Machine
	log      *slog.Logger
	listener net.Listener // nil before Listen
}

// New returns a Server for the sources src. It checks cfg and touches neither
// the network nor the disk; Listen and Run do.
func New(cfg Config, src Sources, log *slog.Logger) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ops config: %w", err)
	}
	log = log.With("component", "ops")
	metrics := newMetrics(src.Status, src.Machine)
	h := newHandler(src, cfg.TokenFile, log)
	return &Server{cfg: cfg, feed: h.feed, handler: ownHosts(cfg, metrics.beside(h.routes())), metrics: metrics, machine: src.Machine, log: log}, nil
}

// Metrics returns the metrics at /metrics, for the daemon to record in.
func (s *Server) Metrics() *Metrics { return s.metrics }

// Listen binds the address, so that Addr is known and a taken port is found
// before other work begins. It is called once, before Run or not at all.
func (s *Server) Listen() error {
	if s.cfg.TokenFile != "" {
		if _, err := readToken(s.machine, s.cfg.TokenFile); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("serve status page: %w; free the port, or set listen to another address (port 0 takes any free one)", err)
	}
	s.listener = l
	return nil
}

// Addr is host:port as bound, or empty before Listen.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Run serves until ctx is cancelled, lets the requests under way finish for a
// while, and returns nil. Any other return needs an operator. Run listens
// where Listen was not called.
func (s *Server) Run(ctx context.Context) error {
	if s.listener == nil {
		if err := s.Listen(); err != nil {
			return err
		}
	}
	server := s.httpServer()
	served := make(chan error, 1)
	go func() { served <- server.Serve(s.listener) }()
	fed := make(chan struct{})
	look, blind := context.WithCancel(ctx)
	go func() { defer close(fed); s.feed.run(look) }() // its end ends the open streams, which would hold up the drain
	defer func() { blind(); <-fed }()
	s.log.Info("status page served", "url", "http://"+s.Addr()+"/")
	select {
	case err := <-served:
		return fmt.Errorf("serve status page: %w", err)
	case <-ctx.Done():
	}
	err := s.drain(server)
	<-served
	return err
}

// httpServer returns the server that Run runs.
func (s *Server) httpServer() *http.Server {
	return &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: requestLimit,
		ReadTimeout:       requestLimit,
		WriteTimeout:      responseLimit,
		IdleTimeout:       idleLimit,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // faults of clients
	}
}

// drain stops server. Requests that outlast the limit are cut off, which is
// worth a line in the log and no more: the service is stopping.
func (s *Server) drain(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("status page requests cut off", "after", drainLimit)
		err = server.Close()
	}
	if err != nil {
		return fmt.Errorf("stop status page: %w", err)
	}
	return nil
}
