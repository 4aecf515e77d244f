package pipeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/plumbline/plumbline/internal/binenc"
)

// CheckpointInfo is the part of a checkpoint that can be read without its configuration.
type CheckpointInfo struct {
	Bytes    int           `json:"bytes"`
	Sections []SectionInfo `json:"sections"`
	Files    []FileInfo    `json:"files,omitempty"` // that it refers to
	// By input, the first offset not yet read (-1 = the log's start). Shards only: the watermark, and the pane messages
	// that are written again after a restart.
	Offsets   map[string]int64 `json:"offsets,omitempty"`
	Watermark string           `json:"watermark,omitempty"`
	Outbox    []PaneInfo       `json:"outbox,omitempty"`
	Counts    map[string]int64 `json:"counts,omitempty"`
}

// SectionInfo is one section; its CRC has been checked.
type SectionInfo struct {
	Name    string `json:"name"`
	Version int    `json:"version"`
	Bytes   int    `json:"bytes"`
}

// FileInfo is a file that a checkpoint refers to.
type FileInfo struct {
	Name  string `json:"name"` // by its bytes
	Bytes int64  `json:"bytes"`
}

// PaneInfo is the head of a pane message.
type PaneInfo struct {
	Shard     int    `json:"shard"`
	Of        int    `json:"of"`
	Partition int32  `json:"partition"` // of the panes topic, in an outbox
	Seq       uint64 `json:"seq"`
	// A punctuation: the first label pane that is still open.
	Closed string `json:"closed,omitempty"`
	Idle   bool   `json:"idle,omitempty"`
	// An increment.
	Model     string `json:"model,omitempty"`
	LabelPane string `json:"label_pane,omitempty"`
	Late      bool   `json:"late,omitempty"`
	Cells     int    `json:"cells,omitempty"`
}

// Info sums up a pane message; panes are named by the time at which they begin.
func (m *PaneMessage) Info() PaneInfo {
	i := PaneInfo{Shard: m.Shard, Of: m.Of, Seq: m.Seq, Idle: m.Idle}
	if m.Punctuation {
		i.Closed = Format(m.Closed * m.Length)
		return i
	}
	i.Model, i.LabelPane, i.Late, i.Cells = m.Model, Format(m.LabelPane*m.Length), m.Late, len(m.Cells)
	return i
}

// InspectCheckpoint reads a checkpoint of any task; the error wraps ErrCheckpoint where it is damaged.
func InspectCheckpoint(data []byte) (*CheckpointInfo, error) {
	c, err := parseCheckpoint(data)
	if err != nil {
		return nil, err
	}
	info := &CheckpointInfo{Bytes: len(data)}
	for _, f := range c.files {
		info.Files = append(info.Files, FileInfo{f.Name, f.Bytes})
	}
	for name, stored := range c.sections {
		info.Sections = append(info.Sections, SectionInfo{name, int(stored.version), len(stored.body)})
		if err := info.section(name, stored.body); err != nil {
			return nil, fmt.Errorf("%w: section %s: %w", ErrCheckpoint, name, err)
		}
	}
	slices.SortFunc(info.Sections, func(a, b SectionInfo) int { return cmp.Compare(a.Name, b.Name) })
	return info, nil
}

func (info *CheckpointInfo) section(name string, body []byte) error {
	switch name {
	case "offsets":
		r := binenc.NewReader(body)
		info.Offsets = map[string]int64{}
		for i := range r.Count(1, len(inputNames)) {
			info.Offsets[Input(i).String()] = r.Varint()
		}
		return r.Err()
	case "watermark":
		w := NewWatermark(0, 0)
		if err := w.RestoreState(body); err != nil {
			return err
		}
		if w.now != NoTime {
			info.Watermark = Format(w.now)
		}
	case "counts":
		c := NewCounts()
		if err := c.RestoreState(body); err != nil {
			return err
		}
		info.Counts = c.All()
	case "model":
		r := binenc.NewReader(body)
		info.Offsets = map[string]int64{Panes.String(): r.Varint()}
		return r.Err()
	case "outbox":
		return info.outbox(body)
	}
	return nil
}

func (info *CheckpointInfo) outbox(body []byte) error {
	o := Outbox{}
	if err := o.restore(body); err != nil {
		return err
	}
	for _, m := range o.pending {
		p, err := DecodePane(m.Value)
		if err != nil {
			return err
		}
		i := p.Info()
		i.Partition = m.Partition
		info.Outbox = append(info.Outbox, i)
	}
	return nil
}
