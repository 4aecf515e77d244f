package client_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/client"
)

// silent is a broker that answers nothing.
type silent struct{ asked chan struct{} }

func (s silent) RoundTrip(ctx context.Context, _ net.Addr, _ kafka.Request) (kafka.Response, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestClosingIsNoTrouble: what ends because the caller closed it is not told as a fault.
func TestClosingIsNoTrouble(t *testing.T) {
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	asked := make(chan struct{}, 1)
	l, err := client.New("m", client.Options{To: "kafka://b", Linger: 1, Log: log, Transport: silent{asked}})
	if err != nil {
		t.Fatal(err)
	}
	l.Log(row("a"))
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := l.Close(ctx); got.Dropped != 1 || !strings.Contains(said.String(), "closed before they were sent") {
		t.Errorf("%+v, said %s", got, &said)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Query().Get("wait") != "" {
			asked <- struct{}{}
			<-q.Context().Done()
			return
		}
		_, _ = io.WriteString(w, `{"model":"m","revision":1,"calibrator":{"version":1,"method":"identity"}}`)
	}))
	defer s.Close()
	c := client.Follow(s.URL, "m", client.FollowOptions{Log: log})
	<-asked
	c.Close()
	for _, not := range []string{"canceled", "no calibrator yet"} {
		if strings.Contains(said.String(), not) {
			t.Errorf("said %q:\n%s", not, &said)
		}
	}
	if c.Revision() != 1 || c.Problem() != "" {
		t.Errorf("revision %d, problem %q", c.Revision(), c.Problem())
	}
}
