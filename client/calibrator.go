package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/internal/backoff"
)

// FollowOptions of a calibrator.
type FollowOptions struct {
	Version string // of the model; "" is the one that was published last
	Header  http.Header
	HTTP    *http.Client
	Wait    time.Duration // of a long poll; 40 s if it is 0
	Log     *slog.Logger
}

// Calibrator gives probabilities of logits by the calibrator in force, which is replaced as a whole when a newer one is
// published. Logits of a model that gives probabilities are their logarithms, of 0 that of 2⁻¹⁴⁹. Where it is not sure
// - none was fetched, another number of classes, a method that it does not know - it gives the plain softmax, and
// Problem says why. What is no answer of a plumbline process about the model changes nothing.
type Calibrator struct {
	now atomic.Pointer[inForce]
	// What is wrong with asking for the calibrator, with what came, and with the latest logits.
	problems [3]atomic.Pointer[string]
	logged   atomic.Int64 // when a problem of logits was last logged, in nanoseconds
	stop     context.CancelFunc
	ended    sync.WaitGroup
	log      *slog.Logger
}

// Places in Calibrator.problems, in the order in which Problem tells them.
const (
	ofFetch = iota
	ofCalibrator
	ofLogits
)

type inForce struct {
	calibrator calibrator.Calibrator
	Serving
}

// Serving names what gives the probabilities.
type Serving struct {
	Revision int // of the calibrator; 0 is none
	// Correction is on top of it, from CorrectedFrom on; nil is none. It changes more often than the revision and is
	// kept nowhere: who must reproduce probabilities keeps it with them.
	Correction    *calibrator.Correction
	CorrectedFrom time.Time
}

// Follow has the calibrator of a model from the plumbline process at an address, from now on the newest one. The first
// is fetched before it returns, if somebody answers within 5 seconds.
func Follow(address, model string, o FollowOptions) *Calibrator {
	o.Wait = cmp.Or(o.Wait, 40*time.Second)
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	c := &Calibrator{log: cmp.Or(o.Log, slog.Default())}
	c.now.Store(&inForce{calibrator: calibrator.Identity{}})
	none := "no calibrator yet" // not told before the first was asked for
	c.problems[ofCalibrator].Store(&none)
	q := url.Values{}
	if o.Version != "" {
		q.Set("version", o.Version)
	}
	at := strings.TrimSuffix(address, "/") + "/api/v1/models/" + url.PathEscape(model) + "/calibrator?"
	f := &fetcher{c: c, header: o.Header, client: o.HTTP, model: model, version: o.Version}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	f.fetch(ctx, at+q.Encode(), 5*time.Second)
	q.Set("wait", o.Wait.String())
	c.ended.Go(func() { f.follow(ctx, at+q.Encode(), o.Wait+10*time.Second) })
	return c
}

// Revision is the number of the calibrator in force; 0 is none.
func (c *Calibrator) Revision() int { return c.now.Load().Revision }

// InForce is what gives the probabilities now.
func (c *Calibrator) InForce() Serving { return c.now.Load().Serving }

// Problem says why the plain softmax is given, or an older calibrator than there may be, or why the latest logits have
// no probabilities; "" where none of these is.
func (c *Calibrator) Problem() string {
	for i := range c.problems {
		if why := c.problems[i].Load(); why != nil && *why != "" {
			return *why
		}
	}
	return ""
}

// Apply writes the probabilities of one row of logits to p, which must have the same length, else nothing is written
// and the error says so. A row with a logit that is NaN or infinite has none: they are NaN, and the error says why.
func (c *Calibrator) Apply(p, logits []float64) error {
	if len(p) != len(logits) || len(p) == 0 { // what serves must not end because of it
		return fmt.Errorf("room for %d probabilities of %d logits: must be as many, at least 1", len(p), len(logits))
	}
	for j, z := range logits {
		if z-z != 0 {
			why := fmt.Sprintf("the logit of class %d is %g, must be a finite number", j, z)
			c.tell(ofLogits, why)
			for i := range p {
				p[i] = math.NaN()
			}
			return errors.New(why)
		}
	}
	f := c.now.Load().calibrator
	if !calibrator.Fits(f, len(logits)) {
		c.tell(ofLogits, fmt.Sprintf("it is for %d classes, the logits have %d", calibrator.ClassesOf(f), len(logits)))
		f = calibrator.Identity{}
	} else if c.problems[ofLogits].Load() != nil {
		c.problems[ofLogits].Store(nil)
	}
	f.Apply(p, logits)
	return nil
}

// Close ends it; the calibrator in force stays.
func (c *Calibrator) Close() {
	c.stop()
	c.ended.Wait()
}

func (c *Calibrator) tell(of int, why string) {
	if was := c.problems[of].Swap(&why); why == "" || was != nil && *was == why {
		return
	}
	if of == ofLogits { // every row may have another problem: once a minute
		now, last := time.Now().UnixNano(), c.logged.Load()
		if now-last < int64(time.Minute) || !c.logged.CompareAndSwap(last, now) {
			return
		}
	}
	c.log.Warn("plumbline calibrator", "problem", why)
}

// maxRecord bounds the answer: a record of Kafka, of 8 MiB by default (kafka.message_max_bytes). That of a full matrix
// for 1,000 classes has 20 MB.
const maxRecord = 64 << 20

// fetcher asks for the calibrator.
type fetcher struct {
	c              *Calibrator
	header         http.Header
	client         *http.Client
	model, version string
	etag           string
}

func (f *fetcher) follow(ctx context.Context, address string, timeout time.Duration) {
	for pause := backoff.New(time.Second/2, 30*time.Second); ctx.Err() == nil; {
		began := time.Now()
		wait := time.Duration(0)
		if !f.fetch(ctx, address, timeout) {
			wait = pause.Next()
		} else if pause.Reset(); time.Since(began) < 200*time.Millisecond { // it answers at once: too many wait there
			wait = 5 * time.Second
		}
		backoff.Sleep(ctx, wait)
	}
}

// fetch asks once; false where nothing was learnt.
func (f *fetcher) fetch(ctx context.Context, address string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := f.ask(ctx, address); err != nil {
		if errors.Is(err, context.Canceled) { // it is closed
			return false
		}
		f.c.tell(ofFetch, err.Error())
		return false
	}
	f.c.tell(ofFetch, "")
	return true
}

// answer is that of a process, as far as it is of account here.
type answer struct {
	Model, Version string
	Revision       *int
	Calibrator     json.RawMessage
	Top            *correction
}

type correction struct {
	calibrator.Correction
	From time.Time `json:"effective_from"`
}

func (f *fetcher) ask(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	if f.etag != "" {
		req.Header.Set("If-None-Match", f.etag)
	}
	res, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNotModified {
		return nil
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s from %s", res.Status, address)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRecord+1))
	if err == nil && len(body) > maxRecord {
		err = fmt.Errorf("%s: more than %d bytes, which no calibrator has", address, maxRecord)
	}
	var a answer
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	switch {
	case err != nil:
		return err
	case a.Model != f.model || f.version != "" && a.Version != f.version:
		return fmt.Errorf("%s: the answer is about model %q, version %q", address, a.Model, a.Version)
	case a.Revision == nil || len(a.Calibrator) == 0 || string(a.Calibrator) == "null":
		return fmt.Errorf("%s: the answer has no calibrator and revision", address)
	}
	f.take(*a.Revision, a.Calibrator, a.Top)
	f.etag = res.Header.Get("ETag")
	return nil
}

// take puts a calibrator into force, with its correction where there is one.
func (f *fetcher) take(revision int, encoded json.RawMessage, top *correction) {
	of := Serving{Revision: revision}
	made, err := calibrator.Decode(encoded)
	if err == nil && top != nil {
		of.Correction, of.CorrectedFrom = &top.Correction, top.From
		made, err = calibrator.Correct(made, top.Correction)
	}
	if err != nil { // a newer plumbline may publish what this one does not know
		f.c.now.Store(&inForce{calibrator: calibrator.Identity{}})
		f.c.tell(ofCalibrator, fmt.Sprintf("revision %d: %v", revision, err))
		return
	}
	f.c.now.Store(&inForce{made, of})
	f.c.tell(ofLogits, "")
	f.c.tell(ofCalibrator, "")
}
