package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/web/reply"
)

// Deps is what the handler needs. Only History is required.
type Deps struct {
	History *history.History
	// Status describes the running process; its result is encoded as JSON. Nil: /api/v1/status has the history only.
	Status func() any
	// Versions are the model versions that this process has in its state. Nil: those with snapshots.
	Versions func() []record.VersionStatus
	// Ready returns why the process cannot serve yet, or nil. Nil: always ready.
	Ready func() error
	// Control takes POST requests. Nil: they are refused.
	Control Control
	// Who is the person behind a request that changes something, as far as somebody has checked it; "" = nobody has. An
	// error refuses the request. Nil: people are who they say.
	Who func(r *http.Request) (string, error)
	// Orders takes what people decide about calibrators, where there is Control. Nil: 404.
	Orders Orders
	// Heads tells of new heads and takes orders about them. Nil: 404.
	Heads Heads
	// Past is the history of what was decided. Nil: 404.
	Past Past
	// Metrics answers /metrics. Nil: 404.
	Metrics http.Handler
	// Calibrate answers under /api/v1/models/, POST included. Nil: 404.
	Calibrate http.Handler
	// Ingest takes rows under /api/v1/ingest/ from those whom Who knows. Nil: they are refused.
	Ingest http.Handler
	// Log gets what clients are not shown. Nil: nothing is logged.
	Log *slog.Logger
}

// api is the handler's state: immutable after New.
type api struct {
	Deps
	heartbeat time.Duration
}

// New returns the handler of all routes in docs/http.md. It panics if d.History is nil.
func New(d Deps) http.Handler { return newHandler(d, 15*time.Second) }

func newHandler(d Deps, heartbeat time.Duration) http.Handler {
	if d.History == nil {
		panic("web: Deps.History is nil")
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{Deps: d, heartbeat: heartbeat}
	mux, answers := http.NewServeMux(), newTurns(maxAnswers)
	mux.HandleFunc("/-/healthy", a.healthy)
	mux.HandleFunc("/-/ready", a.ready)
	if d.Metrics != nil {
		mux.Handle("/metrics", newTurns(maxScrapes).inTurn(d.Metrics))
	}
	for path, h := range map[string]http.HandlerFunc{
		"models":           a.models,
		"snapshots":        a.snapshots,
		"snapshots/latest": a.latest,
		"calibrators":      a.calibrators,
		"alerts":           a.alerts,
		"status":           a.status,
	} {
		mux.Handle("/api/v1/"+path, answers.inTurn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(eventIDHeader, eventID(a.History.Position())) // before h reads
			h(w, r)
		})))
	}
	mux.HandleFunc("/api/v1/events", a.events)
	mux.HandleFunc(controlPrefix+"pause", a.pause)
	mux.HandleFunc(controlPrefix+"resume", a.resume)
	mux.HandleFunc(orderPath, a.order)
	mux.Handle(pastPath, newTurns(maxPasts).inTurn(http.HandlerFunc(a.past)))
	mux.HandleFunc(headsPath, a.heads)
	mux.HandleFunc(headsPath+"/{action}", a.headOrder)
	if d.Calibrate != nil {
		mux.Handle(calibratePrefix, d.Calibrate)
	}
	mux.HandleFunc(ingestPrefix, a.ingest)
	pages := newAssets()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !pages.serve(w, r) {
			reply.Error(w, http.StatusNotFound, "no such path: "+r.URL.Path)
		}
	})
	return a.guard(mux)
}

// csp lets the page load its own files and nothing else; styles are set through the CSSOM, never as attributes.
const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// calibratePrefix is the path of Deps.Calibrate, whose handler refuses methods itself.
const calibratePrefix = "/api/v1/models/"

// ingestPrefix is the path of Deps.Ingest, whose handler refuses methods itself.
const ingestPrefix = "/api/v1/ingest/"

// ingest lets those send rows who may give orders.
func (a *api) ingest(w http.ResponseWriter, r *http.Request) {
	if a.Ingest == nil {
		reply.Error(w, http.StatusForbidden, "this process takes no rows over HTTP: set http.ingest: true where run is")
		return
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		reply.Error(w, http.StatusForbidden, err.Error())
		return
	}
	if _, ok := a.person(w, r, ""); ok {
		a.Ingest.ServeHTTP(w, r)
	}
}

// guard sets the security headers and refuses all methods but GET and HEAD, except where a path is for POST.
func (a *api) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", csp)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		own := isControl(r.URL.Path) || isOrder(r.URL.Path) || strings.HasPrefix(r.URL.Path, ingestPrefix) ||
			a.Calibrate != nil &&
				strings.HasPrefix(r.URL.Path, calibratePrefix)
		if !own && !reply.Allows(w, r, http.MethodGet, http.MethodHead) {
			return
		}
		// OpenTelemetry's collector compresses by default; the handler bounds what it inflates.
		inflates := strings.HasPrefix(r.URL.Path, ingestPrefix+"otlp/")
		if c := r.Header.Get("Content-Encoding"); !inflates && c != "" && !strings.EqualFold(c, "identity") {
			h.Set("Accept-Encoding", "identity")
			reply.Error(w, http.StatusUnsupportedMediaType,
				"a body in "+strconv.Quote(c)+" is not read: send it as it is")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Server returns an http.Server for handler with limits on slow and oversized requests. Its Shutdown also ends the
// event streams, which otherwise would never become idle. What goes wrong with connections is told to errs.
func Server(addr string, handler http.Handler, errs slog.Handler) *http.Server {
	ctx, cancel := context.WithCancel(context.Background())
	s := &http.Server{
		Addr:              addr,
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute, // event streams move their own deadline
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       boundSend,
		ErrorLog:          slog.NewLogLogger(errs, slog.LevelWarn),
	}
	s.RegisterOnShutdown(cancel)
	return s
}

// Serve has g run a server until ctx is done; answers under way then have two seconds. serve takes the connections of a
// listener, of which not too many are open.
func Serve(ctx context.Context, g *errgroup.Group, srv *http.Server, l net.Listener, serve func(net.Listener) error) {
	l = bounded(l, srv, connsWithin(fileLimit()))
	g.Go(func() error {
		if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		const patience = 2 * time.Second
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			return srv.Close() // event streams never end by themselves
		}
		return nil
	})
}

func (a *api) healthy(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("plumbline is healthy\n"))
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	if a.Ready != nil {
		if err := a.Ready(); err != nil {
			reply.Error(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("plumbline is ready\n"))
}

// reply sends v as JSON.
func (a *api) reply(w http.ResponseWriter, v any) {
	if err := reply.JSON(w, http.StatusOK, v); err != nil {
		a.Log.Error("encode reply", "err", err)
	}
}
