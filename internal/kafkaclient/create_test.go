package kafkaclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/kafkaclient"
)

// TestSettledWaitsForWhatPasses: a broker that has just gone answers nothing, and the others choose leaders then.
func TestSettledWaitsForWhatPasses(t *testing.T) {
	t.Parallel()
	gone := &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("connect: %w", syscall.ECONNREFUSED)}
	for err, waits := range map[error]bool{
		gone: true, fmt.Errorf("create topics: %w", gone): true, fmt.Errorf("create topics: %w", io.EOF): true,
		kafka.NotController: true, kafka.LeaderNotAvailable: true,
		kafka.TopicAuthorizationFailed: false, context.Canceled: false, errors.New("another"): false,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			tries := 0
			got := kafkaclient.Settled(t.Context(), nil, func() error {
				if tries++; tries == 1 {
					return err
				}
				return nil
			})
			if waits && (got != nil || tries != 2) || !waits && (!errors.Is(got, err) || tries != 1) {
				t.Errorf("%v after %d tries, want it to wait: %t", got, tries, waits)
			}
		})
	}
}
