package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/cli"
	"github.com/plumbline/plumbline/internal/faultlog"
)

// TestLogFormat: of both formats the lines say the same.
func TestLogFormat(t *testing.T) {
	lines := func(format string) []string {
		var b bytes.Buffer
		log, err := cli.NewLogger(&b, "Info", format)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("nobody sees it")
		log.Info("begun", "task", "shard-00001", "rows", 7)
		log.Warn("no answer", faultlog.Err(errors.New("line 1\nline \"2\"")))
		return strings.Split(strings.TrimSpace(b.String()), "\n")
	}
	text, objects := lines("text"), lines("json")
	if len(text) != 2 || len(objects) != 2 {
		t.Fatalf("%d lines of text, %d of JSON; want 2", len(text), len(objects))
	}
	for i, line := range objects {
		var l struct{ Time, Level, Msg, Err string }
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time == "" || l.Msg == "" ||
			!strings.Contains(text[i], "level="+l.Level) || !strings.Contains(text[i], l.Msg) ||
			!strings.Contains(text[i], strings.Trim(strconv.Quote(l.Err), `"`)) {
			t.Errorf("line %d: %v\n%s\n%s", i, err, line, text[i])
		}
	}
	for _, bad := range [][2]string{{"loud", "text"}, {"info", "xml"}} {
		if _, err := cli.NewLogger(&bytes.Buffer{}, bad[0], bad[1]); err == nil {
			t.Errorf("level %s, format %s: no error", bad[0], bad[1])
		}
	}
}
