package wire

import (
	"fmt"
	"unicode/utf8"
)

// Reasons why a whole message is refused. The set is bounded: it becomes a metric label and a header.
const (
	Truncated   = "truncated"        // the bytes end before a length that they declare
	NotArrow    = "not_arrow"        // no IPC framing, or metadata that is no valid flatbuffer
	NoSchema    = "schema_missing"   // the stream does not begin with a schema, or has two
	Trailing    = "trailing"         // bytes after the end-of-stream marker
	TooLarge    = "too_large"        // more bytes, fields, classes or text than the limits allow
	Compressed  = "compressed"       // a compressed body where that is not enabled, or one that does not decompress
	Shape       = "shape"            // lengths, offsets or null counts that contradict each other
	Dictionary  = "dictionary"       // a dictionary that is missing, or an index outside it
	ColumnType  = "column_type"      // a column of a type that its name does not allow
	Duplicate   = "duplicate_column" // two columns of one name
	NoColumn    = "column_missing"   // a required column is absent
	NoModel     = "model_missing"    // neither a model column nor the metadata key
	TooManyRows = "rows"             // more rows than the limit
	BadText     = "utf8"             // model, version or slice text that is not UTF-8
	Panicked    = "panic"            // a bug in the decoder; the message is kept for its report
)

// maxDetail bounds Detail, which quotes what anybody may send and travels in a Kafka header.
const maxDetail = 240

// FormatError says why a message is refused as a whole.
type FormatError struct {
	Reason string // one of the constants above
	Detail string // for people; at most 240 bytes
}

func (e *FormatError) Error() string { return e.Reason + ": " + e.Detail }

// Errorf makes an Error, cutting the detail to its bound, at a character boundary.
func Errorf(reason, format string, args ...any) *FormatError {
	d := fmt.Sprintf(format, args...)
	if len(d) > maxDetail {
		end := maxDetail
		for end > maxDetail-utf8.UTFMax && !utf8.RuneStart(d[end]) {
			end--
		}
		d = d[:end]
	}
	return &FormatError{Reason: reason, Detail: d}
}
