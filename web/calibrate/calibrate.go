package calibrate

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/web/budget"
	"github.com/plumbline/plumbline/web/reply"
)

// InForce is the calibrator in force of a model version.
type InForce struct {
	Model, Version string
	Revision       int       // 0: nothing has been published, the identity
	From           time.Time // event time from which it is in force; zero at revision 0
	Calibrator     calibrator.Calibrator
	// Top corrects it from TopFrom on; nil where nothing does.
	Top     *calibrator.Correction
	TopFrom time.Time
	// Canary calibrates Share of the ids (arrowio.InShare) of rows that have one; nil where there is none.
	Canary calibrator.Calibrator
	Share  float64

	classes int // K of the model version; 0: not known
}

// Source knows the calibrators in force.
type Source interface {
	// Latest returns the newest published calibrator of a model version, and a channel that is closed when there is a
	// newer one. Version "" is the one that was published last. Where nothing is published, it is the identity at
	// revision 0; ok is false for a model version that nobody has heard of.
	Latest(model, version string) (f InForce, changed <-chan struct{}, ok bool)
	// Classes is K of a model version where that stands; 0 where it is not known.
	Classes(model, version string) int
	// Ready is nil once everything that was published before is known. Before that, an answer could take servers back
	// to the identity.
	Ready() error
}

// Bounds of requests.
const (
	// MaxBody is the largest body of a calibrate request, in bytes.
	MaxBody = 8 << 20
	// MaxWait is the longest long poll.
	MaxWait = 50 * time.Second
	// MaxWaiting bounds the long polls at a time; those above it are answered at once, with Retry-After.
	MaxWaiting = 10_000
	// maxBodies is how many bytes of bodies are held at a time.
	maxBodies = 128 << 20
	// maxWork is about how many bytes are in use for decoding, calibrating and encoding.
	maxWork = 512 << 20
	// costJSON and costArrow are about how many bytes of memory a byte of a body takes on the way: the JSON body with
	// the highest cost has rows of two one-digit numbers. TestWorkIsBounded measures it.
	costJSON  = 40
	costArrow = 32
	// patience is how long a request waits for its turn.
	patience = 5 * time.Second
)

// Handler answers GET …/{model}/calibrator and POST …/{model}/calibrate.
type Handler struct {
	source   Source
	log      *slog.Logger
	waiting  chan struct{} // a token each long poll
	budget   *budget.Budget
	decoders sync.Pool
	mux      *http.ServeMux
}

// Prefix is the path under which a Handler serves.
const Prefix = "/api/v1/models/"

// New returns the handler.
func New(source Source, log *slog.Logger) *Handler {
	h := &Handler{source: source, log: log, waiting: make(chan struct{}, MaxWaiting), mux: http.NewServeMux(),
		budget: budget.New(budget.Options{Bodies: maxBodies, Work: maxWork, Patience: patience})}
	h.decoders.New = func() any { return arrowio.NewDecoder(arrowio.Options{MaxMessageBytes: MaxBody}) }
	h.mux.HandleFunc(Prefix+"{model}/calibrator", h.calibrator)
	h.mux.HandleFunc(Prefix+"{model}/calibrate", h.calibrate)
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply.Error(w, http.StatusNotFound, "no such path: "+r.URL.Path)
	})
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// find is the calibrator that the request names; where there is none it has answered.
func (h *Handler) find(w http.ResponseWriter, r *http.Request) (InForce, <-chan struct{}, bool) {
	if err := h.source.Ready(); err != nil {
		w.Header().Set("Retry-After", "1")
		reply.Error(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
		return InForce{}, nil, false
	}
	model, version := r.PathValue("model"), r.URL.Query().Get("version")
	f, changed, ok := h.source.Latest(model, version)
	if !ok {
		reply.Error(w, http.StatusNotFound, fmt.Sprintf("no model %q, version %q", model, version))
	}
	return f, changed, ok
}

// record is the answer of GET …/calibrator.
type record struct {
	Model         string          `json:"model"`
	Version       string          `json:"version"`
	Revision      int             `json:"revision"`
	EffectiveFrom string          `json:"effective_from,omitempty"`
	Calibrator    json.RawMessage `json:"calibrator"`
	// Top is where it is corrected: from a time on that is later than that of the calibrator.
	Top *top `json:"top,omitempty"`
}

type top struct {
	calibrator.Correction
	EffectiveFrom string `json:"effective_from"`
}

// etag names what is in force: the revision of a version, which never comes again, and the time of its correction.
func (f *InForce) etag() string {
	tag := f.Version + "/" + strconv.Itoa(f.Revision)
	if f.corrected() {
		tag += "/" + strconv.FormatInt(f.TopFrom.UnixNano(), 10)
	}
	return strconv.Quote(tag)
}

// correction is that of Top as answers have it; nil = none.
func (f *InForce) correction() *top {
	if !f.corrected() {
		return nil
	}
	return &top{*f.Top, f.TopFrom.UTC().Format(time.RFC3339Nano)}
}

func (f *InForce) corrected() bool { return f.Top != nil && !f.Top.None() }

// serving is the calibrator with its correction.
func (f *InForce) serving() (calibrator.Calibrator, error) {
	if !f.corrected() {
		return f.Calibrator, nil
	}
	return calibrator.Correct(f.Calibrator, *f.Top)
}

func (h *Handler) calibrator(w http.ResponseWriter, r *http.Request) {
	if !reply.Allows(w, r, http.MethodGet, http.MethodHead) || !h.known(w, r, "version", "wait") {
		return
	}
	wait, err := waitOf(r)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	f, changed, ok := h.find(w, r)
	if !ok {
		return
	}
	seen := r.Header.Get("If-None-Match")
	if matches(seen, f.etag()) && wait > 0 {
		if f, ok = h.await(w, r, f, changed, wait); !ok {
			return
		}
	}
	w.Header().Set("ETag", f.etag())
	w.Header().Set("Cache-Control", "no-cache") // may be kept, and must be asked for
	if matches(seen, f.etag()) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body, err := calibrator.Encode(f.Calibrator)
	if err != nil {
		reply.Error(w, http.StatusInternalServerError, err.Error())
		return
	}
	out := record{Model: f.Model, Version: f.Version, Revision: f.Revision, Calibrator: body}
	if f.Revision > 0 {
		out.EffectiveFrom = f.From.UTC().Format(time.RFC3339Nano)
	}
	out.Top = f.correction()
	_ = reply.JSON(w, http.StatusOK, out) // all of it has an encoding
}

// await is a long poll: until another calibrator is in force, the time is up, or the client or this process goes (then
// it has answered, and returns false).
func (h *Handler) await(w http.ResponseWriter, r *http.Request, f InForce, changed <-chan struct{},
	wait time.Duration) (InForce, bool) {
	select {
	case h.waiting <- struct{}{}:
		defer func() { <-h.waiting }()
	default:
		w.Header().Set("Retry-After", "10")
		return f, true
	}
	// The server's own limit is on answers that are slow to be read, which this one is not.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + 10*time.Second)); err != nil {
		h.log.Debug("long poll", "err", err)
	}
	end := time.NewTimer(wait)
	defer end.Stop()
	tag := f.etag()
	for f.etag() == tag {
		select {
		case <-changed:
			var ok bool
			if f, changed, ok = h.find(w, r); !ok {
				return f, false
			}
		case <-end.C:
			return f, true
		case <-r.Context().Done():
			// A process that stops has clients still: without an answer they would get an empty one that says 200.
			w.Header().Set("Retry-After", "1")
			reply.Error(w, http.StatusServiceUnavailable, "this process stops: ask again")
			return f, false
		}
	}
	return f, true
}

func waitOf(r *http.Request) (time.Duration, error) {
	text := r.URL.Query().Get("wait")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, fmt.Errorf("wait %q: must be a duration from 0s to %s", text, MaxWait)
	}
	return d, nil
}

// matches implements If-None-Match for one strong tag.
func matches(header, tag string) bool {
	for t := range strings.SplitSeq(header, ",") {
		t = strings.TrimSpace(t)
		if t == "*" || strings.TrimPrefix(t, "W/") == tag {
			return true
		}
	}
	return false
}

// known refuses parameters that are not known, or repeated.
func (h *Handler) known(w http.ResponseWriter, r *http.Request, names ...string) bool {
	for name, v := range r.URL.Query() {
		ok := false
		for _, n := range names {
			ok = ok || n == name
		}
		if !ok || len(v) != 1 {
			reply.Error(w, http.StatusBadRequest, fmt.Sprintf("parameter %q, %d times; allowed, each once: %s", name,
				len(v), strings.Join(names, ", ")))
			return false
		}
	}
	return true
}
