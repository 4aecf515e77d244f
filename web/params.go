package web

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline/plumbline/pipeline/record"
)

// maxLimit is the largest value of the parameter limit.
const maxLimit = 10000

// params reads query parameters; the first error stays in err.
type params struct {
	q   url.Values
	err error
}

// parse checks that the query is well formed and has only known parameters, each once.
func parse(rawQuery string, known ...string) *params {
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return &params{err: fmt.Errorf("query %q: %w", rawQuery, err)}
	}
	p := &params{q: q}
	for _, name := range sortedKeys(q) {
		if !slices.Contains(known, name) {
			p.fail("unknown parameter %q; allowed: %s", name, strings.Join(known, ", "))
		} else if len(q[name]) > 1 {
			p.fail("parameter %q is given %d times; once is allowed", name, len(q[name]))
		}
	}
	return p
}

func sortedKeys(q url.Values) []string {
	keys := make([]string, 0, len(q))
	for k := range q {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// text returns the parameter, or "" where it is absent.
func (p *params) text(name string) string { return p.q.Get(name) }

// required is text, but an error where it is absent or blank.
func (p *params) required(name string) string {
	v := p.q.Get(name)
	if strings.TrimSpace(v) == "" {
		p.fail("parameter %q is required", name)
	}
	return v
}

// limit returns the parameter limit, or def where it is absent.
func (p *params) limit(def int) int {
	if !p.q.Has("limit") {
		return def
	}
	n, err := strconv.Atoi(p.q.Get("limit"))
	if err != nil || n < 1 || n > maxLimit {
		p.fail("limit %q: must be a whole number from 1 to %d", p.q.Get("limit"), maxLimit)
	}
	return n
}

// whole returns the parameter, which must be a whole number from 1; 0 where it is absent.
func (p *params) whole(name string) int {
	text := p.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		p.fail("%s: %q, must be a whole number from 1", name, text)
	}
	return n
}

// oneOf returns the parameter, which must be one of allowed; the first of them where it is absent.
func (p *params) oneOf(name string, allowed ...string) string {
	if !p.q.Has(name) {
		return allowed[0]
	}
	v := p.q.Get(name)
	if !slices.Contains(allowed, v) {
		p.fail("%s %q: must be one of %s", name, v, strings.Join(allowed, ", "))
	}
	return v
}

// time returns the parameter in Unix nanoseconds; ok is false where it is absent.
func (p *params) time(name string) (t int64, ok bool) {
	if !p.q.Has(name) {
		return 0, false
	}
	v, err := time.Parse(time.RFC3339Nano, p.q.Get(name))
	if err != nil {
		p.fail("%s %q: must be an RFC 3339 time such as 2024-03-05T12:00:00Z", name, p.q.Get(name))
		return 0, false
	}
	return record.Nearest(v), true
}
