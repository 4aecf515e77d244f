package pipeline

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/pipeline/tracing"
)

// Bounds of a dead letter beside the part of the value that it quotes. The record itself is found by its position.
const (
	maxLetterKey    = 1 << 10
	maxLetterDetail = 1 << 10
	maxLetterRanges = 64
	// DefaultQuoted is how many bytes of a value are quoted by default.
	DefaultQuoted = 64 << 10
	// maxLettersMinute is how many bytes of dead letters a task writes in a minute. Those of the second half quote no
	// values; further ones are only counted. A flood of garbage must fill neither the topic nor memory.
	maxLettersMinute = 10 << 20
)

// Out collects messages that a shard writes before its next checkpoint: dead letters and the calibrated stream. They
// are delivered at least once; a repeat after a crash has the same key. Whatever stages report about a record, between
// Begin and End, goes into one dead letter.
type Out struct {
	pending   []Message
	bytes     int
	kept      int // how many of pending, the first, are of no stream that prompt returns
	letter    letter
	quoted    int
	tell      func(r *Record, reason, detail string)
	hide      func(key []byte) []byte // nil: keys, headers and values are quoted
	quota     quota
	ahead     []aheadRun
	toldAhead bool // of some
	counts    *Counts
	log       *slog.Logger
	trace     *tracing.Lane
}

// NewOut returns an empty collector that counts dead letters in c.
func NewOut(c *Counts) *Out {
	return &Out{counts: c, quoted: DefaultQuoted, log: slog.New(slog.DiscardHandler)}
}

// Quote sets how many bytes of the value a dead letter quotes, and the log for dead letters that are not written.
func (o *Out) Quote(n int, log *slog.Logger) *Out {
	o.quoted, o.log = n, log
	return o
}

// Tell makes Out call whom for every dead letter, with the reason, and with the detail only if records may be quoted.
func (o *Out) Tell(whom func(r *Record, reason, detail string)) { o.tell = whom }

// Hide keeps the content of records out of dead letters. They then have lengths, names of headers, and the key as
// hashed returns it.
func (o *Out) Hide(hashed func(key []byte) []byte) { o.quoted, o.hide = 0, hashed }

// Put adds a message; it must not share memory with the batch.
func (o *Out) Put(m Message) {
	if m.Stream == StreamCalibrated {
		CarryTrace(o.trace, &m)
	}
	o.pending = append(o.pending, m)
	o.bytes += m.Size()
}

// letter collects the dead letter of the current record.
type letter struct {
	record  Record
	said    bool
	reason  string // why the whole record is refused; "" = it is not
	detail  string
	first   int // number of the first row of the batch at hand, through all batches of the record
	rows    int // of all batches so far
	reasons []rowReason
	refused []uint64 // a bit for each row that takes no part
}

// rowReason is one reason for rejected rows.
type rowReason struct {
	reason string
	rows   int
	detail string // of the first of them
}

// Begin starts a record: reports are about it from here on.
func (o *Out) Begin(r Record) {
	l := &o.letter
	clear(l.refused)
	*l = letter{record: r, reasons: l.reasons[:0], refused: l.refused[:0]}
}

// NextBatch starts the next batch of the record, of n rows.
func (o *Out) NextBatch(n int) {
	o.letter.first = o.letter.rows
	o.letter.rows += n
}

// Refuse rejects the whole record.
func (o *Out) Refuse(reason, detail string) {
	l := &o.letter
	l.said, l.reason, l.detail = true, reason, detail
}

// Reject rejects row i of the batch or, if i is negative, a row of an earlier record that this record met. The dead
// letter has the first detail of each reason.
func (o *Out) Reject(i int, reason, detail string) {
	l := &o.letter
	l.said = true
	if i >= 0 {
		i += l.first
		for i/64 >= len(l.refused) {
			l.refused = append(l.refused, 0)
		}
		l.refused[i/64] |= 1 << (i % 64)
	}
	at := slices.IndexFunc(l.reasons, func(r rowReason) bool { return r.reason == reason })
	if at < 0 {
		at = len(l.reasons)
		l.reasons = append(l.reasons, rowReason{reason: reason, detail: detail})
	}
	l.reasons[at].rows++
}

// End makes the dead letter of the record, if anything was reported.
func (o *Out) End() {
	l := &o.letter
	if l.said {
		o.send(l)
	}
	o.Begin(Record{})
}

// Skipped makes the dead letter of a skipped record, and the entry of the decisions topic. They name the place only,
// because the content of the record has ended the task.
//
// of is the number of shards, of which the record is for one.
func (o *Out) Skipped(r Record, of int, why string) {
	if why != skippedBefore { // else the dead letter has it
		o.tellSkip(&r, of, why)
	}
	sources := slices.DeleteFunc(slices.Clone(r.Headers), func(h Header) bool {
		return h.Key != SourceHeader && h.Key != SourceRowsHeader
	})
	o.Begin(Record{Input: r.Input, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Time,
		Headers: sources})
	o.Refuse(ReasonPoison, why)
	o.End()
}

// tellSkip writes to the decisions topic that a record was skipped: replays must skip it too.
func (o *Out) tellSkip(r *Record, of int, why string) {
	s := &record.Skip{Schema: 1, Model: record.NoModel, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
		Why: cut(why, maxLetterDetail)}
	if p, _, ok, err := provenance(r); ok && err == nil {
		s.Source, s.Shards, s.Sources = string(p.AsHeader().Value), of, rangesOf(sourceRows(r.Headers))
	}
	o.decide(s, r.Time)
}

func (o *Out) decide(s *record.Skip, at Time) {
	if at > 0 {
		s.At = record.At(at)
	}
	m, err := NewMessage(StreamDecisions, s.Model, at, s)
	if err != nil {
		o.log.Error("no entry for the decisions topic", "topic", s.Topic, "partition", s.Partition, "offset", s.Offset,
			"err", err)
		return
	}
	o.Put(m)
}

// aheadRun is a run of consecutive records whose timestamps were in the future when they were read.
type aheadRun struct {
	topic       string
	partition   int32
	first, last int64
	at          Time // of the first
}

// maxAheadRuns bounds an entry of the decisions topic: some 40 KB.
const maxAheadRuns = 1024

// Ahead notes that the timestamp of a record was in the future. This depends on when the record was read, so replays
// must be told.
func (o *Out) Ahead(r *Record) {
	for i := len(o.ahead) - 1; i >= max(0, len(o.ahead)-2); i-- { // a task reads two topics at most
		if a := &o.ahead[i]; a.topic == r.Topic && a.partition == r.Partition && a.last+1 == r.Offset {
			a.last = r.Offset
			return
		}
	}
	if len(o.ahead) == maxAheadRuns {
		o.TellAhead()
	}
	o.ahead = append(o.ahead, aheadRun{r.Topic, r.Partition, r.Offset, r.Offset, r.Time})
}

// doubtsClock reports that records were ahead of the clock for the first time, and that nothing is written of it yet.
func (o *Out) doubtsClock() bool { return len(o.ahead) > 0 && !o.toldAhead }

// TellAhead writes to the decisions topic which records were ahead, one entry for each topic.
func (o *Out) TellAhead() {
	runs := o.ahead
	o.ahead = nil
	o.toldAhead = o.toldAhead || len(runs) > 0
	for len(runs) > 0 {
		first := runs[0]
		var b strings.Builder
		runs = slices.DeleteFunc(runs, func(a aheadRun) bool {
			if a.topic != first.topic || a.partition != first.partition {
				return false
			}
			addRange(&b, a.first, a.last)
			return true
		})
		o.decide(&record.Skip{Schema: 1, Model: record.NoModel, Topic: first.topic, Partition: first.partition,
			Offset: first.first, Offsets: b.String(),
			Why: "record_ahead: their timestamps were in the future when they were read"}, first.at)
	}
}

func addRange(b *strings.Builder, first, last int64) {
	if b.Len() > 0 {
		b.WriteByte(',')
	}
	b.WriteString(strconv.FormatInt(first, 10))
	if last > first {
		b.WriteString("-" + strconv.FormatInt(last, 10))
	}
}

// rangesOf has offsets as "7,9-12".
func rangesOf(offsets []int64) string {
	offsets = slices.Compact(slices.Sorted(slices.Values(offsets)))
	var b strings.Builder
	for i := 0; i < len(offsets); {
		first := i
		for i++; i < len(offsets) && offsets[i] == offsets[i-1]+1; i++ {
		}
		addRange(&b, offsets[first], offsets[i-1])
	}
	return b.String()
}

// send counts the dead letter and queues it, unless the quota of this minute is used up.
func (o *Out) send(l *letter) {
	reason, detail := l.words()
	o.counts.AddReason(CountDeadLetters, reason, 1)
	o.trace.Set("plumbline.dead_letter", reason)
	l.record.Headers = sourcesOf(l.record.Headers, l.next(0, true), func(row int) int { return l.next(row+1, true) })
	if o.tell != nil {
		told := detail
		if o.hide != nil {
			told = ""
		}
		o.tell(&l.record, reason, told)
	}
	room := o.quota.room(time.Now())
	if room <= 0 {
		o.counts.AddReason(CountLettersSkipped, reason, 1)
		o.skipped(&l.record, reason)
		return
	}
	r := &l.record
	quoted := min(o.quoted, len(r.Value))
	if room <= maxLettersMinute/2 {
		quoted = 0
	}
	hs, key := quoteHeaders(r.Headers), slices.Clone(r.Key[:min(len(r.Key), maxLetterKey)])
	if o.hide != nil {
		for i := range hs {
			hs[i].Value = nil
		}
		if len(r.Key) > 0 {
			key = o.hide(r.Key)
		}
	}
	add := func(key, value string) { hs = append(hs, Header{"plumbline-" + key, []byte(value)}) }
	if o.hide != nil {
		detail = withoutValues(detail)
	}
	add("reason", reason)
	add("detail", cut(detail, maxLetterDetail))
	add("topic", r.Topic)
	add("partition", strconv.Itoa(int(r.Partition)))
	add("offset", strconv.FormatInt(r.Offset, 10))
	if r.Time > 0 {
		add("timestamp", strconv.FormatInt(r.Time, 10))
	}
	if rows, n, more := l.ranges(); n > 0 {
		add("rows", rows)
		add("rows-count", strconv.Itoa(n))
		if more > 0 {
			add("rows-more", strconv.Itoa(more))
		}
	}
	if r.Value != nil { // else there is none, or it is not looked at
		add("value-bytes", strconv.Itoa(len(r.Value)))
		if o.hide == nil { // a hash of a short value tells who guesses the value that it is that one
			hash := sha256.Sum256(r.Value)
			add("value-sha256", hex.EncodeToString(hash[:]))
		}
	}
	if len(r.Key) > maxLetterKey {
		add("key-bytes", strconv.Itoa(len(r.Key)))
	}
	m := Message{Stream: StreamDeadLetter, Partition: -1, Key: key, Value: slices.Clone(r.Value[:quoted]), Headers: hs,
		Time: r.Time}
	o.quota.used += m.Size()
	o.Put(m)
}

// values matches what a detail quotes from a record: text in quotes, perhaps cut, and a number after a colon. Names of
// columns and versions are not from the record's values.
var values = regexp.MustCompile(`(column |version )?"(?:[^"\\]|\\.)*(?:"|\\?$)|: -?[0-9]\S*|shape of \[.*?\]`)

// withoutValues returns a detail without the quoted values.
func withoutValues(detail string) string {
	return values.ReplaceAllStringFunc(detail, func(quoted string) string {
		before, _, text := strings.Cut(quoted, `"`)
		switch {
		case text && before != "":
			return quoted
		case text:
			return "a text"
		case strings.HasPrefix(quoted, ":"):
			return ": a number"
		}
		return "another shape"
	})
}

// words returns the letter's reason and detail: how many rows for which reason.
func (l *letter) words() (reason, detail string) {
	if l.reason != "" {
		return l.reason, l.detail
	}
	slices.SortFunc(l.reasons, func(a, b rowReason) int { return cmp.Compare(a.reason, b.reason) })
	var b strings.Builder
	for i, r := range l.reasons {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d rows: %s", r.rows, r.reason)
		if r.detail != "" {
			fmt.Fprintf(&b, " (%s)", r.detail)
		}
	}
	if len(l.reasons) > 1 {
		return "rows", b.String()
	}
	return l.reasons[0].reason, b.String()
}

// ranges lists the rejected rows, as "0-99,105". n is their number, more the number that the list leaves out.
func (l *letter) ranges() (list string, n, more int) {
	var b strings.Builder
	count := 0
	for at := l.next(0, true); at >= 0; {
		end := l.next(at, false)
		n += end - at
		if count++; count > maxLetterRanges {
			more += end - at
		} else {
			if count > 1 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(at))
			if end > at+1 {
				b.WriteString("-" + strconv.Itoa(end-1))
			}
		}
		at = l.next(end, true)
	}
	return b.String(), n, more
}

// next returns the first row at or after from that is refused (or, with refused false, that is not). Some row is
// always not refused; -1 says that no other row is refused.
func (l *letter) next(from int, refused bool) int {
	for w := from / 64; w < len(l.refused); w++ {
		word := l.refused[w]
		if !refused {
			word = ^word
		}
		if w == from/64 {
			word &= ^uint64(0) << (from % 64)
		}
		if word != 0 {
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	if refused {
		return -1
	}
	return max(from, 64*len(l.refused))
}

// cut shortens text to at most n bytes, at a character boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// quota is the number of bytes of dead letters written in the current minute.
type quota struct {
	since   time.Time
	used    int
	skipped int64 // since the last log line
	logged  time.Time
}

// room returns how many bytes may still be written in the current minute.
func (q *quota) room(now time.Time) int {
	if now.Sub(q.since) >= time.Minute {
		q.since, q.used = now, 0
	}
	return maxLettersMinute - q.used
}

// skipped logs, once a minute, the dead letters that are counted but not written.
func (o *Out) skipped(r *Record, reason string) {
	q := &o.quota
	q.skipped++
	if q.logged.Equal(q.since) {
		return
	}
	q.logged = q.since
	o.log.Warn("more than 10 MiB of dead letters in a minute: until it is over they are counted, not written",
		"skipped", q.skipped, "topic", r.Topic, "partition", r.Partition, "offset", r.Offset, "reason", reason)
	q.skipped = 0
}

// prompt removes and returns the messages of the calibrated stream.
func (o *Out) prompt() (ms []Message) {
	rest := o.pending[:o.kept]
	for _, m := range o.pending[o.kept:] {
		if m.Stream == StreamCalibrated {
			ms = append(ms, m)
			o.bytes -= m.Size()
		} else {
			rest = append(rest, m)
		}
	}
	clear(o.pending[len(rest):])
	o.pending, o.kept = rest, len(rest)
	return ms
}

func (o *Out) clear() { o.pending, o.bytes, o.kept = nil, 0, 0 }

// Drain returns the collected messages and empties the collection.
func (o *Out) Drain() []Message {
	ms := o.pending
	o.clear()
	return ms
}

// Bounds of headers that are copied: a record may have as many as fit into a message.
const (
	maxHeaders     = 32
	maxHeaderName  = 128
	maxHeaderValue = 256
	maxHeaderBytes = 4 << 10
)

// BoundedHeaders copies the headers of a record within bounds: names and first bytes of values. left is how many were
// left out or cut. The watermark comes first, because it decides whether the record is a control record.
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

// quoteHeaders renames the headers of a record for its dead letter, so that none is mistaken for one of the letter's
// own.
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

// ownHeader reports whether a dead letter uses this header name for itself.
func ownHeader(name string) bool {
	switch name {
	case "reason", "detail", "topic", "partition", "offset", "timestamp", "rows", "rows-count", "rows-more",
		"value-bytes", "value-sha256", "key-bytes", "headers":
		return true
	}
	return false
}
