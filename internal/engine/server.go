package engine

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"

	"github.com/prometheus/client_golang/prometheus"
	exporter "github.com/prometheus/exporter-toolkit/web"
	"github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/internal/engine/decisionlog"
	"github.com/plumbline/plumbline/internal/engine/heads"
	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/archive"
	"github.com/plumbline/plumbline/sinks/metrics"
	"github.com/plumbline/plumbline/sinks/notify"
	"github.com/plumbline/plumbline/web"
	"github.com/plumbline/plumbline/web/calibrate"
)

// server serves the page, the API and the metrics: it shows what the other parts of the process know.
type server struct {
	config   *config.Config
	log      *slog.Logger
	view     *view
	process  *process
	past     *past
	traces   *traces
	archive  *archive.Archive // nil = none is configured
	latest   calibrate.Source // of calibrators
	notified notify.Counts
	orders   web.Orders   // nil = no Kafka
	ingest   http.Handler // of rows; nil = they are refused
	Listener net.Listener // bound already; nil = bind http.listen
}

// ServeHTTP starts the page, the API and the metrics; the listener is bound before it returns.
func (s *server) ServeHTTP(ctx context.Context, g *errgroup.Group) error {
	if s.config.HTTP.Listen == "" && s.Listener == nil {
		return nil
	}
	l := s.Listener
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", s.config.HTTP.Listen); err != nil {
			return fmt.Errorf("http.listen %q: %w", s.config.HTTP.Listen, err)
		}
	}
	pages := web.KnownHosts(s.pages(web.OnLoopback(l.Addr())), HostNames(&s.config.HTTP)...)
	srv := web.Server(s.config.HTTP.Listen, pages, faultlog.Lines(s.log, "http server"))
	serve, scheme := srv.Serve, "http://"
	if file := s.config.HTTP.WebConfig; file != "" {
		if err := exporter.Validate(file); err != nil {
			return fmt.Errorf("http.web_config_file %s: %w", file, err)
		}
		scheme = "" // the file says, and may be changed while we run
		serve = func(l net.Listener) error {
			return exporter.Serve(l, srv, &exporter.FlagConfig{WebConfigFile: &file}, s.log)
		}
	}
	s.log.Info("serving", "url", scheme+l.Addr().String())
	web.Serve(ctx, g, srv, l, serve)
	return nil
}

// pages returns the handler of the page, the API, the metrics and, if configured, Go's profiles.
func (s *server) pages(loopback bool) http.Handler {
	var control web.Control
	if s.config.HTTP.Control {
		control = &s.process.Pauser
	}
	var past web.Past // nil if there is no history
	if s.past.Past != nil {
		past = s.past.Past
	}
	handler := web.New(web.Deps{
		History:  s.view.History,
		Status:   func() any { return s.process.Status() },
		Versions: s.process.versionsInState,
		Ready:    s.process.Ready,
		Control:  control,
		Who:      web.People{File: s.config.HTTP.WebConfig, Loopback: loopback}.Who,
		Orders:   s.orders,
		Heads:    s.headsAPI(),
		Past:     past,
		Metrics: metrics.Handler(s.view.History,
			metrics.Options{Worst: s.config.HTTP.Slices, Silent: s.config.EventTime.SilentAfter},
			s.process.taskStatuses, s.collectors()...),
		Ingest:    s.ingest,
		Calibrate: calibrate.New(s.latest, s.log),
		Log:       s.log,
	})
	if s.config.HTTP.Pprof {
		handler = withProfiles(handler)
	}
	return handler
}

// collectors are the metrics beside those of the tasks.
func (s *server) collectors() []prometheus.Collector {
	out := append([]prometheus.Collector{runMetrics{s.process}, notifyMetrics{&s.notified},
		heads.Metrics{Jobs: s.view.Tuning.Jobs}}, s.traces.collectors()...)
	if s.archive != nil {
		out = append(out, s.archive)
	}
	if s.past.Past != nil {
		out = append(out, decisionlog.Metrics{Store: s.past.Past})
	}
	return out
}

// withProfiles serves Go's profiles under /debug/pprof/ beside h.
func withProfiles(h http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("/", h)
	return mux
}

// HostNames returns the server's host names beside addresses: the configured ones, the one in http.listen, and the
// machine's.
func HostNames(c *web.Config) []string {
	names := append([]string{}, c.Hosts...)
	if host, _, err := net.SplitHostPort(c.Listen); err == nil && host != "" {
		names = append(names, host)
	}
	return append(names, Hostname())
}

// webHeads gives the page and the API access to heads.
type webHeads struct {
	config *config.Config
	log    *slog.Logger
	tuning *heads.State
	client *kafka.Client // nil: orders cannot be written
}

// Heads implements web.Heads.
func (w webHeads) Heads() any {
	v := w.tuning.Current()
	for i := range v.Heads {
		v.Heads[i].Lost = v.Heads[i].Silent >= w.config.Trainer.LostAfter.Seconds()
	}
	return v
}

// HeadOrder implements web.Heads.
func (w webHeads) HeadOrder(ctx context.Context, o web.HeadOrder) (any, error) {
	kind := record.HeadOrder
	if o.Action == "cancel" {
		kind = record.HeadCancel
	}
	order := record.Order{Schema: 1, Kind: kind, ID: o.ID, Action: o.Action, By: o.By, Why: o.Why,
		At: record.Now()}
	if err := w.tuning.Allows(order); err != nil {
		order.Refused = err.Error()
		if herr := decisionlog.RecordOrder(ctx, w.client, *w.config, order); herr != nil {
			w.log.Warn("the history does not have a refused order", "id", order.ID, "by", order.By, "err", herr)
		}
		return nil, fmt.Errorf("%w: %w", web.ErrOrder, err)
	}
	return order, heads.PublishOrder(ctx, w.client, *w.config, order,
		func(s string) { w.log.Warn(s, "id", order.ID) })
}

// headsAPI returns the API of heads; nil if this process follows none.
func (s *server) headsAPI() web.Heads {
	if !tuned(s.config) {
		return nil
	}
	client, _, err := kafkaclient.New(s.config.Kafka)
	if err != nil {
		s.log.Error("orders about heads", "err", err)
		return nil
	}
	return webHeads{s.config, s.log, s.view.Tuning, client}
}
