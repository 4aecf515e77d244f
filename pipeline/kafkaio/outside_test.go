package kafkaio_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// TestOutsideSaysWhy: a group that this user may not join says so, and the process goes on trying.
func TestOutsideSaysWhy(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.StartGuarded(t, "group g-shards Read", "topic panes Read")
	login := plain.Mechanism{Username: "app", Password: "app"}
	transport := &kafka.Transport{SASL: login}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var why error
	g := kafkaio.Group{ID: "g-models", Brokers: brokers, Dialer: &kafka.Dialer{SASLMechanism: login},
		Client: &kafka.Client{Addr: kafka.TCP(brokers...), Transport: transport}, Topics: []string{"panes"},
		Log: slog.New(slog.DiscardHandler), Outside: func(err error) { why = err; cancel() }}
	err := g.Run(ctx, func(context.Context, int, kafkaio.CommitFunc) error { return nil })
	if err != nil || !errors.Is(why, kafka.GroupAuthorizationFailed) {
		t.Errorf("%v, the group said %v", err, why)
	}
}
