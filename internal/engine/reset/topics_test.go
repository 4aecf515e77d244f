package reset

import (
	"strings"
	"testing"

	"github.com/plumbline/plumbline/internal/config"
	"github.com/plumbline/plumbline/pipeline"
)

// TestStateElsewhere: the error of a state that is not there names first what loses nothing: a second process with a
// directory of its own does not have the state of the first.
func TestStateElsewhere(t *testing.T) {
	for store, want := range map[string]bool{"directory": true, pipeline.StoreTopic: false} {
		var cfg config.Config
		cfg.Checkpoints.Store = store
		err := Topics{Config: cfg}.gone("shards", 3, "its group has read z up to offset 8")
		if got := strings.Contains(err.Error(), "all need one directory that they share"); got != want {
			t.Errorf("%s: %v", store, err)
		}
	}
}
