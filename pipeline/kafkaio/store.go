package kafkaio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/faultlog"
	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// Store keeps checkpoints in a compacted topic, for processes that share no directory. A checkpoint is a run of
// chunks, and then one claim that says where they are; files that it refers to are chunks too, written before:
//
//	partition 0             claim/KEY/NUMBER/WRITER        JSON: offsets of the chunks, bytes, CRC32C
//	partition 1…, by key    chunk/KEY/NUMBER/WRITER/INDEX  bytes of the checkpoint, then of its table of files: a JSON
//	                                                       array of name, bytes, writer, partition, chunks by offset
//	                        file/KEY/NAME/WRITER/INDEX     bytes; NAME is their hash
//
// NUMBER has 20 digits, WRITER is 16 random digits of who has read the claims and goes on from them. Where there is one
// partition, all is in it. Of the claims of one number the first in the log counts: the log's order is the fence that a
// file system's exclusive link is for dirstore.Store. A writer reads the claims back up to its own before it believes
// that it holds the number. What is no longer needed gets tombstones.
type Store struct {
	ctx    context.Context
	client *kafka.Client
	topic  string
	keep   int
	chunk  int
	every  time.Duration // between questions whether the topic was made again
	log    *slog.Logger

	mu         sync.Mutex
	partitions int
	known      map[string]*claims // by key
	id         TopicID
	asked      time.Time // for id
}

// chunkFetch is the target, in bytes, when small chunks are fetched together.
const chunkFetch = 4 << 20

// StoreSpec says where a store keeps checkpoints, and within which bounds.
type StoreSpec struct {
	Client   *kafka.Client
	Topic    string // exists
	Keep     int    // the newest checkpoints of a key that stay, at least 2
	MaxBytes int    // of a message
	Log      *slog.Logger
}

// NewStore opens a store.
func NewStore(ctx context.Context, spec StoreSpec) (*Store, error) {
	n, err := Partitions(ctx, spec.Client, spec.Topic)
	if err != nil {
		return nil, err
	}
	const overhead = 4096 // of a message: key, headers, the batch around it
	if spec.MaxBytes < 2*overhead {
		return nil, fmt.Errorf("checkpoints in topic %s: messages of %d bytes, allowed are %d and more",
			spec.Topic, spec.MaxBytes, 2*overhead)
	}
	return &Store{
		ctx:        ctx,
		client:     spec.Client,
		topic:      spec.Topic,
		partitions: n,
		keep:       max(spec.Keep, 2),
		chunk:      spec.MaxBytes - overhead,
		every:      watchInterval,
		log:        spec.Log,
		known:      map[string]*claims{},
	}, nil
}

// Holds implements pipeline.CheckpointStore.
func (s *Store) Holds(ctx context.Context, key string, number uint64) error {
	known, err := s.claimsOf(ctx, key)
	if err != nil {
		return err
	}
	_, end, err := Bounds(ctx, s.client, s.topic, 0)
	if err != nil {
		return err
	}
	if err := s.follow(ctx, known, end); err != nil {
		return err
	}
	return known.fenced(number + 1)
}

// claimsOf returns the claims of a key that have been read so far. The first call for a key reads them.
func (s *Store) claimsOf(ctx context.Context, key string) (*claims, error) {
	s.followTopic(ctx)
	s.mu.Lock()
	known := s.known[key]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if _, err := s.Load(ctx, key); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[key], nil
}

// followTopic forgets what was read and written where the topic was deleted and made again: the next checkpoints bring
// all files anew, and other processes can go on from them.
func (s *Store) followTopic(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.asked) < s.every {
		return
	}
	s.asked = time.Now()
	ids, err := KnownTopicIDs(ctx, s.client, s.topic)
	if err != nil || ids[0] == (TopicID{}) || ids[0] == s.id { // where it is away, writes say so
		return
	}
	if s.id != (TopicID{}) {
		n, err := Partitions(ctx, s.client, s.topic)
		if err != nil {
			return
		}
		s.log.Warn("the checkpoints topic was made again: all of the state is written anew", "topic", s.topic)
		s.partitions, s.known = n, map[string]*claims{}
	}
	s.id = ids[0]
}

// Lost implements pipeline.CheckpointStore. Whether the topic is still the same is asked beside the task.
func (s *Store) Lost(key string) bool {
	if !s.mu.TryLock() {
		return false // it is being asked
	}
	defer s.mu.Unlock()
	if time.Since(s.asked) >= s.every {
		go s.followTopic(s.ctx)
	}
	return s.id != (TopicID{}) && s.known[key] == nil
}

// Save implements pipeline.CheckpointStore.
func (s *Store) Save(ctx context.Context, key string, number uint64, cp pipeline.Checkpoint) error {
	known, err := s.claimsOf(ctx, key)
	if err != nil {
		return err
	}
	if err := known.fenced(number); err != nil {
		return err
	}
	table, fresh, err := s.putFiles(ctx, known, cp.Files)
	if err != nil {
		s.withdraw(ctx, known, fresh, nil)
		return err
	}
	tail := encodeTable(table)
	c := claim{Key: key, Number: number, Writer: known.writer, Partition: s.place(key), Bytes: len(cp.Data),
		Table: len(tail)}
	data := append(append([]byte{}, cp.Data...), tail...) // not nil: that would be a tombstone
	c.CRC = crc(data)
	if c.Chunks, err = s.writeChunks(ctx, c, 0, data); err != nil {
		return err
	}
	if cp.Journal != nil {
		if c.Journal, err = s.writeChunks(ctx, c, len(c.Chunks), cp.Journal); err != nil {
			return err
		}
	}
	if err := cp.Prepared(); err != nil {
		s.withdraw(ctx, known, fresh, &c)
		return err
	}
	known.unusable = cp.Unusable
	known.tables[c.recordKey()], known.fresh[c.recordKey()] = table, fresh
	end, err := s.write(ctx, 0, c.recordKey(), c.encode())
	if err != nil {
		return err
	}
	if err := s.follow(ctx, known, end+1); err != nil {
		return err
	}
	if err = known.fenced(number); err == nil {
		known.files = map[string]storedFile{}
		for _, f := range table {
			known.files[f.Name] = f
		}
	}
	s.prune(ctx, known) // of a claim that lost, too
	return err
}

// writeChunks writes data as chunks of a claim, at least one, numbered from first on, and returns their offsets.
func (s *Store) writeChunks(ctx context.Context, c claim, first int, data []byte) (offsets []int64, err error) {
	for i := first; i == first || len(data) > 0; i++ {
		n := min(len(data), s.chunk)
		offset, err := s.write(ctx, c.Partition, c.chunkKey(i), data[:n])
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, offset)
		data = data[n:]
	}
	return offsets, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// place returns the partition of a key's chunks.
func (s *Store) place(key string) int {
	s.mu.Lock()
	n := s.partitions
	s.mu.Unlock()
	if n == 1 {
		return 0
	}
	return 1 + murmur.PartitionOf([]byte(key), n-1)
}

// Load implements pipeline.CheckpointStore.
func (s *Store) Load(ctx context.Context, key string) ([]pipeline.Stored, error) {
	first, end, err := Bounds(ctx, s.client, s.topic, 0)
	if err != nil {
		return nil, err
	}
	known := newClaims(key, first)
	if err := s.follow(ctx, known, end); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.known[key] = known
	s.mu.Unlock()
	var out []pipeline.Stored
	for _, c := range slices.Backward(known.winners()) { // more than are kept, where some could not be used
		out = append(out, s.stored(ctx, known, c))
	}
	return out, nil
}

// stored returns the checkpoint of a claim, which is read when it is used.
func (s *Store) stored(ctx context.Context, known *claims, c claim) pipeline.Stored {
	st := pipeline.Stored{
		Name:   fmt.Sprintf("%s checkpoint %d", c.Key, c.Number),
		Number: c.Number,
		Read: func() ([]byte, error) {
			data, table, err := s.read(ctx, c)
			known.tables[c.recordKey()] = table
			return data, err
		},
		Fetch: func(name, path string) error {
			table, err := s.tableOf(ctx, known, c)
			if err != nil {
				return err
			}
			i := slices.IndexFunc(table, func(f storedFile) bool { return f.Name == name })
			if i < 0 {
				return fmt.Errorf("%s checkpoint %d has no file %s", c.Key, c.Number, name)
			}
			return s.fetchFile(ctx, known, table[i], path)
		},
	}
	if len(c.Journal) > 0 {
		st.Journal = func() ([]byte, error) { return s.readChunks(ctx, c, len(c.Chunks), c.Journal, 0) }
	}
	return st
}

// follow reads the claims of known's key, at least up to the offset end.
func (s *Store) follow(ctx context.Context, known *claims, end int64) error {
	for known.next < end {
		before := known.next
		// Claims beyond end are taken too: next moves past them.
		after, err := s.fetch(ctx, span{s.topic, 0, before, 2 * s.chunk, 2 * s.chunk}, func(r *pipeline.Record) error {
			return known.take(r.Key, r.Value)
		})
		known.next = max(before, after)
		if err != nil {
			return err
		}
		if known.next == before {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// read fetches a checkpoint and its table of files.
func (s *Store) read(ctx context.Context, c claim) ([]byte, []storedFile, error) {
	data, err := s.readChunks(ctx, c, 0, c.Chunks, c.Bytes+c.Table)
	if err != nil {
		return nil, nil, err
	}
	if len(data) != c.Bytes+c.Table || crc(data) != c.CRC {
		return nil, nil, fmt.Errorf("%d bytes with CRC32C %08x, written were %d with %08x", len(data), crc(data),
			c.Bytes+c.Table, c.CRC)
	}
	if c.Table == 0 {
		return data, nil, nil
	}
	var table []storedFile
	if err := json.Unmarshal(data[c.Bytes:], &table); err != nil {
		return nil, nil, fmt.Errorf("files of %s: %w", c.recordKey(), err)
	}
	for i := range table {
		if table[i].Partition == nil { // written by a build from before: with the claim's chunks
			table[i].Partition = &c.Partition
		}
	}
	return data[:c.Bytes:c.Bytes], table, nil
}

// readChunks reads the chunks of a claim from number first on; size is their expected total.
func (s *Store) readChunks(ctx context.Context, c claim, first int, offsets []int64, size int) ([]byte, error) {
	data := make([]byte, 0, min(max(size, 0), len(offsets)*s.chunk))
	err := s.eachChunk(ctx, c.Partition, offsets, func(i int) string { return c.chunkKey(first + i) },
		func(value []byte) error {
			data = append(data, value...)
			return nil
		})
	return data, err
}

// eachChunk reads the records at offsets, in order, and checks their keys. Chunks side by side are fetched together;
// chunks of other tasks behind them are not.
func (s *Store) eachChunk(ctx context.Context, partition int, offsets []int64, key func(i int) string,
	take func(value []byte) error) error {
	for i := 0; i < len(offsets); {
		before, most := i, s.chunk
		for j := i + 1; j < len(offsets) && offsets[j] == offsets[j-1]+1 && most < chunkFetch; j++ {
			most += s.chunk
		}
		_, err := s.fetch(ctx, span{s.topic, partition, offsets[i], most, most}, func(r *pipeline.Record) error {
			if i == len(offsets) || r.Offset != offsets[i] || r.Value == nil || string(r.Key) != key(i) {
				return nil
			}
			i++
			return take(r.Value)
		})
		if err == nil && i == before {
			err = fmt.Errorf("it is not at offset %d of %s partition %d", offsets[i], s.topic, partition)
		}
		if err != nil {
			return fmt.Errorf("chunk %d of %d: %w", i, len(offsets), err)
		}
	}
	return nil
}

// prune writes tombstones for obsolete records. Records that it fails to remove are harmless, and the next prune tries
// again.
func (s *Store) prune(ctx context.Context, known *claims) {
	obsolete := known.obsolete(s.keep)
	if len(obsolete) == 0 {
		return
	}
	warn := func(err error) { s.log.Warn("remove an old checkpoint", "key", known.key, "err", err) }
	files, err := s.loose(ctx, known, obsolete)
	if err != nil { // one that cannot be read: what it needs is not known
		warn(err)
		files = nil
	}
	if err := s.buryFiles(ctx, known.key, files); err != nil {
		warn(err)
		return
	}
	for _, c := range obsolete {
		err := s.buryChunks(ctx, &c)
		if err == nil { // the claim last: until then the chunks can be found
			_, err = s.write(ctx, 0, c.recordKey(), nil)
		}
		if err != nil {
			warn(err)
			return
		}
		known.drop(c)
	}
}

// withdraw removes what a checkpoint has written that gets no claim: nobody else could find it, and a task that fails
// there again and again would fill the topic. c is nil before its first chunk.
func (s *Store) withdraw(ctx context.Context, known *claims, files []storedFile, c *claim) {
	err := s.buryFiles(ctx, known.key, files)
	if err == nil && c != nil {
		err = s.buryChunks(ctx, c)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("remove a checkpoint that failed", "key", known.key, "err", err)
	}
}

// buryFiles writes tombstones of the chunks of files.
func (s *Store) buryFiles(ctx context.Context, key string, files []storedFile) error {
	for _, f := range files {
		for i := range f.Chunks {
			if _, err := s.write(ctx, *f.Partition, f.chunkKey(key, i), nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// buryChunks writes tombstones of the chunks of a claim.
func (s *Store) buryChunks(ctx context.Context, c *claim) error {
	for i := range len(c.Chunks) + len(c.Journal) {
		if _, err := s.write(ctx, c.Partition, c.chunkKey(i), nil); err != nil {
			return err
		}
	}
	return nil
}

// write produces one record, retrying until ctx is done, and returns its offset; a nil value is a tombstone.
func (s *Store) write(ctx context.Context, partition int, key string, value []byte) (int64, error) {
	for pause := retries(); ; pause.Wait(ctx) {
		r := kafka.Record{Key: kafka.NewBytes([]byte(key))}
		if value != nil {
			r.Value = kafka.NewBytes(value)
		}
		res, err := s.client.Produce(ctx, &kafka.ProduceRequest{
			Topic:        s.topic,
			Partition:    partition,
			RequiredAcks: kafka.RequireAll,
			Records:      kafka.NewRecordReader(r),
		})
		if err == nil {
			err = res.Error
		}
		if err == nil {
			return res.BaseOffset, nil
		}
		if ctx.Err() != nil || permanent(err) {
			return 0, fmt.Errorf("write to %s partition %d: %w", s.topic, partition, err)
		}
		s.log.Warn("produce, trying again", "topic", s.topic, "partition", partition, faultlog.Err(err))
	}
}

// fetch reads one response, retrying until ctx is done, and returns the offset after it; -1 if nothing was read.
func (s *Store) fetch(ctx context.Context, at span, yield func(*pipeline.Record) error) (after int64, err error) {
	for pause := retries(); ; pause.Wait(ctx) {
		res, err := fetchCommitted(ctx, s.client, at, nil)
		if err == nil {
			return res.Each(at.offset, at.limits(), func(r *pipeline.Record, _ int) error {
				if r.Unread != nil {
					s.log.Error("checkpoints topic: not read", "partition", at.partition, "reason", r.Unread.Reason,
						"detail", r.Unread.Detail)
					return nil
				}
				return yield(r)
			})
		}
		if errors.Is(err, kafka.OffsetOutOfRange) { // what is not in the log does not come by waiting
			return -1, fmt.Errorf("offset %d of %s partition %d is not in the log", at.offset, at.topic, at.partition)
		}
		if ctx.Err() != nil || permanent(err) {
			return -1, err
		}
		s.log.Warn("fetch, trying again",
			"topic", at.topic, "partition", at.partition, "offset", at.offset, faultlog.Err(err))
	}
}
