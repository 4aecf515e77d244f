// Package faultlog keeps a fault that lasts from filling the log: what tries again for ever would write a line each
// time, in every partition, and hide all others.
//
// A loop that tries again names its error by [Err]. The [Handler] writes the first line of a fault, and then one a
// minute with the number of those that it left out. Lines are of one fault where message and error are the same but for
// numbers, as offsets, ports and partitions are. It must not know who logs: the mark travels in the record, so loggers
// are passed on as they are, and one without the handler prints all lines.
package faultlog

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Every is the pause between two lines of one fault.
const Every = time.Minute

// maxFaults bounds what is remembered; beyond it the oldest are forgotten.
const maxFaults = 1000

// mark is the error of a fault.
type mark struct{ error }

// Err is the attribute "err" of a line that may come again and again.
func Err(err error) slog.Attr { return slog.Any("err", mark{err}) }

// Lines returns a handler whose records are faults of a log, under one message: the lines of an http.Server, of which
// strangers cause any number.
func Lines(to *slog.Logger, message string) slog.Handler {
	return lines{to.Handler(), to, message}
}

type lines struct {
	slog.Handler
	log     *slog.Logger
	message string
}

// Handle implements slog.Handler.
func (l lines) Handle(_ context.Context, r slog.Record) error {
	l.log.Warn(l.message, Err(errors.New(r.Message)))
	return nil
}

// Handler limits the lines of faults, and passes on all others.
type Handler struct {
	slog.Handler
	seen *seen
}

// seen are the faults of a process, shared by all handlers that are made of one.
type seen struct {
	mu     sync.Mutex
	faults map[string]*fault
}

type fault struct {
	written time.Time
	left    int // lines left out since
}

// New returns a handler that writes to the given one.
func New(h slog.Handler) *Handler { return &Handler{h, &seen{faults: map[string]*fault{}}} }

// Handle implements slog.Handler.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	key := ""
	r.Attrs(func(a slog.Attr) bool {
		if m, ok := a.Value.Any().(mark); ok {
			key = r.Message + "\x00" + withoutNumbers(m.Error())
		}
		return key == ""
	})
	if key == "" {
		return h.Handler.Handle(ctx, r)
	}
	left, due := h.seen.take(key, r.Time)
	if !due {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", left))
	}
	return h.Handler.Handle(ctx, r)
}

// take reports whether a line of the fault is due, and how many were left out before it.
func (s *seen) take(key string, now time.Time) (left int, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults[key]
	if f == nil {
		s.makeRoom()
		s.faults[key] = &fault{written: now}
		return 0, true
	}
	if now.Sub(f.written) < Every {
		f.left++
		return 0, false
	}
	left, f.left, f.written = f.left, 0, now
	return left, true
}

// makeRoom forgets the fault whose line is oldest, where there are too many.
func (s *seen) makeRoom() {
	if len(s.faults) < maxFaults {
		return
	}
	oldest := ""
	for key, f := range s.faults {
		if oldest == "" || f.written.Before(s.faults[oldest].written) {
			oldest = key
		}
	}
	delete(s.faults, oldest)
}

// withoutNumbers is a text with each number as one #, and each address in brackets.
func withoutNumbers(text string) string {
	var b strings.Builder
	number := false
	for i, c := range text {
		if c == '[' {
			inside, rest, _ := strings.Cut(text[i+1:], "]")
			if _, err := netip.ParseAddr(inside); err == nil {
				return b.String() + "[#]" + withoutNumbers(rest)
			}
		}
		if c >= '0' && c <= '9' {
			if !number {
				b.WriteByte('#')
			}
			number = true
			continue
		}
		number = false
		b.WriteRune(c)
	}
	return b.String()
}

// WithAttrs implements slog.Handler.
func (h *Handler) WithAttrs(as []slog.Attr) slog.Handler {
	return &Handler{h.Handler.WithAttrs(as), h.seen}
}

// WithGroup implements slog.Handler.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.Handler.WithGroup(name), h.seen}
}
