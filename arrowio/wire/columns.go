package wire

import "encoding/binary"

// The methods here add columns from slices: what other formats bring has no messages in Arrow to gather rows of.

// Values adds a column of n values of fixed size. null may be nil.
func (g *Gather) Values(data []byte, n int, null []bool) {
	g.nulls(n, null)
	start := g.begin()
	g.body = append(g.body, data...)
	g.end(start)
}

// Lists adds a column of n lists of fixed length over their elements, of which there are elements.
func (g *Gather) Lists(data []byte, n, elements int, null []bool) {
	g.nulls(n, null)
	g.Values(data, elements, nil)
}

// ListsOf adds a column of n lists of k elements each in data, of a type of any length.
func (g *Gather) ListsOf(data []byte, n, k int, null []bool) {
	g.nulls(n, null)
	start := g.begin()
	for i := range n + 1 {
		g.body = binary.LittleEndian.AppendUint32(g.body, uint32(i*k))
	}
	g.end(start)
	g.Values(data, n*k, nil)
}

// TextOf adds a text column of the text that ends at each of ends; empty text is null.
func (g *Gather) TextOf(text []byte, ends []int32) {
	empty, from := 0, int32(0)
	for _, end := range ends {
		if end == from {
			empty++
		}
		from = end
	}
	start := g.begin()
	if empty > 0 {
		from = 0
		g.bitmap(len(ends), func(i int) bool {
			none := ends[i] == from
			from = ends[i]
			return none
		})
	}
	g.nodes = append(g.nodes, int64(len(ends)), int64(empty))
	g.end(start)
	start = g.begin()
	g.body = binary.LittleEndian.AppendUint32(g.body, 0)
	for _, end := range ends {
		g.body = binary.LittleEndian.AppendUint32(g.body, uint32(end))
	}
	g.end(start)
	start = g.begin()
	g.body = append(g.body, text...)
	g.end(start)
}

// nulls adds the node and the validity of n rows.
func (g *Gather) nulls(n int, null []bool) {
	count := 0
	for _, is := range null {
		if is {
			count++
		}
	}
	start := g.begin()
	if count > 0 {
		g.bitmap(n, func(i int) bool { return null[i] })
	}
	g.nodes = append(g.nodes, int64(n), int64(count))
	g.end(start)
}

// bitmap adds a bit for each row, in their order: 0 for null.
func (g *Gather) bitmap(n int, null func(i int) bool) {
	start := len(g.body)
	for range (n + 7) / 8 {
		g.body = append(g.body, 0)
	}
	to := g.body[start:]
	for i := range n {
		if !null(i) {
			to[i>>3] |= 1 << (i & 7)
		}
	}
}
