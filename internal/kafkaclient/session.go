package kafkaclient

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/apiversions"
	"github.com/segmentio/kafka-go/protocol/saslauthenticate"
	"github.com/segmentio/kafka-go/protocol/saslhandshake"
	"github.com/segmentio/kafka-go/sasl"
)

// connector makes connections that are encrypted and logged in, in place of kafka-go (v0.4.51), which logs in once and
// has its connections cut where brokers want that again (connections.max.reauth.ms).
type connector struct {
	clientID  string
	tls       *tls.Config    // nil = in the clear
	mechanism sasl.Mechanism // nil = nobody logs in
}

// addressTimeout is for one address of several: the others must have their turn.
const addressTimeout = 3 * time.Second

func (c connector) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{Timeout: addressTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	ready, err := c.prepare(ctx, conn, addr)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return ready, nil
}

func (c connector) prepare(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if c.tls != nil {
		config := c.tls.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr)
		encrypted := tls.Client(conn, config)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = encrypted
	}
	if c.mechanism == nil {
		return conn, nil
	}
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	s := &session{Conn: conn, mechanism: c.mechanism, wire: protocol.NewConn(conn, c.clientID)}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, conn.SetDeadline(time.Time{})
}

// session is a connection that logs in again when the broker will soon want it (KIP-368): before a request, while no
// answer is awaited, so that no request is lost. Requests are answered one by one on it, or in their order.
type session struct {
	net.Conn
	mechanism sasl.Mechanism
	wire      *protocol.Conn // of the requests to log in

	mu        sync.Mutex
	renew     time.Time // when to log in again; zero = never
	out, in   frames
	requests  int64 // written whole
	responses int64
}

// begin asks for the versions that the broker knows, and logs in.
func (s *session) begin(ctx context.Context) error {
	res, err := s.wire.RoundTrip(&apiversions.Request{})
	if err != nil {
		return fmt.Errorf("ask for versions: %w", err)
	}
	known := map[protocol.ApiKey]int16{}
	for _, k := range res.(*apiversions.Response).ApiKeys {
		key := protocol.ApiKey(k.ApiKey)
		known[key] = key.SelectVersion(k.MinVersion, k.MaxVersion)
	}
	s.wire.SetVersions(known)
	return s.logIn(ctx)
}

// logIn authenticates, and again: the exchange is the same.
func (s *session) logIn(ctx context.Context) error {
	began := time.Now()
	res, err := s.wire.RoundTrip(&saslhandshake.Request{Mechanism: s.mechanism.Name()})
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if code := res.(*saslhandshake.Response).ErrorCode; code != 0 {
		return fmt.Errorf("log in by %s: %w", s.mechanism.Name(), kafka.Error(code))
	}
	machine, state, err := s.mechanism.Start(ctx)
	var lifetime time.Duration
	for done := false; err == nil && !done; {
		var res protocol.Message
		if res, err = s.wire.RoundTrip(&saslauthenticate.Request{AuthBytes: state}); err != nil {
			break
		}
		answer := res.(*saslauthenticate.Response)
		if answer.ErrorCode != 0 {
			return fmt.Errorf("log in: %s: %w", answer.ErrorMessage, kafka.Error(answer.ErrorCode))
		}
		lifetime = time.Duration(answer.SessionLifetimeMs) * time.Millisecond
		done, state, err = machine.Next(ctx, answer.AuthBytes)
	}
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	s.renew = time.Time{}
	if lifetime > 0 {
		s.renew = began.Add(lifetime * 4 / 5)
	}
	return nil
}

// Write implements net.Conn. A request that begins when it is time waits until the connection has logged in again.
func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	idle := s.out.atStart() && s.requests == s.responses
	if idle && !s.renew.IsZero() && time.Now().After(s.renew) {
		if err := s.logIn(context.Background()); err != nil { // the request's deadline is the connection's
			s.mu.Unlock()
			return 0, err
		}
	}
	s.requests += s.out.take(p)
	s.mu.Unlock()
	return s.Conn.Write(p)
}

// Read implements net.Conn.
func (s *session) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.mu.Lock()
	s.responses += s.in.take(p[:n])
	s.mu.Unlock()
	return n, err
}

// frames follows a stream of Kafka's messages: the length in four bytes, and then so many.
type frames struct {
	head [4]byte
	have int   // bytes of head
	left int64 // bytes of the message
}

func (f *frames) atStart() bool { return f.have == 0 && f.left == 0 }

// take goes on by p and returns how many messages ended in it.
func (f *frames) take(p []byte) (ended int64) {
	for len(p) > 0 {
		if f.left == 0 {
			n := copy(f.head[f.have:], p)
			f.have, p = f.have+n, p[n:]
			if f.have < len(f.head) {
				return ended
			}
			f.left = int64(binary.BigEndian.Uint32(f.head[:]))
		}
		n := min(f.left, int64(len(p)))
		f.left, p = f.left-n, p[n:]
		if f.left == 0 {
			f.have = 0
			ended++
		}
	}
	return ended
}
