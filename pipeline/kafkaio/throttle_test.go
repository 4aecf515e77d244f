package kafkaio

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/listoffsets"

	"github.com/plumbline/plumbline/pipeline"
)

// overQuota is a broker whose quota a reader exceeds with its first answer: the next ones say nothing but how long to
// wait, until that is over.
type overQuota struct {
	canned
	end   int64 // of the log
	pause time.Duration
	until time.Time
}

func (b *overQuota) RoundTrip(ctx context.Context, addr net.Addr, m kafka.Request) (kafka.Response, error) {
	if _, ok := m.(*listoffsets.Request); ok {
		return &listoffsets.Response{Topics: []listoffsets.ResponseTopic{{Topic: "z",
			Partitions: []listoffsets.ResponsePartition{{Timestamp: kafka.LastOffset, Offset: b.end}}}}}, nil
	}
	f := m.(*rawFetch)
	if b.until.IsZero() {
		b.until = time.Now().Add(b.pause)
		return b.canned.RoundTrip(ctx, addr, m)
	}
	if !time.Now().Before(b.until) {
		return b.canned.RoundTrip(ctx, addr, m)
	}
	f.Required(map[protocol.ApiKey]int16{protocol.Fetch: 11})
	be := binary.BigEndian
	body := be.AppendUint32(nil, correlation)
	body = be.AppendUint32(body, uint32(time.Until(b.until).Milliseconds()))
	body = append(body, make([]byte, 2+4+4)...) // no error, no session, no topics
	return f.RawExchange(exchange{io.MultiReader(bytes.NewReader(be.AppendUint32(nil, uint32(len(body)))),
		bytes.NewReader(body)), io.Discard})
}

// TestQuota: a reader that a quota slows down waits as long as the brokers want and says so. Meanwhile it knows how far
// it is behind, does not pass for caught up, and its input not for idle.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broker := &overQuota{pause: 40 * time.Second}
		broker.canned = func(_ string, offset int64) (set []byte, end int64) {
			if offset < 3 {
				return batchOf(t, 0, 0, []byte("a"), []byte("b"), []byte("c")), 3
			}
			return batchOf(t, 3, 0, []byte("d"), []byte("e")), 5
		}
		broker.end = 5
		var log bytes.Buffer
		s := NewSource(Spec{
			Client:      &kafka.Client{Addr: kafka.TCP("nowhere"), Transport: broker},
			Topics:      map[pipeline.Input]string{pipeline.Logits: "z"},
			Next:        map[pipeline.Input]int64{pipeline.Logits: 0},
			Until:       map[pipeline.Input]int64{pipeline.Logits: 5},
			MaxBytes:    1 << 20,
			IdleTimeout: 10 * time.Second,
			Log:         slog.New(slog.NewTextHandler(&log, nil)),
		})
		defer s.Close()
		take := func() {
			t.Helper()
			if r, err := s.Next(t.Context()); err != nil || r.Idle {
				t.Fatalf("record %+v, %v", r, err)
			}
		}
		take()
		take()
		take()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if lag := s.Lags()[pipeline.Logits]; lag.Offsets != 2 || s.CaughtUp() || s.Refused() {
			t.Errorf("lag %+v, caught up %t, refused %t; want 2 offsets behind", lag, s.CaughtUp(), s.Refused())
		}
		take()
		take()
		if since := time.Since(broker.until); since < 0 || since > time.Second {
			t.Errorf("read on %v after the pause", since)
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "quota of the brokers") {
			t.Errorf("log: %s", got)
		}
	})
}
