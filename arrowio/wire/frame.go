package wire

import "encoding/binary"

// FileMagic begins and, without the padding, ends an Arrow IPC file.
const FileMagic = "ARROW1\x00\x00"

// Header says what an encapsulated message holds, as in the MessageHeader union of Message.fbs.
type Header uint8

// The kinds of messages that a stream of record batches holds.
const (
	HeaderSchema     Header = 1
	HeaderDictionary Header = 2
	HeaderBatch      Header = 3
)

const (
	continuation = 0xFFFFFFFF
	prefixSize   = 8 // continuation marker and metadata length
	maxMetadata  = 1 << 24
	version4     = 3 // MetadataVersion.V4
	version5     = 4
)

// Message is one encapsulated message: both slices share the stream's memory.
type Message struct {
	Header   Header
	Version5 bool
	Meta     []byte
	Body     []byte
	pos      int // of the header table in Meta
}

// Next cuts the first message off stream and returns it with the bytes after it. end is true at the
// end-of-stream marker or at the end of the bytes; marked tells which of the two it was.
func Next(stream []byte) (m Message, rest []byte, end, marked bool, err error) {
	if len(stream) == 0 {
		return m, nil, true, false, nil
	}
	if len(stream) < prefixSize {
		return m, nil, false, false, Errorf(Truncated, "%d bytes where a message prefix has %d", len(stream),
			prefixSize)
	}
	if binary.LittleEndian.Uint32(stream) != continuation { // as text: who sends JSON knows it again
		return m, nil, false, false, Errorf(NotArrow,
			`message begins with %+q, an Arrow IPC stream with "\xff\xff\xff\xff"`, stream[:4])
	}
	size := int64(binary.LittleEndian.Uint32(stream[4:]))
	rest = stream[prefixSize:]
	if size == 0 {
		return m, rest, true, true, nil
	}
	if size > int64(len(rest)) {
		return m, nil, false, false, Errorf(Truncated, "metadata of %d bytes, %d remain", size, len(rest))
	}
	if size > maxMetadata {
		return m, nil, false, false, Errorf(TooLarge, "metadata of %d bytes, at most %d", size, maxMetadata)
	}
	m.Meta = rest[:size:size]
	rest = rest[size:]
	body, err := m.parse()
	if err != nil {
		return m, nil, false, false, err
	}
	if body > int64(len(rest)) {
		return m, nil, false, false, Errorf(Truncated, "body of %d bytes, %d remain", body, len(rest))
	}
	m.Body = rest[:body:body]
	return m, rest[body:], false, false, nil
}

// parse reads the Message table and returns the body length.
func (m *Message) parse() (int64, error) {
	f := fb{b: m.Meta}
	root := f.root()
	version := f.int16Field(root, 0, 0)
	m.Header = Header(f.byteField(root, 1))
	m.pos = f.tableField(root, 2)
	body := f.int64Field(root, 3)
	if f.bad || m.pos == 0 {
		return 0, Errorf(NotArrow, "message metadata is no valid flatbuffer")
	}
	if version != version4 && version != version5 {
		return 0, Errorf(NotArrow, "metadata version V%d, V4 and V5 are known", int(version)+1)
	}
	m.Version5 = version == version5
	if m.Header < HeaderSchema || m.Header > HeaderBatch {
		return 0, Errorf(NotArrow, "message header %d, a stream has schema (1), dictionary (2) and record batch (3)",
			m.Header)
	}
	if body < 0 {
		return 0, Errorf(NotArrow, "body length %d", body)
	}
	return body, nil
}
