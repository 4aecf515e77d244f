package faultlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plumbline/plumbline/internal/faultlog"
)

// TestOneLineAMinute logs a fault of 50 partitions every second for three minutes, beside another fault and lines that
// are none.
func TestOneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(faultlog.New(slog.NewTextHandler(&out, nil)))
		for second := range 180 {
			for p := range 50 {
				err := fmt.Errorf("fetch from z partition %d at %d: unexpected EOF", p, second)
				log.With("partition", p).Warn("fetch, trying again", "offset", 10*p, faultlog.Err(err))
			}
			if second < 2 {
				log.Warn("produce, trying again", faultlog.Err(errors.New("refused")))
				log.Info("other", "err", "x")
			}
			time.Sleep(time.Second)
		}
		text := out.String()
		for part, want := range map[string]int{"fetch, trying again": 3, "repeated=2999": 2, "produce": 1, "other": 2,
			"err=refused": 1, "unexpected EOF": 3} {
			if got := strings.Count(text, part); got != want {
				t.Errorf("%q %d times, want %d in\n%s", part, got, want, text)
			}
		}
	})
}

// TestWithoutTheHandler: a logger of another kind prints the error.
func TestWithoutTheHandler(t *testing.T) {
	var out bytes.Buffer
	slog.New(slog.NewTextHandler(&out, nil)).Warn("x", faultlog.Err(errors.New("refused")))
	slog.New(slog.NewJSONHandler(&out, nil)).Warn("x", faultlog.Err(errors.New("refused")))
	if text := out.String(); strings.Count(text, "refused") != 2 {
		t.Error(text)
	}
}

// TestFaultsAreBounded: errors that differ each time do not fill the memory.
func TestFaultsAreBounded(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(faultlog.New(slog.NewTextHandler(&out, nil)))
	for i := range 5000 {
		log.Warn("x", faultlog.Err(errors.New(strings.Repeat("a", i%2500))))
	}
	if n := strings.Count(out.String(), "\n"); n < 2500 {
		t.Errorf("%d lines", n)
	}
}
