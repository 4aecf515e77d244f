package kafkaio

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/internal/testsize"
	"github.com/plumbline/plumbline/pipeline"
)

// canned answers each fetch with a record set.
type canned func(topic string, offset int64) (set []byte, end int64)

type exchange struct {
	io.Reader
	io.Writer
}

func (c canned) RoundTrip(ctx context.Context, _ net.Addr, m kafka.Request) (kafka.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := m.(*rawFetch)
	f.Required(map[protocol.ApiKey]int16{protocol.Fetch: 11})
	topic := f.Topics[0].Topic
	data, end := c(topic, f.Topics[0].Partitions[0].FetchOffset)
	be := binary.BigEndian
	var b []byte
	b = be.AppendUint32(b, correlation)
	b = be.AppendUint32(b, 0) // throttled for
	b = be.AppendUint16(b, 0)
	b = be.AppendUint32(b, 0) // session
	b = be.AppendUint32(b, 1)
	b = append(be.AppendUint16(b, uint16(len(topic))), topic...)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, 0) // partition
	b = be.AppendUint16(b, 0)
	b = be.AppendUint64(b, uint64(end))
	b = be.AppendUint64(b, uint64(end))
	b = be.AppendUint64(b, 0) // where the log begins
	b = be.AppendUint32(b, 0) // aborted
	b = be.AppendUint32(b, 0) // preferred replica
	b = be.AppendUint32(b, uint32(len(data)))
	size := be.AppendUint32(nil, uint32(len(b)+len(data)))
	return f.RawExchange(exchange{io.MultiReader(bytes.NewReader(size), bytes.NewReader(b), bytes.NewReader(data)),
		io.Discard})
}

// batchOf is a batch of records with these values from an offset on.
func batchOf(t testing.TB, offset int64, codec compress.Compression, values ...[]byte) []byte {
	t.Helper()
	var rs []protocol.Record
	for i, v := range values {
		rs = append(rs, protocol.Record{Offset: int64(i), Time: time.UnixMilli(1_700_000_000_000 + offset + int64(i)),
			Key: protocol.NewBytes(fmt.Appendf(nil, "key-%d", offset+int64(i))), Value: protocol.NewBytes(v)})
	}
	set := protocol.RecordSet{Version: 2, Attributes: protocol.Attributes(codec),
		Records: protocol.NewRecordReader(rs...)}
	var b bytes.Buffer
	if _, err := set.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	out := b.Bytes()[4:]
	binary.BigEndian.PutUint64(out, uint64(offset)) // what its checksum does not cover
	return out
}

// valueAt is the value of a record: the sizes mix what is copied, moved, and has a piece of its own.
func valueAt(topic string, offset int64) []byte {
	r := rand.New(rand.NewPCG(uint64(offset), uint64(len(topic))))
	sizes := []int{0, 1, 700, 7_000, 9_000, 40_000, 300_000}
	of := make([]byte, 8)
	binary.LittleEndian.PutUint64(of, r.Uint64())
	size := sizes[r.IntN(len(sizes))]
	return bytes.Repeat(of, size/8+1)[:size]
}

// TestRecordsStayUntilTheNext reads two topics whose answers come in memory that serves again: each record is whole
// until the next is asked for, whatever is read ahead meanwhile.
func TestRecordsStayUntilTheNext(t *testing.T) {
	const each, records = 7, 350
	for _, codec := range []compress.Compression{0, compress.Gzip, compress.Snappy, compress.Lz4, compress.Zstd} {
		t.Run(codec.String(), func(t *testing.T) {
			t.Parallel()
			answers := canned(func(topic string, offset int64) (data []byte, end int64) {
				for b := range int64(3) { // batches, the first from where it begins
					from := (offset/each + b) * each
					if from >= records {
						break
					}
					var values [][]byte
					for i := range int64(each) {
						values = append(values, valueAt(topic, from+i))
					}
					data = append(data, batchOf(t, from, codec, values...)...)
				}
				return data, records
			})
			s := source(t, Spec{
				Client:   &kafka.Client{Addr: kafka.TCP("nowhere"), Transport: answers},
				Topics:   map[pipeline.Input]string{pipeline.Logits: "z", pipeline.Labels: "labels"},
				Next:     map[pipeline.Input]int64{pipeline.Logits: 0, pipeline.Labels: 0},
				Until:    map[pipeline.Input]int64{pipeline.Logits: records, pipeline.Labels: records},
				MaxBytes: 512 << 10,
			})
			next := map[pipeline.Input]int64{}
			for range 2 * records {
				r, err := s.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s.Buffered()
				runtime.Gosched()
				want := next[r.Input]
				next[r.Input]++
				if key := fmt.Sprintf("key-%d", want); r.Offset != want || string(r.Key) != key ||
					!bytes.Equal(r.Value, valueAt(r.Topic, want)) {
					t.Fatalf("%s: offset %d, key %q, value of %d bytes; want offset %d with its value", r.Topic,
						r.Offset, r.Key, len(r.Value), want)
				}
			}
			if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

// endless answers every fetch with the same batch of about 1 MB, at the offset that is asked for.
func endless(t testing.TB, codec compress.Compression, size int) (answers canned, records int64) {
	r := rand.New(rand.NewPCG(1, 2))
	var values [][]byte
	for range max(1<<20/size, 1) {
		v := make([]byte, size)
		for i := range v {
			v[i] = byte(r.Uint32() & 63)
		}
		values = append(values, v)
	}
	batch := batchOf(t, 0, codec, values...)
	return func(_ string, offset int64) ([]byte, int64) {
		binary.BigEndian.PutUint64(batch, uint64(offset))
		return batch, 1 << 40
	}, int64(len(values))
}

var streams = map[string]struct {
	codec compress.Compression
	size  int
}{
	"700 bytes": {0, 700}, "7 KB": {0, 7_000}, "100 KB": {0, 100_000}, "4 MB": {0, 4 << 20},
	"100 KB, zstd": {compress.Zstd, 100_000}, "7 KB, lz4": {compress.Lz4, 7_000},
}

func endlessSource(t testing.TB, codec compress.Compression, size int) (s *Source, batch int64) {
	answers, batch := endless(t, codec, size)
	return source(t, Spec{
		Client:   &kafka.Client{Addr: kafka.TCP("nowhere"), Transport: answers},
		Topics:   map[pipeline.Input]string{pipeline.Logits: "z"},
		Next:     map[pipeline.Input]int64{pipeline.Logits: 0},
		MaxBytes: 8 << 20,
	}), batch
}

// TestAnswersUseMemoryAgain: what is allocated for messages is a small part of their bytes.
func TestAnswersUseMemoryAgain(t *testing.T) {
	testsize.NoRace(t)
	for name, c := range streams {
		t.Run(name, func(t *testing.T) {
			s, batch := endlessSource(t, c.codec, c.size)
			take := func(batches int64) (allocated, handed uint64) {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				for range batches * batch {
					r, err := s.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					handed += uint64(len(r.Value))
				}
				runtime.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc, handed
			}
			take(50)
			most := .2
			if c.codec == compress.Lz4 {
				most = 1.2 // blocks of 4 MB are in a pool of the library, which each collection empties
			}
			if allocated, handed := take(200); float64(allocated) > most*float64(handed) {
				t.Errorf("%d bytes allocated for messages of %d, allowed are %g of them", allocated, handed, most)
			}
		})
	}
}

// TestBurstLeavesMemory: what large answers needed goes, though no answer after them is empty.
func TestBurstLeavesMemory(t *testing.T) {
	testsize.NoRace(t)
	const burst = 10
	large, small := batchOf(t, 0, 0, make([]byte, 4<<20)), batchOf(t, 0, 0, []byte("small"))
	before := testsize.HeapInUse()
	s := source(t, Spec{
		Client: &kafka.Client{Addr: kafka.TCP("nowhere"), Transport: canned(func(_ string, at int64) ([]byte, int64) {
			b := small
			if at < burst {
				b = large
			}
			binary.BigEndian.PutUint64(b, uint64(at))
			return b, 1 << 40
		})},
		Topics:   map[pipeline.Input]string{pipeline.Logits: "z"},
		Next:     map[pipeline.Input]int64{pipeline.Logits: 0},
		MaxBytes: 8 << 20,
	})
	for range burst + 4*keptFor {
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if kept := testsize.HeapInUse() - before; kept > 2<<20 {
		t.Errorf("%.0f bytes are held after messages of 4 MiB, with %d small ones behind them", kept, 4*keptFor)
	}
}

func BenchmarkSource(b *testing.B) {
	for name, c := range streams {
		b.Run(name, func(b *testing.B) {
			s, _ := endlessSource(b, c.codec, c.size)
			b.SetBytes(int64(c.size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Next(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
