package pipeline

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/internal/binenc"
)

// Headers of the messages that the repartition stage writes.
const (
	// SourceHeader names the source of a message: TOPIC/PARTITION/OF/OFFSET/PART, see Provenance.
	SourceHeader = "plumbline-source"
	// SourceIdleHeader announces, on an empty value, that a source is exhausted ("1") or no longer exhausted ("0").
	// OFFSET is the next one to be read.
	SourceIdleHeader = "plumbline-source-idle"
	// SourceRowsHeader has the offset of each row, where several records became one message: the first one, and what
	// is to be added to get to the next, as 120,+1,+3. OFFSET is that of the last of the records.
	SourceRowsHeader = "plumbline-source-rows"
	// SourceAheadHeader says that the record's timestamp was in the future when the stage read it.
	SourceAheadHeader = "plumbline-source-ahead"
)

// CountRepeats counts, by input, repeated messages of the repartition stage; shards skip them.
const CountRepeats = "repeats"

// Provenance is the place of a message in the output of the repartition stage. The stage reads a source, which is one
// partition of an unkeyed topic, in order. It commits an offset only when all messages for it are written. So in each
// keyed partition the messages of one source come in the order of (Offset, Part), and a message that is not beyond the
// greatest one seen is a repeat.
type Provenance struct {
	Topic         string // with its id, where the brokers tell one: a topic that was made again is another source
	Partition, Of int32  // Of is the number of partitions of Topic
	Offset        int64
	Part          int32 // numbers the messages that one offset became in one keyed partition
}

// AsHeader returns p as a header.
func (p Provenance) AsHeader() Header {
	const digits = 11 + 11 + 20 + 11 // and slashes
	v := append(make([]byte, 0, len(p.Topic)+digits), p.Topic...)
	for _, n := range [...]int64{int64(p.Partition), int64(p.Of), p.Offset, int64(p.Part)} {
		v = strconv.AppendInt(append(v, '/'), n, 10)
	}
	return Header{SourceHeader, v}
}

// SourceRows returns the offsets of a message's rows as a header. Such a message may hold several Arrow streams.
func SourceRows(offsets []int64) Header {
	v := make([]byte, 0, 20+3*len(offsets))
	for i, o := range offsets {
		if i == 0 {
			v = strconv.AppendInt(v, o, 10)
			continue
		}
		if v = append(v, ','); o >= offsets[i-1] {
			v = append(v, '+')
		}
		v = strconv.AppendInt(v, o-offsets[i-1], 10)
	}
	return Header{SourceRowsHeader, v}
}

// sourceRows reads what SourceRows wrote; nil if there is none, or it cannot be read.
func sourceRows(headers []Header) (offsets []int64) {
	at := slices.IndexFunc(headers, func(h Header) bool { return h.Key == SourceRowsHeader })
	if at < 0 {
		return nil
	}
	offset := int64(0)
	for text := range strings.SplitSeq(string(headers[at].Value), ",") {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil
		}
		offset += n
		offsets = append(offsets, offset)
	}
	return offsets
}

// rowsAfter returns headers without the rows of records up to an offset, where they name others.
func rowsAfter(headers []Header, taken int64) []Header {
	of := sourceRows(headers)
	left := slices.DeleteFunc(slices.Clone(of), func(o int64) bool { return o <= taken })
	if len(left) == 0 || len(left) == len(of) {
		return headers
	}
	out := slices.Clone(headers)
	for i := range out {
		if out[i].Key == SourceRowsHeader {
			out[i] = SourceRows(left)
		}
	}
	return out
}

// sourcesOf returns the headers of a record for a dead letter of some of its rows, the first of which is row first, and
// so on with next: where the record was made of several, as if it were made of the first of these alone, with the
// offsets of as many as there is room for. first < 0: the letter is of all rows, or of none in particular.
func sourcesOf(headers []Header, first int, next func(row int) int) []Header {
	of := sourceRows(headers)
	source := slices.IndexFunc(headers, func(h Header) bool { return h.Key == SourceHeader })
	if of == nil || source < 0 {
		return headers
	}
	p, err := parseProvenance(string(headers[source].Value))
	if err != nil {
		return headers
	}
	row := first
	if first < 0 {
		row, next = 0, func(row int) int { return row + 1 }
	} else if first < len(of) {
		p.Offset = of[first]
	}
	const digits = 20
	var list []byte
	for last := int64(-1); row >= 0 && row < len(of) && len(list) <= maxHeaderValue-1-digits; row = next(row) {
		if of[row] == last { // of the same record
			continue
		}
		if list != nil {
			list = append(list, ',')
		}
		last = of[row]
		list = strconv.AppendInt(list, last, 10)
	}
	out := slices.Clone(headers)
	out[source] = p.AsHeader()
	for i := range out {
		if out[i].Key == SourceRowsHeader {
			out[i] = Header{sourceOffsetsHeader, list}
		}
	}
	return out
}

// sourceOffsetsHeader is, of a dead letter, the offsets of the records that it is about.
const sourceOffsetsHeader = "plumbline-source-offsets"

// maxSourceName is the length of the longest source name: a topic's name, a separator and its id.
const maxSourceName = 249 + 1 + 32

// maxSources bounds the sources that a shard knows: anybody can write such headers.
const maxSources = 1 << 16

// provenance reads the source headers of r; ok is false if it has none.
func provenance(r *Record) (p Provenance, idle string, ok bool, err error) {
	for _, h := range r.Headers {
		switch h.Key {
		case SourceIdleHeader:
			idle = string(h.Value)
		case SourceHeader:
			ok = true
			p, err = parseProvenance(string(h.Value))
		}
	}
	if err == nil && idle != "" && (!ok || len(r.Value) > 0 || idle != "0" && idle != "1") {
		err = fmt.Errorf("header %s %.16q: must be 0 or 1, on an empty value, beside %s", SourceIdleHeader, idle,
			SourceHeader)
	}
	return p, idle, ok || err != nil, err
}

// SaysIdle reports whether a record says that a source is exhausted: it is silence that speaks.
func (r *Record) SaysIdle() bool {
	if len(r.Value) > 0 {
		return false
	}
	_, idle, _, err := provenance(r)
	return err == nil && idle == "1"
}

// SourceOf returns the place of the original record, for a record that the repartition stage made; ok is false for
// others.
func SourceOf(headers []Header) (topic string, partition int32, offset int64, ok bool) {
	for _, h := range headers {
		if h.Key == SourceHeader {
			if p, err := parseProvenance(string(h.Value)); err == nil {
				return nameOf(p.Topic), p.Partition, p.Offset, true
			}
		}
	}
	return "", 0, 0, false
}

func carriesAhead(r *Record) bool {
	return slices.ContainsFunc(r.Headers, func(h Header) bool { return h.Key == SourceAheadHeader })
}

func parseProvenance(s string) (p Provenance, err error) {
	topic, rest, ok := strings.Cut(s, "/")
	if !ok || topic == "" || len(topic) > maxSourceName || strings.Count(rest, "/") != 3 {
		return p, fmt.Errorf("header %s %.64q: must be TOPIC/PARTITION/OF/OFFSET/PART", SourceHeader, s)
	}
	p.Topic = topic
	var n [4]int64
	for i := range n {
		bits := 32
		if i == 2 {
			bits = 64
		}
		var number string
		number, rest, _ = strings.Cut(rest, "/")
		if n[i], err = strconv.ParseInt(number, 10, bits); err != nil || n[i] < 0 {
			return p, fmt.Errorf("header %s %.64q: %.32q must be a number of 0 or more", SourceHeader, s, number)
		}
	}
	p.Partition, p.Of, p.Offset, p.Part = int32(n[0]), int32(n[1]), n[2], int32(n[3])
	if p.Partition >= p.Of || p.Of > maxSources {
		return p, fmt.Errorf("header %s %.64q: partition %d of %d", SourceHeader, s, p.Partition, p.Of)
	}
	return p, nil
}

// sourceKey identifies a source of an input.
type sourceKey struct {
	in        Input
	topic     string
	partition int32
}

// sourceMark is the state of a source: the last message taken, and its clock.
type sourceMark struct {
	offset          int64 // -1: none yet
	part            int32
	newest, control Time
	idle            bool
}

// source returns the state of a message's source. fresh is false if the message was taken before; otherwise the
// message counts as taken now.
func (w *Watermark) source(in Input, p Provenance) (m *sourceMark, fresh bool, err error) {
	m, err = w.known(in, p)
	if err != nil || p.Offset < m.offset || p.Offset == m.offset && p.Part <= m.part {
		return m, false, err
	}
	m.offset, m.part, m.idle = p.Offset, p.Part, false
	w.in[in].spoke(p)
	w.in[in].idle = false
	return m, true, nil
}

// takenOf is the offset of a source up to which all is taken; -1 = nothing is.
func (w *Watermark) takenOf(in Input, p Provenance) int64 {
	if m := w.sources[sourceKey{in, p.Topic, p.Partition}]; m != nil {
		return m.offset
	}
	return -1
}

// sourceIdle notes that a source is exhausted before p.Offset, or is not. An exhausted source becomes active with the
// first message from beyond. "Not exhausted" always counts: a new reader of the source announces it before its first
// repeat.
func (w *Watermark) sourceIdle(in Input, p Provenance, idle bool) error {
	m, err := w.known(in, p)
	if err != nil || idle && p.Offset <= m.offset {
		return err
	}
	m.idle = idle
	w.in[in].spoke(p)
	w.in[in].idle = w.in[in].idle && idle
	return nil
}

// spoke notes that a topic has sent a message. A topic that was deleted and made again replaces its former self. If no
// unkeyed topics are configured, only one topic counts.
func (i *inputMark) spoke(p Provenance) {
	i.left = false
	now := madeOf{p.Topic, p.Of}
	at := slices.IndexFunc(i.made, func(m madeOf) bool { return len(i.only) == 0 || m.name() == now.name() })
	switch {
	case at < 0:
		i.made = append(i.made, now)
	case i.made[at] == now:
		return
	default:
		i.made[at] = now
	}
	slices.SortFunc(i.made, func(a, b madeOf) int { return cmp.Compare(a.topic, b.topic) })
	i.marks = nil
}

// sources returns the topics that count: the configured ones or, while none of them has sent anything, those of the
// checkpoint.
func (i *inputMark) sources() []madeOf {
	if len(i.only) == 0 {
		return i.made
	}
	var out []madeOf
	for _, m := range i.made {
		if slices.Contains(i.only, m.name()) {
			out = append(out, m)
		}
	}
	if out == nil {
		return i.made
	}
	return out
}

// foreign reports whether a header names a source that the input does not have. Anybody can write a header, and a
// forged one must neither hold the watermark back nor make rows of others look like repeats.
func (w *Watermark) foreign(in Input, p Provenance) bool {
	i := &w.in[in]
	return (i.alone || len(i.only) > 0 && !slices.Contains(i.only, nameOf(p.Topic))) &&
		w.sources[sourceKey{in, p.Topic, p.Partition}] == nil
}

func (w *Watermark) known(in Input, p Provenance) (*sourceMark, error) {
	k := sourceKey{in, p.Topic, p.Partition}
	m := w.sources[k]
	if m == nil {
		if len(w.sources) >= maxSources {
			return nil, fmt.Errorf("source %s partition %d: more than %d sources", p.Topic, p.Partition, maxSources)
		}
		if w.sources == nil {
			w.sources = map[sourceKey]*sourceMark{}
		}
		m = &sourceMark{offset: -1, newest: NoTime, control: NoTime}
		w.sources[k], w.in[in].marks = m, nil
	}
	return m, nil
}

// bySource returns the watermark of an input that is made of unkeyed topics: the lowest of its sources that are not
// idle. A source that has sent nothing yet holds it back. held is false if no source counts.
func (w *Watermark) bySource(in Input) (t Time, held bool) {
	i := &w.in[in]
	t = EndTime
	if i.left {
		return t, false
	}
	if i.marks == nil {
		for _, made := range i.sources() {
			for p := range made.of {
				i.marks = append(i.marks, w.sources[sourceKey{in, made.topic, p}])
			}
		}
	}
	for _, m := range i.marks {
		if m == nil {
			return NoTime, true
		}
		if !m.idle {
			held = true
			t = min(t, max(m.control, minus(m.newest, w.Lateness)))
		}
	}
	return t, held
}

// expect makes an input wait for a partition of an unkeyed topic, before that has sent anything.
func (w *Watermark) expect(in Input, topic string, partition int32) {
	of := partition + 1
	for _, m := range w.in[in].made {
		if m.topic == topic {
			of = max(of, m.of)
		}
	}
	w.in[in].spoke(Provenance{Topic: topic, Of: of})
}

// appendSources appends the sources; nothing if there are none.
func (w *Watermark) appendSources(dst []byte) []byte {
	if len(w.sources) == 0 && !slices.ContainsFunc(w.in, func(m inputMark) bool { return len(m.made) > 0 }) {
		return dst
	}
	for i := range w.in {
		dst = binenc.AppendUvarint(dst, uint64(len(w.in[i].made)))
		for _, m := range w.in[i].made {
			dst = binenc.AppendString(dst, m.topic)
			dst = binenc.AppendUvarint(dst, uint64(m.of))
		}
	}
	keys := make([]sourceKey, 0, len(w.sources))
	for k := range w.sources {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b sourceKey) int {
		return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
	})
	dst = binenc.AppendUvarint(dst, uint64(len(keys)))
	for _, k := range keys {
		m := w.sources[k]
		idle := byte(0)
		if m.idle {
			idle = 1
		}
		dst = append(dst, byte(k.in), idle)
		dst = binenc.AppendString(dst, k.topic)
		dst = binenc.AppendUvarint(dst, uint64(k.partition))
		dst = binenc.AppendVarint(dst, m.offset)
		dst = binenc.AppendUvarint(dst, uint64(m.part))
		dst = binenc.AppendVarint(dst, m.newest)
		dst = binenc.AppendVarint(dst, m.control)
	}
	return dst
}

// restoreSources reads what appendSources wrote, for a state with so many inputs.
func (w *Watermark) restoreSources(r *binenc.Reader, inputs int) {
	w.sources = nil
	for i := range w.in {
		w.in[i].marks = nil
	}
	if r.Len() == 0 {
		return
	}
	for i := range inputs {
		var made []madeOf
		for range r.Count(2, maxSources) {
			made = append(made, madeOf{r.String(maxSourceName), int32(r.Int("partitions", 0, maxSources))})
		}
		if i < len(w.in) {
			w.in[i].made = made
		}
	}
	w.sources = map[sourceKey]*sourceMark{}
	for range r.Count(8, maxSources) {
		k, m := sourceKey{in: Input(r.Byte())}, &sourceMark{}
		m.idle = r.Byte() == 1
		k.topic, k.partition = r.String(maxPaneName), int32(r.Int("partition", 0, maxSources))
		m.offset, m.part = r.Varint(), int32(r.Int("part", 0, math.MaxInt32))
		m.newest, m.control = r.Varint(), r.Varint()
		w.sources[k] = m
	}
}
