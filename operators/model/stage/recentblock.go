package stage

import (
	"bytes"

	"github.com/plumbline/plumbline/internal/binenc"
)

// panesOfBlock is how many panes a block has.
const panesOfBlock = 16

// paneBlock are neighbouring panes of a key in few bytes.
type paneBlock struct {
	data       []byte
	forgotten  int // panes at its front
	rawN, calN int64
}

// newPaneBlock packs panes: of each varint end less the one foretold, uvarint rows, its bins, and a byte that is 1 if
// the calibrated bins and rows are the raw ones and absent.
func newPaneBlock(panes []paneBins) paneBlock {
	b := paneBlock{data: make([]byte, 0, 64*len(panes))}
	var at paneTimes
	for _, p := range panes {
		same := p.rawN == p.calN && bytes.Equal(p.raw, p.cal)
		b.data = binenc.AppendVarint(b.data, p.end-at.foretold())
		b.data = binenc.AppendBytes(binenc.AppendVarint(b.data, p.rawN), p.raw)
		if b.data = append(b.data, binenc.Flags(same)); !same {
			b.data = binenc.AppendBytes(binenc.AppendVarint(b.data, p.calN), p.cal)
		}
		at.pass(p.end)
		b.rawN, b.calN = b.rawN+p.rawN, b.calN+p.calN
	}
	b.data = bytes.Clone(b.data)
	return b
}

// paneTimes foretells the end of a pane: as far from the last as that from the one before.
type paneTimes struct{ end, step int64 }

func (t *paneTimes) foretold() int64 { return t.end + t.step }

func (t *paneTimes) pass(end int64) {
	if t.end != 0 {
		t.step = end - t.end
	}
	t.end = end
}

// panes returns the panes that are not forgotten, their bins in the memory of the block.
func (b *paneBlock) panes() []paneBins { return b.all()[b.forgotten:] }

func (b *paneBlock) all() []paneBins {
	r, panes := binenc.NewReader(b.data), make([]paneBins, 0, panesOfBlock)
	var at paneTimes
	for r.Len() > 0 {
		at.pass(at.foretold() + r.Varint())
		p := paneBins{end: at.end, rawN: r.Varint(), raw: r.Bytes(binenc.MaxBytes)}
		if p.calN, p.cal = p.rawN, p.raw; r.Byte() == 0 {
			p.calN, p.cal = r.Varint(), r.Bytes(binenc.MaxBytes)
		}
		panes = append(panes, p)
	}
	return panes
}

// skip forgets n panes more.
func (b *paneBlock) skip(n int) {
	for _, p := range b.panes()[:n] {
		b.rawN, b.calN = b.rawN-p.rawN, b.calN-p.calN
	}
	b.forgotten += n
}
