package registry

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"go.etcd.io/bbolt"

	"github.com/plumbline/plumbline/internal/binenc"
	"github.com/plumbline/plumbline/pipeline/record"
)

// fileTx is a transaction on a file.
type fileTx struct{ tx *bbolt.Tx }

func placeKey(p Place) []byte {
	k := binenc.AppendString(nil, p.Cluster)
	k = binenc.AppendString(k, p.Topic)
	return binenc.AppendUvarint(k, uint64(p.Partition))
}

func (t *fileTx) positionOf(p Place) (int64, error) {
	v := t.tx.Bucket(bucketPositions).Get(placeKey(p))
	if v == nil {
		return 0, nil
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("%w: a position of %d bytes", errEntry, len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func (t *fileTx) move(p Place, next int64) error {
	return t.tx.Bucket(bucketPositions).Put(placeKey(p), binary.BigEndian.AppendUint64(nil, uint64(next)))
}

func (t *fileTx) models() (out []string, err error) {
	err = t.tx.Bucket(bucketModels).ForEachBucket(func(k []byte) error {
		out = append(out, string(k))
		return nil
	})
	return out, err
}

// model returns the buckets of a model; nil where it has none.
func (t *fileTx) model(name string) (entries, decisive *bbolt.Bucket) {
	m := t.tx.Bucket(bucketModels).Bucket([]byte(name))
	if m == nil {
		return nil, nil
	}
	return m.Bucket(bucketEntries), m.Bucket(bucketDecisive)
}

func (t *fileTx) entries(f *filter, yield func(*Entry) bool) error {
	all, decisive := t.model(f.Model)
	if all == nil {
		return nil
	}
	walked := all
	if f.decisive {
		walked = decisive
	}
	skip, left := f.skip, f.limit
	c := walked.Cursor()
	for k, v := last(c, f); k != nil && (f.Since == nil || timeOf(k) >= *f.Since); k, v = c.Prev() {
		if f.decisive {
			v = all.Get(k)
		}
		e, err := decodeEntry(f.Model, k, v, f.Records)
		if err != nil {
			return err
		}
		if !f.matches(e) {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if !yield(e) {
			return nil
		}
		if left--; left == 0 {
			return nil
		}
	}
	return nil
}

// last moves to the newest entry that is before the filter's bounds.
func last(c *bbolt.Cursor, f *filter) (k, v []byte) {
	var before []byte
	if f.Until != nil {
		before = timeKey(*f.Until)
	}
	if f.before != nil {
		if key := keyOf(*f.before); before == nil || bytes.Compare(key, before) < 0 {
			before = key
		}
	}
	if before == nil {
		return c.Last()
	}
	if k, _ := c.Seek(before); k == nil {
		return c.Last()
	}
	return c.Prev()
}

func (t *fileTx) add(es []Entry) (added int, err error) {
	places := t.tx.Bucket(bucketPlaces)
	for i := range es {
		e := es[i]
		id, err := hex.DecodeString(e.ID)
		if err != nil {
			return 0, err
		}
		if old := places.Get(id); old != nil {
			if len(old) < 16 {
				return 0, fmt.Errorf("%w: the place of %s has %d bytes", errEntry, e.ID, len(old))
			}
			was := position{at: timeOf(old), seq: int64(binary.BigEndian.Uint64(old[8:])), id: e.ID}
			if e.seq == 0 || was.seq > 0 && was.seq <= e.seq {
				continue
			}
			if err := t.drop(string(old[16:]), keyOf(was)); err != nil {
				return 0, err
			}
		} else {
			added++
		}
		if err := t.put(id, &e); err != nil {
			return 0, err
		}
	}
	return added, nil
}

func (t *fileTx) put(id []byte, e *Entry) error {
	m, err := t.tx.Bucket(bucketModels).CreateBucketIfNotExists([]byte(e.Model))
	if err != nil {
		return err
	}
	all, err := m.CreateBucketIfNotExists(bucketEntries)
	if err != nil {
		return err
	}
	decisive, err := m.CreateBucketIfNotExists(bucketDecisive)
	if err != nil {
		return err
	}
	key := keyOf(e.rank())
	if err := all.Put(key, appendEntry(nil, e)); err != nil {
		return err
	}
	if e.decisive() {
		if err := decisive.Put(key, nil); err != nil {
			return err
		}
	}
	return t.tx.Bucket(bucketPlaces).Put(id, append(key[:16:16], e.Model...))
}

func (t *fileTx) drop(model string, key []byte) error {
	all, decisive := t.model(model)
	if all == nil {
		return fmt.Errorf("%w: no entries of a model that has places", errEntry)
	}
	return errors.Join(all.Delete(key), decisive.Delete(key))
}

func (t *fileTx) remove(model string, before position, keep map[string]bool) (removed int64, err error) {
	all, _ := t.model(model)
	if all == nil {
		return 0, nil
	}
	bound := keyOf(before)
	var keys [][]byte // a cursor is lost by a deletion
	c := all.Cursor()
	for k, _ := c.First(); k != nil && bytes.Compare(k, bound) < 0; k, _ = c.Next() {
		if !keep[hex.EncodeToString(k[16:])] {
			keys = append(keys, bytes.Clone(k))
		}
	}
	for _, k := range keys {
		if err := errors.Join(t.drop(model, k), t.tx.Bucket(bucketPlaces).Delete(k[16:])); err != nil {
			return 0, err
		}
	}
	return int64(len(keys)), nil
}

// keyOf sorts as positions do: time, place on the decisions topic, id.
func keyOf(p position) []byte {
	id, _ := hex.DecodeString(p.id)
	return append(binary.BigEndian.AppendUint64(timeKey(p.at), uint64(max(p.seq, 0))), id...)
}

func timeKey(at int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(at)^1<<63) }

func timeOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }

// errEntry says that an entry's bytes are none that appendEntry wrote.
var errEntry = errors.New("an entry cannot be read")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendEntry encodes what a key does not say. The record is last, and has a checksum of its own, so that what is
// before it is read without it.
func appendEntry(b []byte, e *Entry) []byte {
	for _, s := range []string{e.Kind, e.Version, e.Slice, e.State, e.Summary, e.By, e.Why, e.head} {
		b = binenc.AppendString(b, s)
	}
	b = binenc.AppendVarint(b, e.revision)
	b = binenc.AppendFixed32(b, crc32.Checksum(b, castagnoli))
	b = binenc.AppendFixed32(b, crc32.Checksum(e.Record, castagnoli))
	return append(b, e.Record...)
}

func decodeEntry(model string, key, value []byte, withRecord bool) (*Entry, error) {
	if len(key) < 16 {
		return nil, fmt.Errorf("%w: a key of %d bytes", errEntry, len(key))
	}
	e := &Entry{Model: model, ID: hex.EncodeToString(key[16:]), At: record.At(timeOf(key)),
		seq: int64(binary.BigEndian.Uint64(key[8:]))}
	r := binenc.NewReader(value)
	for _, s := range []*string{&e.Kind, &e.Version, &e.Slice, &e.State, &e.Summary, &e.By, &e.Why, &e.head} {
		*s = r.String(math.MaxInt32)
	}
	e.revision = r.Varint()
	sum := crc32.Checksum(value[:min(r.Offset(), len(value))], castagnoli)
	if got := r.Fixed32(); r.Err() == nil && got != sum {
		r.Failf("checksum")
	}
	want := r.Fixed32()
	if err := r.Err(); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errEntry, e.ID, err)
	}
	if !withRecord {
		return e, nil
	}
	e.Record = bytes.Clone(value[r.Offset():])
	if crc32.Checksum(e.Record, castagnoli) != want {
		return nil, fmt.Errorf("%w: %s: the record's checksum", errEntry, e.ID)
	}
	return e, nil
}
