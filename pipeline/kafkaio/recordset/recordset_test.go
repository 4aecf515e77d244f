package recordset_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/pipeline"
	"github.com/plumbline/plumbline/pipeline/kafkaio/recordset"
)

var limits = recordset.LimitsOf(1 << 20)

// encode is a record set as kafka-go writes it, without the size before it.
func encode(t testing.TB, version int8, attributes protocol.Attributes, rs ...protocol.Record) []byte {
	t.Helper()
	set := protocol.RecordSet{Version: version, Attributes: attributes, Records: protocol.NewRecordReader(rs...)}
	var b bytes.Buffer
	if _, err := set.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()[4:]
}

func record(key, value string, headers ...protocol.Header) protocol.Record {
	r := protocol.Record{Time: time.UnixMilli(1_700_000_000_123), Headers: headers}
	if key != "" {
		r.Key = protocol.NewBytes([]byte(key))
	}
	if value != "-" {
		r.Value = protocol.NewBytes([]byte(value))
	}
	return r
}

// show is a record in words; a refusal as its reason and offsets.
func show(r *pipeline.Record) string {
	if r.Unread != nil {
		return fmt.Sprintf("%s %d-%d", r.Unread.Reason, r.Unread.First, r.Offset)
	}
	return fmt.Sprintf("%d %d %q %v %q %v %q", r.Offset, r.Time, r.Key, r.Key == nil, r.Value, r.Value == nil,
		r.Headers)
}

func read(data []byte, from int64, l recordset.Limits) (got []string, after int64, err error) {
	set := recordset.Set{Data: bytes.Clone(data), Size: len(data)}
	after, err = set.Each(from, l, func(r *pipeline.Record, _ int) error {
		got = append(got, show(r))
		return nil
	})
	return got, after, err
}

// reference is what kafka-go reads.
func reference(data []byte) (got []string, err error) {
	sized := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	var set protocol.RecordSet
	if _, err := set.ReadFrom(bytes.NewReader(append(sized, data...))); err != nil {
		return nil, err
	}
	for set.Records != nil {
		rec, err := set.Records.ReadRecord()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return got, err
		}
		r := pipeline.Record{Offset: rec.Offset}
		if !rec.Time.IsZero() {
			r.Time = rec.Time.UnixNano()
		}
		if r.Key, err = kafka.ReadAll(rec.Key); err == nil {
			r.Value, err = kafka.ReadAll(rec.Value)
		}
		if err != nil {
			return got, err
		}
		for _, h := range rec.Headers {
			r.Headers = append(r.Headers, pipeline.Header{Key: h.Key, Value: h.Value})
		}
		got = append(got, show(&r))
	}
	return got, nil
}

func codecs() map[string]protocol.Attributes {
	return map[string]protocol.Attributes{"none": 0, "gzip": protocol.Gzip, "snappy": protocol.Snappy,
		"lz4": protocol.Lz4, "zstd": protocol.Zstd}
}

// TestAsKafkaGo: every format and codec gives the records that kafka-go gives.
func TestAsKafkaGo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	for name, attributes := range codecs() {
		for _, version := range []int8{1, 2} {
			rs := func() []protocol.Record {
				out := []protocol.Record{record("k", "v"), record("", "x"), record("key", "-"), record("e", ""),
					record("", string(noise)), record("z", strings.Repeat("abc", 50_000))}
				if version == 2 {
					out = append(out, record("h", "w", protocol.Header{Key: "a", Value: []byte("1")},
						protocol.Header{Key: "", Value: nil}))
				}
				return out
			}
			data := encode(t, version, attributes, rs()...)
			if version == 1 && attributes != 0 {
				data[7] = 5 // the broker gives the wrapper the offset of the last
			}
			want, err := reference(data)
			if err != nil {
				t.Fatal(err)
			}
			got, after, err := read(data, 0, limits)
			if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") || after != int64(len(got)) {
				t.Errorf("%s, format %d: %d records, %v, then %d; kafka-go has %d", name, version, len(got), err, after,
					len(want))
			}
			// A response may end anywhere, and begin before what was asked for.
			got, after, err = read(data[:len(data)-1], 0, limits)
			if version == 2 && (got != nil || after != -1 || err != nil) {
				t.Errorf("%s: a cut batch gives %d records, %d, %v", name, len(got), after, err)
			}
			got, _, err = read(data, 3, limits)
			if err != nil || strings.Join(got, "\n") != strings.Join(want[3:], "\n") {
				t.Errorf("%s, format %d, from 3: %d records, %v", name, version, len(got), err)
			}
		}
	}
}

// TestLargeValues: they are aligned wherever they stood, keys and headers beside them are what they were, and reading
// them takes no memory to speak of beside the response.
func TestLargeValues(t *testing.T) {
	var rs []protocol.Record
	const size, n = 64 << 10, 30
	for i := range n {
		rs = append(rs, record(strings.Repeat("k", i), strings.Repeat(string(rune('a'+i%26)), size+i),
			protocol.Header{Key: "h", Value: []byte{byte(i)}}))
	}
	data := encode(t, 2, 0, rs...)
	want, err := reference(data)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := read(data, 0, limits)
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%d records, %v; kafka-go has %d, or others", len(got), err, len(want))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	set := recordset.Set{Data: data, Size: len(data)}
	if _, err := set.Each(0, limits, func(r *pipeline.Record, _ int) error {
		if uintptr(unsafe.Pointer(&r.Value[0]))%8 != 0 {
			t.Errorf("record %d begins at %p", r.Offset, &r.Value[0])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > n*size/10 {
		t.Errorf("reading %d bytes took %d", n*size, took)
	}
}

// batchOf is one record batch whose body a codec makes of records that are given as bytes.
// TestAppendTime: records of a topic whose timestamps are those of the broker have the batch's, as Kafka's own client
// reads it; what the producer said is in the batch still, and counts for nothing.
func TestAppendTime(t *testing.T) {
	const appended = 1_800_000_000_456
	be := binary.BigEndian
	for _, version := range []int8{1, 2} {
		data := encode(t, version, protocol.Gzip, record("", "v"), record("", "w"))
		switch version {
		case 1:
			data[7] = 1
			data[17] |= 1 << 3
			be.PutUint64(data[18:], appended)
			be.PutUint32(data[12:], crc32.ChecksumIEEE(data[16:]))
		case 2:
			data[22] |= 1 << 3
			be.PutUint64(data[35:], appended)
			be.PutUint32(data[17:], crc32.Checksum(data[21:], castagnoli))
		}
		set := recordset.Set{Data: data, Size: len(data)}
		n := 0
		if _, err := set.Each(0, limits, func(r *pipeline.Record, _ int) error {
			if n++; r.Time != appended*1_000_000 {
				t.Errorf("format %d: record %d has time %d, want %d ms", version, r.Offset, r.Time, int64(appended))
			}
			return nil
		}); err != nil || n != 2 {
			t.Fatalf("format %d: %d records, error %v", version, n, err)
		}
	}
}

// TestFarTimes: a timestamp that is no moment in nanoseconds, as one in microseconds, is as far away as they tell. It
// must not come out as some other time that looks right.
func TestFarTimes(t *testing.T) {
	be := binary.BigEndian
	for ms, want := range map[int64]pipeline.Time{1_796_100_000_000_000: math.MaxInt64, math.MaxInt64: math.MaxInt64,
		9_223_372_036_855: math.MaxInt64, 9_223_372_036_854: 9_223_372_036_854_000_000, -1: -1_000_000,
		-9_223_372_036_855: 0, math.MinInt64: 0} {
		data := encode(t, 2, 0, record("", "v"))
		be.PutUint64(data[27:], uint64(ms))
		be.PutUint32(data[17:], crc32.Checksum(data[21:], castagnoli))
		set := recordset.Set{Data: data, Size: len(data)}
		if _, err := set.Each(0, limits, func(r *pipeline.Record, _ int) error {
			if r.Time != want {
				t.Errorf("%d ms: time %d, want %d", ms, r.Time, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

func batchOf(codec compress.Compression, count, last int, body []byte) []byte {
	if c := codec.Codec(); c != nil {
		var b bytes.Buffer
		w := c.NewWriter(&b)
		_, _ = w.Write(body)
		_ = w.Close()
		body = b.Bytes()
	}
	return sealed(uint16(codec), count, last, body)
}

func sealed(attributes uint16, count, last int, body []byte) []byte {
	b := make([]byte, 61, 61+len(body))
	be := binary.BigEndian
	be.PutUint32(b[8:], uint32(49+len(body)))
	b[16] = 2
	be.PutUint16(b[21:], attributes)
	be.PutUint32(b[23:], uint32(last))
	be.PutUint64(b[43:], math64(-1))
	be.PutUint32(b[57:], uint32(count))
	b = append(b, body...)
	be.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func math64(v int64) uint64 { return uint64(v) }

// raw is one record of a batch with a value of n zeros.
func raw(delta, n int) []byte {
	var b []byte
	b = append(b, 0)
	b = binary.AppendVarint(b, 0)
	b = binary.AppendVarint(b, int64(delta))
	b = binary.AppendVarint(b, -1)
	b = binary.AppendVarint(b, int64(n))
	b = append(b, make([]byte, n)...)
	b = binary.AppendVarint(b, 0)
	return append(binary.AppendVarint(nil, int64(len(b))), b...)
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBombs: a batch of some kilobytes that inflates to hundreds of megabytes is refused by its offsets, and what it
// costs is bounded; the records around what is too large are read.
func TestBombs(t *testing.T) {
	const most = 48 << 20
	huge := raw(1, 64<<20)
	many := raw(0, 10)
	for i := 1; i < 40; i++ {
		many = append(many, raw(i, 1<<20)...)
	}
	good := raw(0, 10)
	for name, codec := range map[string]compress.Compression{"gzip": compress.Gzip, "lz4": compress.Lz4,
		"zstd": compress.Zstd} {
		one := batchOf(codec, 3, 2, append(append(bytes.Clone(good), huge...), raw(2, 10)...))
		all := batchOf(codec, 40, 39, many)
		var got []string
		var err error
		if n := allocated(func() { got, _, err = read(one, 0, limits) }); n > most {
			t.Errorf("%s: one huge record: %d bytes allocated", name, n)
		}
		if err != nil || len(got) != 2 || got[1] != "inflates 1-2" {
			t.Errorf("%s: one huge record: %v, %v", name, got, err)
		}
		wide := recordset.Limits{Record: 1<<20 + 1000, Batch: 1 << 30}
		if got, _, err = read(one, 0, wide); err != nil || len(got) != 3 || got[1] != "inflates 1-1" {
			t.Errorf("%s: one record too large in a batch that is not: %.200v, %v", name, got, err)
		}
		count, last := 0, ""
		set := recordset.Set{Data: all, Size: len(all)}
		after, err := set.Each(0, limits, func(r *pipeline.Record, _ int) error {
			count++
			last = ""
			if r.Unread != nil {
				last = show(r)
			}
			return nil
		})
		if err != nil || after != 40 || count != 17 || last != "inflates 16-39" {
			t.Errorf("%s: a batch of 40 MB: %d records, the last %s, then %d, %v", name, count, last, after, err)
		}
	}
}

// TestLies: lengths and counts that are not so cost nothing, and what was read before them counts.
func TestLies(t *testing.T) {
	manyHeaders := func(n int) []byte {
		b := []byte{0, 0, 0, 1, 1}
		b = binary.AppendVarint(b, int64(n))
		b = append(b, make([]byte, 2*n)...)
		return append(binary.AppendVarint(nil, int64(len(b))), b...)
	}
	snappyLie := binary.AppendUvarint(nil, 1<<31)
	window := func(log byte) []byte { // a frame of zstd with a window descriptor and one raw block of a record
		body := raw(0, 10)
		b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3}
		n := uint32(len(body))<<3 | 1
		return append(append(b, byte(n), byte(n>>8), byte(n>>16)), body...)
	}
	single := []byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 100, 3, 0, 0} // of 100 << 24 bytes
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"more records than there are", sealed(0, 1<<30, 9, raw(0, 3)), "record;unreadable 1-9"},
		{"a negative count", sealed(0, -1, 9, raw(0, 3)), ""},
		{"fewer records", sealed(0, 1, 9, append(raw(0, 3), raw(1, 3)...)), "record"},
		{"an offset twice", sealed(0, 2, 9, append(raw(1, 3), raw(1, 3)...)), "record;unreadable 2-9"},
		{"an offset beyond the batch", sealed(0, 1, 9, raw(10, 3)), "unreadable 0-9"},
		{"a record of 2 GB", sealed(0, 1, 0, binary.AppendVarint(nil, 1<<31)), "unreadable 0-0"},
		{"an endless number", sealed(0, 1, 0, bytes.Repeat([]byte{0xff}, 20)), "unreadable 0-0"},
		{"half a million headers", sealed(0, 1, 0, manyHeaders(500_000)), "too_large 0-0"},
		{"a hundred headers", sealed(0, 1, 0, manyHeaders(100)), "record"},
		{"no gzip", sealed(1, 1, 0, []byte("hello")), "unreadable 0-0"},
		{"no snappy", sealed(2, 1, 0, []byte("hello")), "unreadable 0-0"},
		{"snappy of 2 GB", sealed(2, 1, 0, snappyLie), "inflates 0-0"},
		{"snappy that lies a little", sealed(2, 1, 0, binary.AppendUvarint(nil, 1<<20)), "unreadable 0-0"},
		{"no lz4", sealed(3, 1, 0, []byte("hello")), "unreadable 0-0"},
		{"no zstd", sealed(4, 1, 0, []byte("hello")), "unreadable 0-0"},
		{"a codec that is not known", sealed(5, 1, 0, []byte("hello")), "unreadable 0-0"},
		{"zstd of level 22", sealed(4, 1, 0, window(27)), "record"},
		{"zstd with a window of 2 TB", sealed(4, 1, 0, window(41)), "record"},
		{"one segment of zstd", sealed(4, 1, 0, single), "inflates 0-0"},
	} {
		var got []string
		var after int64
		var err error
		n := allocated(func() { got, after, err = read(c.data, 0, limits) })
		for i := range got {
			if !strings.Contains(got[i], "-") || strings.Contains(got[i], "\"") {
				got[i] = "record"
			}
		}
		if strings.Join(got, ";") != c.want || err != nil || after < 1 || n > 48<<20 {
			t.Errorf("%s: %v, then %d, %v, %d bytes allocated; want %s", c.name, got, after, err, n, c.want)
		}
	}
}

// TestChecksum: a batch that was damaged on the way is no refusal: it is read again.
func TestChecksum(t *testing.T) {
	for _, version := range []int8{1, 2} {
		first := encode(t, version, 0, record("", "first"))
		second := encode(t, version, 0, record("", "second"))
		binary.BigEndian.PutUint64(second, 1)
		second[len(second)-1] ^= 1
		got, after, err := read(append(first, second...), 0, limits)
		if len(got) != 1 || after != 1 || err == nil || !strings.Contains(err.Error(), "CRC32") {
			t.Errorf("format %d: %v, then %d, %v", version, got, after, err)
		}
	}
}

// TestBatchLargerThanTheAnswer: of a batch that is larger than what is read, the offsets are known.
func TestBatchLargerThanTheAnswer(t *testing.T) {
	data := sealed(0, 10, 9, make([]byte, 1000))
	set := recordset.Set{Data: data[:61], Size: len(data)}
	var got []string
	after, err := set.Each(4, limits, func(r *pipeline.Record, _ int) error {
		got = append(got, show(r))
		return nil
	})
	if after != 10 || err != nil || len(got) != 1 || got[0] != "too_large 4-9" {
		t.Errorf("%v, then %d, %v", got, after, err)
	}
}

// TestLargeRecord: a record that is too large as it is in the log is not said to inflate; the detail has its size, the
// limit, and the keys that raise it. The records beside it are read.
func TestLargeRecord(t *testing.T) {
	const size = 3 << 20
	for _, version := range []int8{0, 1, 2} {
		for want, a := range map[string]protocol.Attributes{"too_large": 0, "inflates": protocol.Gzip} {
			if version < 2 && a != 0 {
				continue // kafka-go writes other offsets than brokers
			}
			data := encode(t, version, a, record("", "a"), record("", strings.Repeat("x", size)), record("", "b"))
			set := recordset.Set{Data: data, Size: len(data)}
			var got []*pipeline.Unread
			n := 0
			_, err := set.Each(0, limits, func(r *pipeline.Record, _ int) error {
				if n++; r.Unread != nil {
					got = append(got, r.Unread)
				}
				return nil
			})
			if err != nil || n != 3 || len(got) != 1 || got[0].Reason != want {
				t.Errorf("format %d, %s: %d records, %v, %v", version, want, n, got, err)
				continue
			}
			for _, has := range []string{"the record takes 3145", fmt.Sprint(limits.Record), "kafka.fetch_max_bytes",
				"kafka.message_max_bytes"} {
				if !strings.Contains(got[0].Detail, has) {
					t.Errorf("format %d, %s: %q says nothing of %q", version, want, got[0].Detail, has)
				}
			}
		}
	}
}

// TestTakeFails: the error of who takes a record ends the walk, and is no fault of the batch.
func TestTakeFails(t *testing.T) {
	stop := errors.New("stop")
	for _, version := range []int8{1, 2} {
		for _, a := range codecs() {
			data := encode(t, version, a, record("", "a"), record("", "b"))
			set := recordset.Set{Data: data, Size: len(data)}
			n := 0
			_, err := set.Each(0, limits, func(*pipeline.Record, int) error {
				n++
				return stop
			})
			if !errors.Is(err, stop) || n != 1 {
				t.Errorf("format %d, attributes %v: %v after %d records", version, a, err, n)
			}
		}
	}
}

// FuzzSet: no bytes make it panic, give an offset twice or take more than a multiple of them and the limits; what
// kafka-go reads of a set that is whole, it reads too.
func FuzzSet(f *testing.F) {
	for _, a := range codecs() {
		for _, version := range []int8{1, 2} {
			data := encode(f, version, a, record("k", "v"), record("", "-"), record("x", strings.Repeat("y", 300)))
			f.Add(data)
			f.Add(append(bytes.Clone(data), data...))
		}
	}
	small := recordset.Limits{Record: 1 << 16, Batch: 1 << 18}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		data = bytes.Clone(data)
		if version(data) == 2 && len(data) >= 61 { // else nearly all would be refused for their checksum
			size := min(12+int64(binary.BigEndian.Uint32(data[8:])), int64(len(data)))
			if size > 61 {
				binary.BigEndian.PutUint32(data[8:], uint32(size-12))
				binary.BigEndian.PutUint32(data[17:], crc32.Checksum(data[21:size], castagnoli))
			}
		}
		set := recordset.Set{Data: data, Size: len(data)}
		var got []string
		refused := false
		_, err := set.Each(0, small, func(r *pipeline.Record, cost int) error {
			if cost > 2*small.Record {
				t.Errorf("a record that costs %d", cost)
			}
			refused = refused || r.Unread != nil
			got = append(got, show(r))
			return nil
		})
		if err != nil || refused {
			return
		}
		// kafka-go reads more than a message's size says, and makes room for as many records as a head says.
		const most = 1 << 12
		if version(data) != 2 || len(data) < 61 || binary.BigEndian.Uint32(data[57:]) > most {
			return
		}
		want, err := reference(data)
		if err == nil && len(want) == len(got) && strings.Join(want, "\n") != strings.Join(got, "\n") {
			t.Errorf("got %q, kafka-go has %q", got, want)
		}
	})
}

func version(data []byte) int {
	if len(data) < 17 {
		return -1
	}
	return int(data[16])
}
