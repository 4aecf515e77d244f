package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/sinks/history"
	"github.com/plumbline/plumbline/web/reply"
)

// eventWriteTimeout is how long a client may take to accept one write of an event stream.
const eventWriteTimeout = 20 * time.Second

// events is the SSE stream: snapshot, alert, calibrator and status events, and reset where the client's
// position cannot be resumed, so that it must load the state anew. The position is the header Last-Event-ID, which
// browsers send when they reconnect, or else the parameter after; ids are EPOCH-NUMBER.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	p := parse(r.URL.RawQuery, "model", "version", "slice", "window", "after")
	if p.err != nil {
		reply.Error(w, http.StatusBadRequest, p.err.Error())
		return
	}
	id := r.Header.Get("Last-Event-ID")
	if id == "" {
		id = p.text("after")
	}
	epoch, seq, err := parseEventID(id)
	if err != nil {
		reply.Error(w, http.StatusBadRequest, err.Error())
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // a reverse proxy must pass events on at once
	if r.Method == http.MethodHead {
		return
	}
	sub, err := a.History.Subscribe(epoch, seq, newFilter(p).takes)
	if err != nil {
		h.Set("Retry-After", "10")
		reply.Error(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer sub.Close()
	s := &stream{api: a, rc: http.NewResponseController(w), w: w}
	if err := s.run(r, sub); err != nil {
		a.Log.Debug("event stream ended", "remote", r.RemoteAddr, "err", err)
	}
}

// eventIDHeader is on every reply of the API: the reply holds at least this event, so that a client can subscribe
// after it and miss nothing.
const eventIDHeader = "Plumbline-Event-Id"

func eventID(epoch string, seq uint64) string { return fmt.Sprintf("%s-%d", epoch, seq) }

// parseEventID is the inverse of eventID; "" asks for new events only.
func parseEventID(id string) (epoch string, seq uint64, err error) {
	if id == "" {
		return "", 0, nil
	}
	epoch, num, _ := strings.Cut(id, "-")
	seq, err = strconv.ParseUint(num, 10, 64)
	if err != nil || epoch == "" {
		return "", 0, fmt.Errorf("event id %q: must be one that this server sent", id)
	}
	return epoch, seq, nil
}

// stream writes one client's events.
type stream struct {
	*api
	rc         *http.ResponseController
	w          http.ResponseWriter
	lastStatus []byte
}

func (s *stream) run(r *http.Request, sub *history.Subscription) error {
	epoch, _ := s.History.Position()
	begin := eventID(epoch, sub.Seq)
	if !sub.Complete {
		if err := s.write("reset", begin, []byte("{}")); err != nil {
			return err
		}
	}
	for _, e := range sub.Backlog {
		if err := s.event(epoch, e); err != nil {
			return err
		}
	}
	if err := s.status(begin); err != nil {
		return err
	}
	tick := time.NewTicker(s.heartbeat)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return nil
		case _, open := <-sub.Wake:
			if !open {
				return fmt.Errorf("client is too slow") // it reconnects and resumes from the backlog
			}
			err = s.waiting(r.Context(), epoch, sub)
		case <-tick.C:
			// The id moves on past events that the filter left out.
			id := eventID(epoch, sub.Passed())
			if err = s.status(id); err == nil {
				err = s.flush([]byte(": heartbeat\nid: " + id + "\n\n"))
			}
		}
		if err != nil {
			return err
		}
	}
}

// waiting writes the events that wait.
func (s *stream) waiting(ctx context.Context, epoch string, sub *history.Subscription) error {
	for ctx.Err() == nil {
		e, ok := sub.Next()
		if !ok {
			break
		}
		if err := s.event(epoch, e); err != nil {
			return err
		}
	}
	return nil
}

// event writes e. A record that JSON cannot hold is logged and left out.
func (s *stream) event(epoch string, e history.Event) error {
	data, err := json.Marshal(e.Record)
	if err != nil {
		s.Log.Error("encode event", "type", e.Type, "model", e.Model, "version", e.Version, "err", err)
		return nil
	}
	return s.write(e.Type, eventID(epoch, e.Seq), data)
}

// status writes the status if it changed since the last time.
func (s *stream) status(id string) error {
	data, err := json.Marshal(s.statusValue())
	if err != nil {
		s.Log.Error("encode status", "err", err)
		return nil
	}
	if bytes.Equal(data, s.lastStatus) {
		return nil
	}
	s.lastStatus = data
	return s.write("status", id, data)
}

func (s *stream) write(event, id string, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "id: %s\nevent: %s\ndata: %s\n\n", id, event, data) // json.Marshal never emits a line break
	return s.flush(b.Bytes())
}

func (s *stream) flush(b []byte) error {
	// Not every ResponseWriter has deadlines (httptest's has none); then the server's hold.
	_ = s.rc.SetWriteDeadline(time.Now().Add(eventWriteTimeout))
	if _, err := s.w.Write(b); err != nil {
		return err
	}
	return s.rc.Flush()
}

// filter is what a client wants: alerts and calibrators by model and version, snapshots also by slice and window.
type filter struct {
	model, version, slice, window string
	anySlice                      bool
}

func newFilter(p *params) filter {
	return filter{p.text("model"), p.text("version"), p.text("slice"), p.text("window"), !p.q.Has("slice")}
}

func (f filter) takes(e history.Event) bool {
	if (f.model != "" && e.Model != f.model) || (f.version != "" && e.Version != f.version) {
		return false
	}
	s, ok := e.Record.(*record.Snapshot)
	return !ok || ((f.anySlice || s.Slice == f.slice) && (f.window == "" || s.Window.Name == f.window))
}
