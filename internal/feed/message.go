package feed

import "github.com/plumbline/plumbline/arrowio"

// Stream is which topic a message is for.
type Stream uint8

// The streams of a feed.
const (
	Logits Stream = iota
	Labels
)

// String returns the stream's name.
func (s Stream) String() string {
	if s == Labels {
		return "labels"
	}
	return "logits"
}

// WatermarkHeader is the header of a control message: decimal nanoseconds of event time that the partition has reached.
const WatermarkHeader = "plumbline-watermark"

// Header is a Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// Message is one Kafka record to be.
type Message struct {
	Stream    Stream
	Partition int32
	// the first row's id, which the default partitioner puts on the same partition; nil for control messages
	Key     []byte
	Value   []byte // an Arrow IPC stream; empty for control messages
	Headers []Header
	First   arrowio.Time // event time of the first row; 0 for control messages
	Time    arrowio.Time // and of the newest one
	Rows    int
	Row     int64 // the lowest number of its rows; of control messages that of the last row
}
