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

// newPaneBlock packs panes: of each varint end less that of the one before, uvarint rows, its bins, and a byte that is
// 1 if the calibrated bins and rows are the raw ones and absent.
func newPaneBlock(panes []paneBins) paneBlock {
	b := paneBlock{data: make([]byte, 0, 64*len(panes))}
	before := int64(0)
	for _, p := range panes {
		same := p.rawN == p.calN && bytes.Equal(p.raw, p.cal)
		b.data = binenc.AppendVarint(b.data, p.end-before)
		b.data = binenc.AppendBytes(binenc.AppendVarint(b.data, p.rawN), p.raw)
		if b.data = append(b.data, binenc.Flags(same)); !same {
			b.data = binenc.AppendBytes(binenc.AppendVarint(b.data, p.calN), p.cal)
		}
		before = p.end
		b.rawN, b.calN = b.rawN+p.rawN, b.calN+p.calN
	}
	b.data = bytes.Clone(b.data)
	return b
}

// panes returns the panes that are not forgotten, their bins in the memory of the block.
func (b *paneBlock) panes() []paneBins {
	r, panes, end := binenc.NewReader(b.data), make([]paneBins, 0, panesOfBlock), int64(0)
	for r.Len() > 0 {
		end += r.Varint()
		p := paneBins{end: end, rawN: r.Varint(), raw: r.Bytes(binenc.MaxBytes)}
		if p.calN, p.cal = p.rawN, p.raw; r.Byte() == 0 {
			p.calN, p.cal = r.Varint(), r.Bytes(binenc.MaxBytes)
		}
		panes = append(panes, p)
	}
	return panes[b.forgotten:]
}

// skip forgets n panes more.
func (b *paneBlock) skip(n int) {
	for _, p := range b.panes()[:n] {
		b.rawN, b.calN = b.rawN-p.rawN, b.calN-p.calN
	}
	b.forgotten += n
}
