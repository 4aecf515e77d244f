package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame bounds a request, as socket.request.max.bytes does.
const maxFrame = 100 << 20

// accept serves connections.
func (s *Server) accept() {
	for {
		c, err := s.outer.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.work.Go(func() {
			if err := s.serve(c); err != nil {
				s.Log.Debug("a connection to the embedded log ended", "from", c.RemoteAddr(), "err", err)
			}
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			_ = c.Close()
		})
	}
}

// serve answers the requests of a connection one after the other.
func (s *Server) serve(c net.Conn) error {
	var behind net.Conn
	defer func() {
		if behind != nil {
			_ = behind.Close()
		}
	}()
	for {
		frame, err := readFrame(c)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		req, corr, err := s.parse(frame)
		if err != nil {
			return err
		}
		var answer []byte
		if req != nil {
			answer = s.answer(req, corr)
		} else {
			if behind == nil {
				if behind, err = s.inner.dial(); err != nil {
					return err
				}
			}
			if answer, err = s.forward(behind, frame); err != nil {
				return err
			}
		}
		if answer == nil { // a producer that wants none
			continue
		}
		if _, err := c.Write(answer); err != nil {
			return err
		}
	}
}

// readFrame returns a request or an answer with its length in front.
func readFrame(c net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n < 4 || n > maxFrame {
		return nil, fmt.Errorf("a message of %d bytes: must be 4 to %d", n, maxFrame)
	}
	b := make([]byte, 4+n)
	copy(b, size[:])
	_, err := io.ReadFull(c, b[4:])
	return b, err
}

// forward hands a request to kfake.
func (s *Server) forward(behind net.Conn, frame []byte) ([]byte, error) {
	if _, err := behind.Write(frame); err != nil {
		return nil, err
	}
	answer, err := readFrame(behind)
	if err != nil {
		return nil, err
	}
	switch kmsg.Key(int16(binary.BigEndian.Uint16(frame[4:]))) { //nolint:gosec // signed on the wire
	case kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.CreatePartitions, kmsg.AlterConfigs, kmsg.IncrementalAlterConfigs:
		err = s.changed()
	}
	return answer, err
}

// parse returns a request for records; nil for any other.
func (s *Server) parse(frame []byte) (kmsg.Request, []byte, error) {
	if len(frame) < 14 {
		return nil, nil, fmt.Errorf("a request of %d bytes", len(frame))
	}
	key := int16(binary.BigEndian.Uint16(frame[4:]))     //nolint:gosec // signed on the wire
	version := int16(binary.BigEndian.Uint16(frame[6:])) //nolint:gosec // signed on the wire
	var newest int16
	switch kmsg.Key(key) {
	case kmsg.Produce:
		newest = 9
	case kmsg.Fetch:
		newest = 12
	case kmsg.ListOffsets:
		newest = 6
	case kmsg.OffsetForLeaderEpoch:
		newest = 4
	default:
		return nil, nil, nil
	}
	if version < 0 || version > newest || kmsg.Key(key) == kmsg.Produce && version < 3 {
		return nil, nil, fmt.Errorf("%s of version %d is not spoken here", kmsg.NameForKey(key), version)
	}
	req := kmsg.RequestForKey(key)
	req.SetVersion(version)
	name := int(int16(binary.BigEndian.Uint16(frame[12:]))) //nolint:gosec // signed on the wire
	at := 14 + max(name, 0)
	if req.IsFlexible() {
		at++ // no tags are known in headers, so there are none
	}
	if at > len(frame) {
		return nil, nil, errors.New("a request that ends in its header")
	}
	return req, frame[8:12], req.ReadFrom(frame[at:])
}

// answer is the frame of an answer; nil for none.
func (s *Server) answer(req kmsg.Request, corr []byte) []byte {
	var resp kmsg.Response
	switch r := req.(type) {
	case *kmsg.ProduceRequest:
		if resp = s.produce(r); r.Acks == 0 {
			return nil
		}
	case *kmsg.FetchRequest:
		resp = s.fetch(r)
	case *kmsg.ListOffsetsRequest:
		resp = s.listOffsets(r)
	case *kmsg.OffsetForLeaderEpochRequest:
		resp = s.leaderEpochs(r)
	}
	b := append(make([]byte, 4, 256), corr...)
	if resp.IsFlexible() {
		b = append(b, 0)
	}
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4)) //nolint:gosec // fetches are bounded
	return b
}

// pipes is a listener within the process, which says that it listens elsewhere.
type pipes struct {
	addr   net.Addr
	next   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes(addr net.Addr) *pipes {
	return &pipes{addr: addr, next: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.next:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return p.addr }

func (p *pipes) dial() (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case p.next <- b:
		return a, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
