package heads

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/operators/proving"
	"github.com/plumbline/plumbline/operators/shadow"
	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/head"
	"github.com/plumbline/plumbline/trainer/service"
)

// TestHeadWhoseFileComesLater: shards run a head also where its file could not be read when its record came. A file
// that is another one is not tried again.
func TestHeadWhoseFileComesLater(t *testing.T) {
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, head.FreshLinear(2, 2, 1), nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		content []byte
		runs    bool
	}{"the file": {b.Bytes(), true}, "another": {[]byte("another"), false}} {
		t.Run(name, func(t *testing.T) {
			running := shadow.NewHeads(proving.Config{Max: 1})
			s := New(running, slog.New(slog.DiscardHandler))
			path := filepath.Join(t.TempDir(), service.FileHead)
			sum := sha256.Sum256(b.Bytes())
			m := arrowio.ModelKey{Model: "m", Version: "1"}
			r := &record.Head{Schema: 1, Kind: record.HeadTrained, ID: "m/1+head1", Model: m.Model, Version: m.Version,
				Number: 1, ShadowVersion: "1+head1", Attempt: 1, Trainer: "a", Outcome: record.OutcomeTrained,
				EffectiveFrom: record.At(1e18), Features: 2, Classes: 2,
				Artefacts: []record.Artefact{{Name: service.FileHead, Path: path, Bytes: int64(b.Len()),
					SHA256: hex.EncodeToString(sum[:])}}}
			if err := s.Record(r); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("a head without its file: %v", err)
			}
			if err := os.WriteFile(path, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			s.again()
			if got := running.Has(m, 1); got != c.runs {
				t.Errorf("runs: %t, want %t", got, c.runs)
			}
			if len(s.unread) > 0 {
				t.Errorf("still to be read: %v", s.unread)
			}
		})
	}
}
