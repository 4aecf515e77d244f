package parquet

import (
	"fmt"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
)

// chunk reads a column through all row groups.
type chunk struct {
	file   *File
	column *column
	group  int // the next row group
	pages  file.PageReader
	dict   *buffer
	page   page
	out    rows
}

// page is the data page that is being read.
type page struct {
	left          int // levels, or values where a column has none
	repeated, def hybrid
	ahead         int // the repetition level that is read already; -1 = none
	values        values
}

// nextPage goes to the next data page; it reports false at the end of the file.
func (c *chunk) nextPage() (bool, error) {
	for {
		if c.pages == nil {
			if c.group == c.file.r.NumRowGroups() {
				return false, nil
			}
			if err := c.nextGroup(); err != nil {
				return false, err
			}
		}
		if !c.pages.Next() {
			if err := c.pages.Err(); err != nil {
				return false, err
			}
			c.pages = nil
			continue
		}
		if ok, err := c.takePage(); ok || err != nil {
			return ok, err
		}
	}
}

// nextGroup goes to the column's chunk in the next row group.
func (c *chunk) nextGroup() error {
	rg := c.file.r.RowGroup(c.group)
	md, err := rg.MetaData().ColumnChunk(c.column.at)
	if err != nil {
		return err
	}
	if md.CryptoMetadata() != nil {
		return fmt.Errorf("row group %d is encrypted", c.group)
	}
	start, n := md.DataPageOffset(), md.TotalCompressedSize()
	if d := md.DictionaryPageOffset(); md.HasDictionaryPage() && d > 0 && d < start {
		start = d
	}
	if start < 0 || n < 0 || start > c.file.size || n > c.file.size-start {
		return fmt.Errorf("row group %d lies at %d with %d bytes in a file of %d", c.group, start, n, c.file.size)
	}
	in := newStream(c.file, start, n)
	c.pages, err = file.NewPageReader(in, md.NumValues(), md.Compression(), memory.DefaultAllocator, nil)
	if err != nil {
		return fmt.Errorf("row group %d: codec %d is not read: %w", c.group, int(md.Compression()), err)
	}
	c.pages.SetMaxPageHeaderSize(headerBytes)
	c.group++
	c.dict = nil
	return nil
}

// takePage begins to read the page; it reports false where that has no rows.
func (c *chunk) takePage() (bool, error) {
	p := c.pages.Page()
	c.page = page{left: int(p.NumValues()), ahead: -1}
	var err error
	switch p := p.(type) {
	case *file.DictionaryPage:
		c.dict = &buffer{width: c.column.width(), file: c.file}
		return false, (&plain{p.Data()}).append(c.dict, int(p.NumValues()))
	case *file.DataPageV1:
		err = c.levelsV1(p)
	case *file.DataPageV2:
		err = c.levelsV2(p)
	default:
		return false, nil
	}
	return c.page.left > 0, err
}

// bits is how many bits the levels up to most have.
func bits(most int16) int {
	n := 0
	for ; most > 0; most >>= 1 {
		n++
	}
	return n
}

// levelsV1 splits the body of a page: repetition levels, definition levels, values.
func (c *chunk) levelsV1(p *file.DataPageV1) error {
	body := p.Data()
	for _, l := range []struct {
		to   *hybrid
		most int16
		e    parquet.Encoding
	}{
		{&c.page.repeated, c.column.repeated, p.RepetitionLevelEncoding()},
		{&c.page.def, c.column.full, p.DefinitionLevelEncoding()},
	} {
		if l.most == 0 {
			continue
		}
		if l.e != parquet.Encodings.RLE {
			return fmt.Errorf("levels in the encoding %s are not read", l.e)
		}
		head, rest, err := prefixed(body)
		if err != nil {
			return err
		}
		if *l.to, err = newHybrid(head, bits(l.most)); err != nil {
			return err
		}
		body = rest
	}
	return c.takeValues(parquet.Encoding(p.Encoding()), body)
}

func (c *chunk) levelsV2(p *file.DataPageV2) (err error) {
	body := p.Data()
	nr, nd := int64(p.RepetitionLevelByteLen()), int64(p.DefinitionLevelByteLen())
	if nr < 0 || nd < 0 || nr+nd > int64(len(body)) {
		return errShort
	}
	if c.page.repeated, err = newHybrid(body[:nr], bits(c.column.repeated)); err != nil {
		return err
	}
	if c.page.def, err = newHybrid(body[nr:nr+nd], bits(c.column.full)); err != nil {
		return err
	}
	return c.takeValues(parquet.Encoding(p.Encoding()), body[nr+nd:])
}

func (c *chunk) takeValues(e parquet.Encoding, body []byte) (err error) {
	c.out.values.width, c.out.values.file = c.column.width(), c.file
	c.page.values, err = newValues(e, body, c.column.kind, &c.out.values, c.dict)
	return err
}
