//go:build linux || darwin || freebsd

package web

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// pipes is a listener whose connections take no file.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error { close(p); return nil }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestFilesForOthers: clients hold at most half of the files that the process may open, so that checkpoints and
// connections to brokers find one.
func TestFilesForOthers(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	const files, extra = 256, 10
	low := before
	low.Cur = files
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) })
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	l := make(pipes)
	srv := Server("", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), quiet)
	srv.ReadHeaderTimeout = time.Minute // silence alone closes none
	Serve(ctx, g, srv, l, srv.Serve)
	var clients []net.Conn
	for range files/2 + extra {
		client, server := net.Pipe()
		l <- server
		clients = append(clients, client)
	}
	for i, c := range clients[:extra] { // the longest quiet ones made room
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("connection %d: %v, want it closed", i, err)
		}
	}
	for i, c := range []net.Conn{clients[extra], clients[len(clients)-1]} {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil || !answers(c) {
			t.Errorf("open connection %d has no answer: %v", i, err)
		}
	}
	for _, c := range clients {
		_ = c.Close()
	}
	cancel()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}
