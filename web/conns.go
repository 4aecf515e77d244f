package web

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// maxConns is how many connections a server has open at a time: room for 10,000 long polls. Each takes 20 KB and a file
// descriptor; checkpoints and connections to brokers need those, too.
const maxConns = 12_288

// connsWithin is the same for a process that may open so many files: half of them are for others than its clients.
func connsWithin(files uint64) int { return int(min(maxConns, max(files/2, 1))) } //nolint:gosec // small

// conns is a listener that bounds the connections that are open. Where there are too many, the one that has asked for
// nothing for longest makes room, so that probes and scrapes come through whoever holds the others open.
type conns struct {
	net.Listener
	most int

	mu    sync.Mutex
	open  int
	quiet *list.List // of *conn without a request, longest first
}

// conn is one of them.
type conn struct {
	net.Conn
	of     *conns
	place  *list.Element // in of.quiet; nil: it has a request
	closed bool
}

// bounded returns l with at most so many connections of srv.
func bounded(l net.Listener, srv *http.Server, most int) net.Listener {
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		if t, ok := c.(*tls.Conn); ok {
			c = t.NetConn()
		}
		if c, ok := c.(*conn); ok {
			c.see(s)
		}
	}
	return &conns{Listener: l, most: most, quiet: list.New()}
}

// Accept implements net.Listener. What finds no room, because all have requests, is closed.
func (l *conns) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if added := l.add(c); added != nil {
			return added, nil
		}
		_ = c.Close()
	}
}

func (l *conns) add(c net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		first := l.quiet.Front()
		if first == nil {
			return nil
		}
		_ = first.Value.(*conn).end()
	}
	l.open++
	added := &conn{Conn: c, of: l}
	added.place = l.quiet.PushBack(added)
	return added
}

// see notes whether a connection has a request.
func (c *conn) see(s http.ConnState) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	switch {
	case c.closed:
	case s == http.StateActive && c.place != nil:
		c.of.quiet.Remove(c.place)
		c.place = nil
	case s == http.StateIdle && c.place == nil:
		c.place = c.of.quiet.PushBack(c)
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.end()
}

// end closes the connection, once. The caller holds the lock.
func (c *conn) end() error {
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.of.open--
	if c.place != nil {
		c.of.quiet.Remove(c.place)
		c.place = nil
	}
	return c.Conn.Close()
}
