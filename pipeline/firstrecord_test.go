package pipeline

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

// TestFirstRecordIsNoPause: what the log names as the first record is one, and no notice of the source.
func TestFirstRecordIsNoPause(t *testing.T) {
	var out strings.Builder
	from := &noticeSource{{Paused: true}, {Idle: true}, {Topic: "logits", Offset: 7, Time: 1},
		{Topic: "logits", Offset: 8}}
	f := &firstRecord{Source: from, name: "shard-0", log: slog.New(slog.NewTextHandler(&out, nil))}
	for range 4 {
		if _, err := f.Next(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); strings.Count(got, "first record") != 1 || !strings.Contains(got, "topic=logits offset=7") {
		t.Errorf("got %q", got)
	}
}

type noticeSource []Record

func (s *noticeSource) Next(context.Context) (Record, error) {
	r := (*s)[0]
	*s = (*s)[1:]
	return r, nil
}

func (s *noticeSource) Commit(context.Context, map[Input]int64) error { return nil }
func (s *noticeSource) CaughtUp() bool                                { return false }
func (s *noticeSource) Close() error                                  { return nil }
