package kafkaio

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
)

// TestClock: the brokers' time counts where it is later, however long ago it was heard, and the log says so once.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := NewClock(&kafka.Transport{}, slog.New(slog.NewTextHandler(&log, nil)))
		check := func(when string, ahead time.Duration) {
			t.Helper()
			if got := time.Until(c.Now()); got != ahead {
				t.Errorf("%s: %v ahead of the own clock, want %v", when, got, ahead)
			}
		}
		check("no broker was heard", 0)
		c.hear(time.Now().Add(-time.Hour))
		check("a broker is behind", 0)
		for range 3 {
			c.hear(time.Now().Add(8 * time.Minute))
			check("a broker is ahead", 8*time.Minute)
			time.Sleep(10 * time.Minute)
			check("ten minutes later", 8*time.Minute)
		}
		if n := strings.Count(log.String(), "is behind that of the brokers"); n != 1 {
			t.Errorf("%d lines in the log, want 1: %s", n, &log)
		}
		c.hear(time.Now())
		check("the own clock was set", 0)
		c = nil
		check("no clock", 0)
	})
}
