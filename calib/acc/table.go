package acc

import "slices"

// entry holds the sums of one key; the types that use a table name its fields.
type entry = [4]int64

// table is a map from integers below space to sums. The entries lie side by side in the order in which their keys
// first came; few are found by a hash table of their places, many by an array of places with one element for every
// possible key, which costs no search and no mispredicted branch. Without a new key an update allocates nothing.
// What a decoder has filled has its keys in ascending order and neither of the two: they are made when an entry is
// asked for to be changed. The zero value is empty; space is set before the first key.
type table[K uint16 | uint32] struct {
	keys  []K
	ents  []entry     // of the keys
	place []K         // place + 1 by key; nil while there are few
	hash  []hashed[K] // open addressing, linear probing; at most half are used, the length is a power of two
	space int
}

// hashed is where a key's entry is. The key beside it saves a look at the list of keys, which is memory of its own.
type hashed[K uint16 | uint32] struct {
	key, place K // place + 1; 0 = free
}

const (
	tableMin = 32
	// Once one key in placeShare is used, their places move from the hash table into the array.
	placeShare = 16
	// Keys in order are merged in order unless they are few: that walks all those that are there.
	mergeShare = 8
)

// at returns the sums of k, zero ones if k is new. The pointer is valid until the next call.
func (t *table[K]) at(k K) *entry {
	if e := t.known(k); e != nil {
		return e
	}
	return t.search(k)
}

// known is at of a key that the array of places has, else nil: small enough to be inlined.
func (t *table[K]) known(k K) *entry {
	if int(k) < len(t.place) {
		if i := t.place[k]; i != 0 {
			return &t.ents[i-1]
		}
	}
	return nil
}

// search is at for a key that is new or in the hash table.
func (t *table[K]) search(k K) *entry {
	if t.plain() {
		t.index()
		if e := t.known(k); e != nil {
			return e
		}
	}
	if t.place == nil {
		if i := t.slot(k); i >= 0 && t.hash[i].place != 0 {
			return &t.ents[t.hash[i].place-1]
		}
	}
	return t.insert(k)
}

func (t *table[K]) insert(k K) *entry {
	t.keys, t.ents = append(t.keys, k), append(t.ents, entry{})
	n := len(t.keys)
	switch {
	case t.place != nil:
		t.place[k] = K(n)
	case n*placeShare > t.space:
		t.hash, t.place = nil, make([]K, t.space)
		for i, k := range t.keys {
			t.place[k] = K(i + 1)
		}
	case 2*n > len(t.hash):
		t.rehash(max(tableMin, 2*len(t.hash)))
	default:
		t.hash[t.slot(k)] = hashed[K]{k, K(n)}
	}
	return &t.ents[n-1]
}

// plain reports whether the table is as a decoder has filled it.
func (t *table[K]) plain() bool { return t.place == nil && len(t.hash) == 0 && len(t.keys) > 0 }

// index makes the keys of a plain table known.
func (t *table[K]) index() {
	n := len(t.keys)
	if n*placeShare > t.space {
		t.place = make([]K, t.space)
		for i, k := range t.keys {
			t.place[k] = K(i + 1)
		}
		return
	}
	size := tableMin
	for size < 2*n+2 { // and the next
		size *= 2
	}
	t.rehash(size)
}

// rehash makes the hash table of all keys.
func (t *table[K]) rehash(size int) {
	t.hash = make([]hashed[K], size)
	for i, k := range t.keys {
		t.hash[t.slot(k)] = hashed[K]{k, K(i + 1)}
	}
}

// get returns the sums of k, zero where it is absent.
func (t *table[K]) get(k K) entry {
	if t.plain() {
		if i, ok := slices.BinarySearch(t.keys, k); ok {
			return t.ents[i]
		}
		return entry{}
	}
	i := K(0)
	if t.place != nil {
		i = t.place[k]
	} else if s := t.slot(k); s >= 0 {
		i = t.hash[s].place
	}
	if i == 0 {
		return entry{}
	}
	return t.ents[i-1]
}

// slot returns where the hash table has the place of k, or the free slot where it belongs; -1 without a table.
func (t *table[K]) slot(k K) int {
	if len(t.hash) == 0 {
		return -1
	}
	mask := len(t.hash) - 1
	// An odd factor permutes the residues, so runs of neighbouring keys never collide with themselves.
	for i := int(uint32(k)*0x9E3779B1) & mask; ; i = (i + 1) & mask {
		if h := t.hash[i]; h.place == 0 || h.key == k {
			return i
		}
	}
}

// add adds every entry of o. Sums must fit.
func (t *table[K]) add(o *table[K]) {
	if t.plain() && o.plain() && mergeShare*len(o.keys) >= len(t.keys) {
		t.merge(o)
		return
	}
	keys, ents := o.keys, o.ents
	for i, k := range keys {
		e := ents[i] // a copy: t may be o
		d := t.at(k)
		for j := range d {
			d[j] += e[j]
		}
	}
}

// merge is add of two tables that decoders have filled: the keys of both are in order, and stay so.
func (t *table[K]) merge(o *table[K]) {
	n, fresh := len(t.keys), 0
	for i, x := 0, 0; x < len(o.keys); x++ {
		for i < n && t.keys[i] < o.keys[x] {
			i++
		}
		if i == n || t.keys[i] != o.keys[x] {
			fresh++
		}
	}
	t.keys, t.ents = slices.Grow(t.keys, fresh)[:n+fresh], slices.Grow(t.ents, fresh)[:n+fresh]
	// From the end, where there is room: nothing is overwritten before it has moved.
	for to, i, x := n+fresh-1, n-1, len(o.keys)-1; x >= 0; to-- {
		if i >= 0 && t.keys[i] > o.keys[x] {
			t.keys[to], t.ents[to] = t.keys[i], t.ents[i]
			i--
			continue
		}
		k, sum := o.keys[x], o.ents[x]
		if i >= 0 && t.keys[i] == k {
			for j, v := range t.ents[i] {
				sum[j] += v
			}
			i--
		}
		t.keys[to], t.ents[to] = k, sum
		x--
	}
}

// inOrder is a table's keys in ascending order, and its entries by them. It is valid until the table changes.
type inOrder[K uint16 | uint32] struct {
	keys []K
	ents []entry
	at   []K // place of each key's entry; nil where entries are in the order of keys
}

// nth returns the sums of keys[i].
func (o *inOrder[K]) nth(i int) *entry {
	if o.at != nil {
		i = int(o.at[i])
	}
	return &o.ents[i]
}

// sorted returns the keys in ascending order, each with its place: to look it up again costs as much as all else.
func (t *table[K]) sorted() inOrder[K] {
	o := inOrder[K]{t.keys, t.ents, nil}
	if t.plain() {
		return o
	}
	n := len(t.keys)
	both := make([]K, 2*n)
	o.keys, o.at = both[:n], both[n:]
	if t.place != nil {
		x := 0
		for k, i := range t.place {
			if x == n {
				break
			}
			o.keys[x], o.at[x] = K(k), i-1 // without a branch that nothing foretells: the next one overwrites
			if i != 0 {
				x++
			}
		}
		return o
	}
	pairs := make([]uint64, n)
	for i, k := range t.keys {
		pairs[i] = uint64(k)<<32 | uint64(i)
	}
	slices.Sort(pairs)
	for i, x := range pairs {
		o.keys[i], o.at[i] = K(x>>32), K(x)
	}
	return o
}

// reset empties the table and keeps its capacity.
func (t *table[K]) reset() {
	clear(t.place)
	clear(t.hash)
	t.keys, t.ents = t.keys[:0], t.ents[:0]
}

func (t *table[K]) clone() table[K] {
	return table[K]{slices.Clone(t.keys), slices.Clone(t.ents), slices.Clone(t.place), slices.Clone(t.hash), t.space}
}

// bytes returns the memory that the table holds.
func (t *table[K]) bytes() int {
	const entryBytes = 32
	key := 4
	if ^K(0) == 0xFFFF {
		key = 2
	}
	return entryBytes*cap(t.ents) + key*(cap(t.keys)+cap(t.place)+2*cap(t.hash))
}
