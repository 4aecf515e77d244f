package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plumbline/plumbline/calib/calibrator"
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
// published. Where it is not sure - none was fetched, another number of classes, a method that it does not know - it
// gives the plain softmax, and Problem says why.
type Calibrator struct {
	now     atomic.Pointer[inForce]
	problem atomic.Pointer[string]
	stop    context.CancelFunc
	ended   sync.WaitGroup
	log     *slog.Logger
}

type inForce struct {
	calibrator calibrator.Calibrator
	revision   int
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
	c.trouble("no calibrator yet")
	q := url.Values{}
	if o.Version != "" {
		q.Set("version", o.Version)
	}
	at := strings.TrimSuffix(address, "/") + "/api/v1/models/" + url.PathEscape(model) + "/calibrator?"
	f := &fetcher{c: c, header: o.Header, client: o.HTTP}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	f.fetch(ctx, at+q.Encode(), 5*time.Second)
	q.Set("wait", o.Wait.String())
	c.ended.Go(func() { f.follow(ctx, at+q.Encode(), o.Wait+10*time.Second) })
	return c
}

// Revision is the number of the calibrator in force; 0 is none.
func (c *Calibrator) Revision() int { return c.now.Load().revision }

// Problem says why the plain softmax is given; "" where it is not.
func (c *Calibrator) Problem() string { return *c.problem.Load() }

// Apply writes the probabilities of one row of logits to p, of the same length.
func (c *Calibrator) Apply(p, logits []float64) {
	f := c.now.Load().calibrator
	if !calibrator.Fits(f, len(logits)) {
		c.trouble(fmt.Sprintf("it is for %d classes, the logits have %d", calibrator.ClassesOf(f), len(logits)))
		f = calibrator.Identity{}
	}
	f.Apply(p, logits)
}

// Close ends it; the calibrator in force stays.
func (c *Calibrator) Close() {
	c.stop()
	c.ended.Wait()
}

func (c *Calibrator) trouble(why string) {
	if was := c.problem.Swap(&why); was != nil && *was != why && why != "" {
		c.log.Warn("plumbline calibrator", "problem", why)
	}
}

// maxRecord bounds the answer: a record of Kafka, of 8 MiB by default (kafka.message_max_bytes). That of a full matrix
// for 1,000 classes has 20 MB.
const maxRecord = 64 << 20

// fetcher asks for the calibrator.
type fetcher struct {
	c      *Calibrator
	header http.Header
	client *http.Client
	etag   string
}

func (f *fetcher) follow(ctx context.Context, address string, timeout time.Duration) {
	const first = time.Second / 2
	for pause := first; ctx.Err() == nil; {
		began := time.Now()
		wait := time.Duration(0)
		if !f.fetch(ctx, address, timeout) {
			wait, pause = pause, min(2*pause, 30*time.Second)
		} else if pause = first; time.Since(began) < 200*time.Millisecond { // it answers at once: too many wait there
			wait = 5 * time.Second
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// fetch asks once; false where nothing was learnt.
func (f *fetcher) fetch(ctx context.Context, address string, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		f.c.trouble(err.Error())
		return false
	}
	for name, values := range f.header {
		req.Header[name] = values
	}
	if f.etag != "" {
		req.Header.Set("If-None-Match", f.etag)
	}
	res, err := f.client.Do(req)
	if err != nil {
		f.c.trouble(err.Error())
		return false
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNotModified {
		return true
	}
	if res.StatusCode != http.StatusOK {
		f.c.trouble(fmt.Sprintf("%s from %s", res.Status, address))
		return false
	}
	var record struct {
		Revision   int
		Calibrator json.RawMessage
		Top        *calibrator.TopCorrection
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRecord+1))
	if err == nil && len(body) > maxRecord {
		err = fmt.Errorf("%s: more than %d bytes, which no calibrator has", address, maxRecord)
	}
	if err == nil {
		err = json.Unmarshal(body, &record)
	}
	if err != nil {
		f.c.trouble(err.Error())
		return false
	}
	f.take(record.Revision, record.Calibrator, record.Top)
	f.etag = res.Header.Get("ETag")
	return true
}

// take puts a calibrator into force, with the correction of its top confidence where there is one.
func (f *fetcher) take(revision int, encoded json.RawMessage, top *calibrator.TopCorrection) {
	made, err := calibrator.Calibrator(calibrator.Identity{}), error(nil)
	if len(encoded) > 0 && string(encoded) != "null" {
		made, err = calibrator.Decode(encoded)
	}
	if err == nil && top != nil {
		made, err = calibrator.Correct(made, *top)
	}
	if err != nil { // a newer plumbline may publish what this one does not know
		f.c.now.Store(&inForce{calibrator: calibrator.Identity{}})
		f.c.trouble(fmt.Sprintf("revision %d: %v", revision, err))
		return
	}
	f.c.now.Store(&inForce{made, revision})
	f.c.trouble("")
}
