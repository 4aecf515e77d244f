package embedded

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/durable"
	"github.com/plumbline/plumbline/internal/embedded/seglog"
)

// topic is what requests for records need of one.
type topic struct {
	name       string
	id         [16]byte
	partitions int32
	messageMax int
	appendTime bool
	compact    bool
	retention  seglog.Retention
}

// topicOf looks one up; nil where there is none.
func (s *Server) topicOf(name string) *topic {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t != nil {
		return t
	}
	info := s.cluster.TopicInfo(name)
	if info == nil {
		return nil
	}
	partitions := len(s.cluster.PartitionInfos(name))
	t = newTopic(name, info, s.MessageMax)
	t.partitions = int32(partitions) //nolint:gosec // few
	s.mu.Lock()
	s.topics[name] = t
	s.mu.Unlock()
	return t
}

// newTopic reads a topic's configuration.
func newTopic(name string, info *kfake.TopicInfo, messageMax int) *topic {
	t := &topic{name: name, id: info.TopicID, messageMax: messageMax,
		retention: seglog.Retention{Age: retentionAge, Bytes: retentionBytes}}
	set := func(key string) (string, bool) {
		v := info.Configs[key]
		if v == nil {
			return "", false
		}
		return *v, true
	}
	number := func(key string, old int64) int64 {
		text, _ := set(key)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return old
	}
	t.messageMax = int(number("max.message.bytes", int64(messageMax)))
	t.retention.Bytes = max(number("retention.bytes", t.retention.Bytes), 0)
	t.retention.Age = time.Duration(max(number("retention.ms", t.retention.Age.Milliseconds()), 0)) * time.Millisecond
	stamp, _ := set("message.timestamp.type")
	t.appendTime = stamp == "LogAppendTime"
	if policy, ok := set("cleanup.policy"); ok {
		t.compact = strings.Contains(policy, "compact")
		if !strings.Contains(policy, "delete") {
			t.retention = seglog.Retention{}
		}
	}
	if t.retention.Age == 0 { // kept for ever: not bounded by bytes that nobody set either
		t.retention.Bytes = max(number("retention.bytes", 0), 0)
	}
	return t
}

// log returns the log of a partition; nil where there is no such partition.
func (s *Server) log(name string, partition int32) (*topic, *seglog.Log, error) {
	t := s.topicOf(name)
	if t == nil || partition < 0 || partition >= t.partitions {
		return nil, nil, nil
	}
	l, err := s.open(name, place{t.id, partition})
	return t, l, err
}

// changed is called after a request that may have changed topics, before its answer: what it made outlives a crash, and
// the logs of what it deleted go.
func (s *Server) changed() error {
	s.mu.Lock()
	clear(s.topics)
	var gone []place
	logs := map[place]*seglog.Log{}
	for at, l := range s.logs {
		logs[at] = l
	}
	s.mu.Unlock()
	for at := range logs {
		if s.cluster.TopicIDInfo(at.id) == nil {
			gone = append(gone, at)
		}
	}
	if err := durable.SyncDir(s.metaDir()); err != nil {
		return err
	}
	for _, at := range gone {
		s.mu.Lock()
		delete(s.logs, at)
		s.mu.Unlock()
		_ = logs[at].Close()
		found, _ := filepath.Glob(filepath.Join(s.Dir, "log", "*"+logName("", at)))
		for _, dir := range found {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// clean removes what topics need not keep.
func (s *Server) clean() {
	tick := time.NewTicker(cleanEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case now := <-tick.C:
			s.cleanNow(now)
		}
	}
}

func (s *Server) cleanNow(now time.Time) {
	s.mu.Lock()
	logs := map[place]*seglog.Log{}
	for at, l := range s.logs {
		logs[at] = l
	}
	s.mu.Unlock()
	for at, l := range logs {
		info := s.cluster.TopicIDInfo(at.id)
		if info == nil {
			continue
		}
		t := s.topicOf(info.Topic)
		if t == nil {
			continue
		}
		err := l.Retain(t.retention, now)
		if err == nil && t.compact {
			err = l.Compact(keysOf)
		}
		if err != nil {
			s.Log.Warn("cleaning the embedded log", "topic", t.name, "partition", at.partition, "err", err)
		}
	}
}

// keysOf are the keys of a batch's records; nil for a record without one.
func keysOf(batch []byte) ([][]byte, error) {
	var b kmsg.RecordBatch
	if err := b.ReadFrom(batch); err != nil {
		return nil, err
	}
	codec := kgo.CompressionCodecType(b.Attributes & 7) //nolint:gosec // 3 bits
	raw, err := kgo.DefaultDecompressor().Decompress(b.Records, codec)
	if err != nil {
		return nil, err
	}
	var keys [][]byte
	for range b.NumRecords {
		var r kmsg.Record
		if err := r.ReadFrom(raw); err != nil {
			return nil, err
		}
		keys = append(keys, r.Key)
		_, n := varint(raw)
		if n += int(r.Length); n <= 0 || n > len(raw) {
			return nil, fmt.Errorf("a record of %d bytes in %d", n, len(raw))
		}
		raw = raw[n:]
	}
	return keys, nil
}

// varint is the signed length that a record begins with, and its bytes.
func varint(b []byte) (int, int) {
	u, shift, n := uint64(0), 0, 0
	for _, c := range b {
		n++
		u |= uint64(c&0x7f) << shift
		if shift += 7; c < 0x80 {
			break
		}
	}
	return int(u>>1) ^ -int(u&1), n //nolint:gosec // a record's length
}
