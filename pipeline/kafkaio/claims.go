package kafkaio

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plumbline/plumbline/pipeline"
)

// claim is a record that says that a writer has written a checkpoint, and at which offsets.
type claim struct {
	Key       string  `json:"key"`
	Number    uint64  `json:"number"`
	Writer    string  `json:"writer"`
	Partition int     `json:"partition"`
	Chunks    []int64 `json:"chunks"` // offsets
	Bytes     int     `json:"bytes"`
	Table     int     `json:"table,omitempty"` // bytes after those: where the checkpoint's files are, as JSON
	CRC       uint32  `json:"crc32c"`          // of both
	// Journal has the offsets of the chunks of the checkpoint's journal, which has a CRC of its own. Their numbers go
	// on from those of Chunks.
	Journal []int64 `json:"journal,omitempty"`
}

const claimPrefix = "claim/"

func (c claim) recordKey() string {
	return fmt.Sprintf("%s%s/%020d/%s", claimPrefix, c.Key, c.Number, c.Writer)
}

func (c claim) chunkKey(i int) string {
	return fmt.Sprintf("chunk/%s/%020d/%s/%d", c.Key, c.Number, c.Writer, i)
}

func (c claim) encode() []byte {
	b, err := json.Marshal(c)
	if err != nil {
		panic("kafkaio: " + err.Error()) // plain fields always marshal
	}
	return b
}

// claims has the claims of one key, in the order of the log, and writes further ones. Who reads them anew is another
// writer: a claim that this process has sent before, and gave up to wait for, may still come, of another state.
type claims struct {
	key    string
	writer string
	next   int64 // offset to read on from
	list   []claim

	files  map[string]storedFile   // by name: those that this process has written or read, of its last checkpoint
	tables map[string][]storedFile // by claim, as far as they are known
	fresh  map[string][]storedFile // by claim of this process: files written for it

	unusable []uint64 // numbers that could not be used, as the latest Save said
}

func newClaims(key string, next int64) *claims {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails
	return &claims{key: key, writer: hex.EncodeToString(id[:]), next: next, files: map[string]storedFile{},
		tables: map[string][]storedFile{}, fresh: map[string][]storedFile{}}
}

// take reads one record of the log; those of other keys are skipped.
func (k *claims) take(key, value []byte) error {
	rest, ok := strings.CutPrefix(string(key), claimPrefix+k.key+"/")
	if !ok || strings.Count(rest, "/") != 1 {
		return nil
	}
	i := slices.IndexFunc(k.list, func(c claim) bool { return c.recordKey() == string(key) })
	if value == nil {
		if i >= 0 {
			k.list = slices.Delete(k.list, i, i+1)
		}
		return nil
	}
	var c claim
	if err := json.Unmarshal(value, &c); err != nil {
		return fmt.Errorf("checkpoint claim %s: %w", key, err)
	}
	if c.recordKey() != string(key) || c.Bytes < 0 || c.Table < 0 || len(c.Chunks) == 0 {
		return fmt.Errorf("checkpoint claim %s: the value is another's: %s", key, value)
	}
	if i < 0 { // a repeat, where an acknowledgement was lost, changes nothing: the first one counts
		k.list = append(k.list, c)
	}
	return nil
}

// winners returns the claims that count, in ascending order of their numbers.
func (k *claims) winners() []claim {
	var out []claim
	for _, c := range k.list {
		if !slices.ContainsFunc(out, func(o claim) bool { return o.Number == c.Number }) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b claim) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// fenced returns ErrFenced unless the writer may write number, or has done so.
func (k *claims) fenced(number uint64) error {
	for _, c := range k.winners() {
		if c.Number > number || c.Number == number && c.Writer != k.writer {
			return fmt.Errorf("%w: it wrote checkpoint %d", pipeline.ErrFenced, c.Number)
		}
	}
	return nil
}

// obsolete returns the claims that are older than the keep newest, and those of the writer that came after another
// writer's claim of the same number.
func (k *claims) obsolete(keep int) []claim {
	stays := k.stay(keep)
	var out []claim
	for _, c := range k.list {
		old := len(stays) > 0 && c.Number < stays[0].Number
		if old || !k.wins(c) && c.Writer == k.writer {
			out = append(out, c)
		}
	}
	return out
}

// stay returns the newest winners, so many that keep usable ones are among them.
func (k *claims) stay(keep int) []claim {
	winners := k.winners()
	numbers := make([]uint64, len(winners))
	for i, c := range winners {
		numbers[len(winners)-1-i] = c.Number
	}
	c := pipeline.Checkpoint{Unusable: k.unusable}
	return winners[len(winners)-c.Kept(numbers, keep):]
}

// wins reports whether a claim is the first of its number.
func (k *claims) wins(c claim) bool {
	first := slices.IndexFunc(k.list, func(o claim) bool { return o.Number == c.Number })
	return first >= 0 && k.list[first].Writer == c.Writer
}

func (k *claims) drop(c claim) {
	delete(k.tables, c.recordKey())
	delete(k.fresh, c.recordKey())
	k.list = slices.DeleteFunc(k.list, func(o claim) bool { return o.Number == c.Number && o.Writer == c.Writer })
}
