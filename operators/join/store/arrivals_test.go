package store

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestAddNew: many rows at once leave the same state and files as one after the other, each looked for first.
func TestAddNew(t *testing.T) {
	const most, blockRows = 500, 64
	random := rand.New(rand.NewPCG(1, 2))
	added := 0
	one, many := joinedOf(t, blockRows), joinedOf(t, blockRows)
	for range 300 {
		rows := Arrivals[ID]{Key: Key{Model: "m", Version: string(rune('a' + random.IntN(3)))}}
		for range 1 + random.IntN(200) {
			id := ID{byte(random.IntN(4)), byte(random.IntN(256))} // some come again
			rows.IDs, rows.TS = append(rows.IDs, id), append(rows.TS, random.Int64N(1000))
			rows.Hashes = append(rows.Hashes, many.index.Hash(&id))
		}
		for i := range rows.IDs {
			if len(one.Find(&rows.IDs[i])) > 0 {
				continue
			}
			if err := one.Add(&rows.IDs[i], rows.TS[i], rows.Key); err != nil {
				t.Fatal(err)
			}
			for one.Len() > most {
				one.Forget(1)
			}
		}
		for len(rows.IDs) > 0 {
			n, err := AddNew(many, &rows, most)
			if err != nil {
				t.Fatal(err)
			}
			added += n
			n = min(n+1, len(rows.IDs)) // the next is of an id that is known
			rows.IDs, rows.TS, rows.Hashes = rows.IDs[n:], rows.TS[n:], rows.Hashes[n:]
		}
		if !bytes.Equal(one.AppendState(nil), many.AppendState(nil)) {
			t.Fatal("other states: or two of the ids have one hash, once in eight thousand runs")
		}
	}
	if added < 10*most {
		t.Errorf("%d rows added at once, want at least %d", added, 10*most)
	}
}

func joinedOf(t *testing.T, blockRows int) *Joined {
	j := NewJoined(JoinedOptions{Dir: t.TempDir(), Prefix: "shard", BlockRows: blockRows})
	t.Cleanup(func() { _ = j.Close() })
	return j
}
