package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/internal/embedded/seglog"
	"github.com/plumbline/plumbline/internal/filelock"
)

// Options of a server.
type Options struct {
	Dir    string
	Listen string // host:port of loopback
	// MessageMax bounds the batches of topics that say nothing of it.
	MessageMax int
	Log        *slog.Logger

	segmentBytes int64 // 0 is the default: for tests
}

// What holds where a topic says nothing else.
const (
	segmentBytes   = 32 << 20
	retentionAge   = 7 * 24 * time.Hour
	retentionBytes = 1 << 30
	cleanEvery     = time.Minute
)

// Server is a broker.
type Server struct {
	Options
	cluster *kfake.Cluster
	inner   *pipes
	outer   net.Listener
	lock    *os.File
	stop    context.CancelFunc
	done    <-chan struct{}
	work    sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	topics map[string]*topic     // by name; forgotten when topics change
	logs   map[place]*seglog.Log // by the topic's id
}

// place is a partition of a topic, whatever its name.
type place struct {
	id        [16]byte
	partition int32
}

// Start opens what the directory holds and serves it until Close.
func Start(o Options) (*Server, error) {
	if o.segmentBytes == 0 {
		o.segmentBytes = segmentBytes
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{Options: o, stop: stop, done: ctx.Done(), conns: map[net.Conn]bool{}, topics: map[string]*topic{},
		logs: map[place]*seglog.Log{}}
	if err := s.openAll(); err != nil {
		s.Close()
		return nil, err
	}
	s.work.Go(s.accept)
	s.work.Go(s.clean)
	return s, nil
}

// openAll opens the directory and the address.
func (s *Server) openAll() (err error) {
	if err := durable.MakeDir(filepath.Join(s.Dir, "log")); err != nil {
		return err
	}
	if s.lock, err = filelock.Open(filepath.Join(s.Dir, "lock")); err != nil {
		return fmt.Errorf("%s %w", s.Dir, err)
	}
	if s.outer, err = net.Listen("tcp", s.Listen); err != nil {
		return fmt.Errorf("the embedded log at %s: %w", s.Listen, err)
	}
	s.inner = newPipes(s.outer.Addr())
	if err := s.startCluster(); err != nil {
		return err
	}
	return s.openLogs()
}

// Close ends all connections and closes the files.
func (s *Server) Close() {
	s.stop()
	if s.outer != nil {
		_ = s.outer.Close()
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
	if s.cluster != nil {
		s.cluster.Close()
	}
	for at, l := range s.logs {
		if err := l.Close(); err != nil {
			s.Log.Warn("closing the embedded log", "partition", at.partition, "err", err)
		}
	}
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

func (s *Server) metaDir() string { return filepath.Join(s.Dir, "topics") }

// startCluster starts what has the topics and the groups. Its requests are those of Kafka 2.8, the newest in which
// fetches name topics, not their ids.
func (s *Server) startCluster() error {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(s.metaDir()), kfake.SyncWrites(),
		kfake.ClusterID("plumbline-"+rand.Text()), kfake.MaxVersions(kversion.V2_8_0()),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return s.inner, nil }))
	if err != nil {
		return fmt.Errorf("topics of the embedded log: %w", err)
	}
	s.cluster = cluster
	return durable.SyncDir(s.metaDir())
}

// logName is the directory of a partition.
func logName(name string, at place) string {
	return fmt.Sprintf("%s.%d.%s", name, at.partition, hex.EncodeToString(at.id[:]))
}

// parseLogName is its inverse.
func parseLogName(s string) (at place, ok bool) {
	var partition, id string
	if i := strings.LastIndexByte(s, '.'); i > 0 {
		s, id = s[:i], s[i+1:]
	}
	if i := strings.LastIndexByte(s, '.'); i > 0 {
		partition = s[i+1:]
	}
	b, err := hex.DecodeString(id)
	_, scan := fmt.Sscanf(partition, "%d", &at.partition)
	return place{[16]byte(append(b, make([]byte, 16)...)), at.partition}, err == nil && scan == nil && len(b) == 16
}

// openLogs opens the logs that the directory holds, so that one that is damaged is said at once.
func (s *Server) openLogs() error {
	entries, err := os.ReadDir(filepath.Join(s.Dir, "log"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		at, ok := parseLogName(e.Name())
		if !ok {
			return fmt.Errorf("%s: is not of this program", filepath.Join(s.Dir, "log", e.Name()))
		}
		info := s.cluster.TopicIDInfo(at.id)
		if info == nil {
			s.Log.Warn("a log of no topic is left alone: remove it, or ask why its topic is gone", "directory",
				filepath.Join(s.Dir, "log", e.Name()))
			continue
		}
		if _, err := s.open(info.Topic, at); err != nil {
			return err
		}
	}
	return nil
}

// open returns the log of a partition.
func (s *Server) open(name string, at place) (*seglog.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logs[at]; l != nil {
		return l, nil
	}
	parent := filepath.Join(s.Dir, "log")
	l, err := seglog.Open(filepath.Join(parent, logName(name, at)),
		seglog.Options{SegmentBytes: s.segmentBytes, Log: s.Log})
	if err == nil {
		err = durable.SyncDir(parent)
	}
	if err != nil {
		return nil, err
	}
	s.logs[at] = l
	return l, nil
}
