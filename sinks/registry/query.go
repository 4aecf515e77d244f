package registry

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/pipeline"
)

// Query asks for entries of a model.
type Query struct {
	Model   string
	Version string   // "" = any
	Kinds   []string // none = any
	// Since and Until bound the time in Unix nanoseconds, Until excluded; nil = no bound.
	Since, Until *int64
	Limit        int    // entries a page; 0 = 100
	Cursor       string // Page.Next of the page before; "" = the newest
	Records      bool   // with Entry.Record
}

// Page is a part of the answer, newest first.
type Page struct {
	Entries []Entry
	// Next is the cursor of the next page; "" = this is the last. Pages that are asked for later show no entry twice, and none that
	// came meanwhile.
	Next string
}

// ErrCursor says that a cursor is none that a Page had.
var ErrCursor = errors.New("cursor: must be one that an answer had as next")

// pageBytes is how many bytes of records a page has at most, but for a single one: calibrators of many classes are large.
const pageBytes = 16 << 20

// position is the place of an entry in the order of answers.
type position struct {
	at, seq int64
	id      string
}

func (p position) String() string {
	return strconv.FormatInt(p.at, 10) + "." + strconv.FormatInt(p.seq, 10) + "." + p.id
}

func parsePosition(s string) (p position, err error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return p, ErrCursor
	}
	p.id = parts[2]
	var errs [3]error
	p.at, errs[0] = strconv.ParseInt(parts[0], 10, 64)
	p.seq, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	_, errs[2] = hex.DecodeString(p.id)
	if errors.Join(errs[:]...) != nil {
		return p, ErrCursor
	}
	return p, nil
}

// Query returns one page of entries, newest first; entries of one moment in the reverse of the order in which they were decided.
func (s *Store) Query(ctx context.Context, q Query) (Page, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = 100
	}
	statement, args, err := q.statement(limit + 1)
	if err != nil {
		return Page{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, read, err := s.open(ctx)
	if err != nil {
		return Page{}, err
	}
	rows, err := read.QueryContext(ctx, s.d.bind(statement), args...)
	if err != nil {
		return Page{}, s.fail("history: read", err)
	}
	defer func() { _ = rows.Close() }()
	page, err := readPage(rows, limit)
	if err != nil {
		return Page{}, s.fail("history: read", err)
	}
	return page, nil
}

// statement is the query for so many rows.
func (q *Query) statement(rows int) (string, []any, error) {
	record := "''"
	if q.Records {
		record = "record"
	}
	text := `SELECT id, kind, model, version, slice, at, seq, state, summary, who, why, revision, ` + record + ` FROM plumbline_entries WHERE model = ?`
	args := []any{short(clean(q.Model))}
	and := func(condition string, values ...any) {
		text += " AND " + condition
		args = append(args, values...)
	}
	if q.Version != "" {
		and("version = ?", clean(q.Version))
	}
	if len(q.Kinds) > 0 {
		kinds := make([]any, len(q.Kinds))
		for i, k := range q.Kinds {
			kinds[i] = clean(k)
		}
		and("kind IN (?"+strings.Repeat(", ?", len(kinds)-1)+")", kinds...)
	}
	if q.Since != nil {
		and("at >= ?", *q.Since)
	}
	if q.Until != nil {
		and("at < ?", *q.Until)
	}
	if q.Cursor != "" {
		p, err := parsePosition(q.Cursor)
		if err != nil {
			return "", nil, err
		}
		and("(at, seq, id) < (?, ?, ?)", p.at, p.seq, p.id)
	}
	return text + " ORDER BY at DESC, seq DESC, id DESC LIMIT " + strconv.Itoa(rows), args, nil
}

// readPage reads at most limit rows, fewer where their records are large; a row more says that there is another page.
func readPage(rows *sql.Rows, limit int) (Page, error) {
	page, bytes := Page{Entries: []Entry{}}, 0
	for rows.Next() {
		var e Entry
		var record string
		if err := rows.Scan(&e.ID, &e.Kind, &e.Model, &e.Version, &e.Slice, &e.at, &e.seq, &e.State, &e.Summary, &e.By, &e.Why, &e.revision, &record); err != nil {
			return page, err
		}
		bytes += len(record)
		if n := len(page.Entries); n == limit || n > 0 && bytes > pageBytes {
			last := &page.Entries[n-1]
			page.Next = position{last.at, last.seq, last.ID}.String()
			break
		}
		e.At = pipeline.Format(e.at)
		if record != "" {
			e.Record = []byte(record)
		}
		page.Entries = append(page.Entries, e)
	}
	if err := rows.Err(); err != nil {
		return page, fmt.Errorf("rows: %w", err)
	}
	return page, nil
}
