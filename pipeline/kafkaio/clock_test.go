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
		hear := func(partition int, ahead time.Duration) {
			c.hear(topicPartition{"panes", partition}, time.Now().Add(ahead))
		}
		check("no broker was heard", 0)
		hear(0, -time.Hour)
		check("a broker is behind", 0)
		hear(1, 24*time.Hour)
		check("another one is ahead", 0)
		for range 3 {
			hear(0, 8*time.Minute)
			check("both are ahead", 8*time.Minute)
			time.Sleep(10 * time.Minute)
			check("ten minutes later", 8*time.Minute)
		}
		if n := strings.Count(log.String(), "is behind that of the brokers"); n != 1 {
			t.Errorf("%d lines in the log, want 1: %s", n, &log)
		}
		hear(0, 0)
		check("the own clock was set", 0)
		c = nil
		check("no clock", 0)
	})
}
