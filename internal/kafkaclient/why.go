package kafkaclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/pipeline/kafkaio"
)

// why is an error with what to do about it.
type why struct {
	text string
	err  error
}

func (w *why) Error() string { return w.text }
func (w *why) Unwrap() error { return w.err }

// Explain says why the brokers cannot be asked, and which key to look at: kafka-go reports a wrong password, an
// authority that is not trusted and a listener of another kind as "EOF" or "Broker Not Available". It connects again to
// see at which step that fails. Errors that are not of the connection, and those that it cannot reproduce, stay as they
// are.
func Explain(ctx context.Context, cfg kafkaio.Config, err error) error {
	var known *why
	switch {
	case err == nil, ctx.Err() != nil, errors.As(err, &known):
		return err
	case errors.Is(err, kafka.UnknownTopicOrPartition):
		hint := "plumbline topics create makes the topics"
		if cfg.SASL.Username != "" {
			hint += fmt.Sprintf("; or user %q may not see it", cfg.SASL.Username)
		}
		return &why{fmt.Sprintf("%v (%s)", err, hint), err}
	}
	for _, refused := range []error{kafka.TopicAuthorizationFailed, kafka.GroupAuthorizationFailed,
		kafka.ClusterAuthorizationFailed} {
		if errors.Is(err, refused) {
			who := "who gives no name (kafka.sasl)"
			if cfg.SASL.Username != "" {
				who = fmt.Sprintf("user %q", cfg.SASL.Username)
			}
			return &why{fmt.Sprintf("%v (the brokers' access lists do not let %s do this; plumbline doctor "+
				"says which rights are missing)", err, who), err}
		}
	}
	var answer kafka.Error
	if errors.As(err, &answer) && !ofConnection[answer] {
		return err
	}
	if cause := findCause(ctx, cfg); cause != "" {
		return &why{cause, err}
	}
	return err
}

// ofConnection are the answers of brokers, and of kafka-go in their name, that say nothing about the request.
var ofConnection = map[kafka.Error]bool{
	kafka.BrokerNotAvailable:       true,
	kafka.SASLAuthenticationFailed: true,
	kafka.UnsupportedSASLMechanism: true,
	kafka.IllegalSASLState:         true,
	kafka.NetworkException:         true,
}

// findCause probes the brokers of the configuration, and those that they name, and says what is wrong with the one that
// got furthest; "" where one of each takes requests.
func findCause(ctx context.Context, cfg kafkaio.Config) string {
	first := probeAll(ctx, cfg, cfg.Brokers)
	if first.broker == nil {
		return first.cause
	}
	var named []string
	for addr := range first.named {
		named = append(named, addr)
	}
	if second := probeAll(ctx, cfg, named); second.broker == nil && len(named) > 0 {
		return fmt.Sprintf("%s answers, and names the brokers %s, of which none does: check their "+
			"advertised.listeners (%s)", first.addr, strings.Join(named, ", "), second.cause)
	}
	return ""
}

// probeAll probes brokers side by side and returns what came of the one that got furthest.
func probeAll(ctx context.Context, cfg kafkaio.Config, addrs []string) probe {
	results := make(chan probe, len(addrs))
	for _, addr := range addrs {
		go func() { results <- newProbe(ctx, cfg, addr) }()
	}
	var best probe
	for i := range addrs {
		if p := <-results; i == 0 || p.step > best.step {
			best = p
		}
	}
	return best
}
