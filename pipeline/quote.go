package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of headers that are copied: a record may have as many as fit into a message.
const (
	maxHeaders     = 32
	maxHeaderName  = 128
	maxHeaderValue = 256
	maxHeaderBytes = 4 << 10
)

// BoundedHeaders copies the headers of a record, as far as they stay within bounds: names and first bytes of values.
// left is how many were left out or cut. The watermark comes first: what a record is depends on it.
func BoundedHeaders(hs []Header) (out []Header, left int) {
	size := 0
	add := func(h *Header) {
		name, value := cut(h.Key, maxHeaderName), h.Value[:min(len(h.Value), maxHeaderValue)]
		if len(out) == maxHeaders || size+len(name)+len(value) > maxHeaderBytes {
			left++
			return
		}
		if len(name) < len(h.Key) || len(value) < len(h.Value) {
			left++
		}
		size += len(name) + len(value)
		out = append(out, Header{Key: name, Value: slices.Clone(value)})
	}
	first := slices.IndexFunc(hs, func(h Header) bool { return h.Key == WatermarkHeader })
	if first >= 0 {
		add(&hs[first])
	}
	for i := range hs {
		if i != first {
			add(&hs[i])
		}
	}
	return out, left
}

// quoteHeaders are the headers of a record as its dead letter has them: none can be mistaken for one of the letter's.
func quoteHeaders(hs []Header) []Header {
	out, left := BoundedHeaders(hs)
	for i := range out {
		if name, ours := strings.CutPrefix(out[i].Key, "plumbline-"); ours && ownHeader(name) {
			out[i].Key = "original-" + out[i].Key
		}
	}
	if left == 0 {
		return out
	}
	size := 0
	for _, h := range hs {
		size += len(h.Key) + len(h.Value)
	}
	return append(out, Header{"plumbline-headers",
		fmt.Appendf(nil, "%d of %d headers, %d bytes, are not here or not whole", left, len(hs), size)})
}

// ownHeader reports whether a dead letter says something by this name itself.
func ownHeader(name string) bool {
	switch name {
	case "reason", "detail", "topic", "partition", "offset", "timestamp", "rows", "rows-count", "rows-more",
		"value-bytes", "value-sha256", "key-bytes", "headers":
		return true
	}
	return false
}
