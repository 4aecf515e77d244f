package registry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Search asks for entries of a model.
type Search struct {
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
	// Next is the cursor of the next page; "" = this is the last. Pages that are asked for later show no entry twice,
	// and none that came meanwhile.
	Next string
}

// ErrCursor says that a cursor is none that a Page had.
var ErrCursor = errors.New("cursor: must be one that an answer had as next")

// pageBytes is how many bytes of records a page has at most, but for a single one: calibrators of many classes are
// large.
const pageBytes = 16 << 20

// maxRecord is the largest record that is read from a server: no message is larger.
const maxRecord = 64 << 20

// filter is what a Query selects, and what the store asks itself. Names are as the columns have them.
type filter struct {
	Search           // without Limit and Cursor
	before *position // entries before it only; nil = all
	// decisive: only entries that may say what is in force (Entry.decisive).
	decisive bool
	revision int64 // of a calibrator; 0 = any
	skip     int64 // newest entries that are left out
	limit    int   // 0 = no bound
}

// matches reports whether an entry is selected, as far as bounds of time and number are not concerned.
func (f *filter) matches(e *Entry) bool {
	return (f.Version == "" || e.Version == f.Version) && (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		(f.revision == 0 || e.Kind == record.DecisionCalibrator && e.revision == f.revision)
}

// position is the place of an entry in the order of answers.
type position struct {
	at, seq int64
	id      string
}

func (p position) String() string {
	return strconv.FormatInt(p.at, 10) + "." + strconv.FormatInt(p.seq, 10) + "." + p.id
}

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq), cmp.Compare(p.id, q.id))
}

func parsePosition(s string) (*position, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return nil, ErrCursor
	}
	p := position{id: parts[2]}
	var errs [3]error
	p.at, errs[0] = strconv.ParseInt(parts[0], 10, 64)
	p.seq, errs[1] = strconv.ParseInt(parts[1], 10, 64)
	_, errs[2] = hex.DecodeString(p.id)
	if errors.Join(errs[:]...) != nil {
		return nil, ErrCursor
	}
	return &p, nil
}

// Query returns one page of entries, newest first; entries of one moment in the reverse of the order in which they were
// decided.
func (s *Store) Query(ctx context.Context, q Search) (Page, error) {
	f := filter{Search: q}
	f.Model, f.Version, f.Kinds = short(clean(q.Model)), clean(q.Version), slices.Clone(q.Kinds)
	for i := range f.Kinds {
		f.Kinds[i] = clean(f.Kinds[i])
	}
	if q.Cursor != "" {
		var err error
		if f.before, err = parsePosition(q.Cursor); err != nil {
			return Page{}, err
		}
	}
	limit := cmp.Or(max(q.Limit, 0), 100)
	f.limit = limit + 1
	var page Page
	err := s.view(ctx, "read", func(r reader) error {
		page = Page{Entries: []Entry{}}
		bytes := 0
		return r.entries(&f, func(e *Entry) bool {
			bytes += len(e.Record)
			if n := len(page.Entries); n == limit || n > 0 && bytes > pageBytes {
				page.Next = page.Entries[n-1].rank().String()
				return false
			}
			page.Entries = append(page.Entries, *e)
			return true
		})
	})
	if err != nil {
		return Page{}, err
	}
	return page, nil
}

// Published returns the newest record that put a revision of a model version in force, or wrote it again with a pin: a
// record.Calibrator with the calibrator in it. ok is false where the database has none.
func (s *Store) Published(ctx context.Context, model, version string, revision int) (body []byte, ok bool, err error) {
	if revision <= 0 {
		return nil, false, nil
	}
	f := filter{Search: Search{Model: short(clean(model)), Version: clean(version), Records: true}, decisive: true,
		revision: int64(revision), limit: 1}
	err = s.view(ctx, "read", func(r reader) error {
		return r.entries(&f, func(e *Entry) bool {
			body, ok = e.Record, len(e.Record) > 0
			return false
		})
	})
	return body, ok, err
}

// Revisions are those of a model version that Published has, ascending.
func (s *Store) Revisions(ctx context.Context, model, version string) ([]int, error) {
	f := filter{Search: Search{Model: short(clean(model)), Version: clean(version),
		Kinds: []string{record.DecisionCalibrator}}, decisive: true}
	return distinct(ctx, s, &f, func(e *Entry) (int, bool) { return int(e.revision), e.revision > 0 })
}

// Versions are the versions of a model that have entries about calibrators, sorted.
func (s *Store) Versions(ctx context.Context, model string) ([]string, error) {
	f := filter{Search: Search{Model: short(clean(model)), Kinds: []string{record.DecisionCalibrator}}}
	return distinct(ctx, s, &f, func(e *Entry) (string, bool) { return e.Version, e.State != record.DecidedRefused })
}

// distinct collects a value of the selected entries, each once, sorted.
func distinct[T cmp.Ordered](ctx context.Context, s *Store, f *filter, value func(*Entry) (T, bool)) ([]T, error) {
	var out []T
	err := s.view(ctx, "read", func(r reader) error {
		out = nil
		seen := map[T]bool{}
		return r.entries(f, func(e *Entry) bool {
			if v, ok := value(e); ok && !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
			return true
		})
	})
	slices.Sort(out)
	return out, err
}
