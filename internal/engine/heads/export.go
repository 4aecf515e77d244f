package heads

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/service"
)

// Export writes a head as head.safetensors and head.onnx: from its record, or from its artefacts where the record has
// only their hashes.
func (t *State) Export(id, dir string) error {
	result := t.Result(id)
	if result == nil || result.Outcome != record.OutcomeTrained {
		return fmt.Errorf("%s: there is no such trained head", id)
	}
	h, err := service.Weights(*result)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: its weights are not in its record, and not where its trainer wrote them, "+
			"which must be storage that this machine has: %w", id, err)
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	meta := map[string]string{"plumbline.head": id, "plumbline.why": result.Why}
	var tensors strings.Builder
	if err := artefact.WriteSafetensors(&tensors, h, meta); err != nil {
		return err
	}
	const temperature = 1 // it is in the weights
	model, err := artefact.ONNX(h, temperature, meta)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, service.FileHead), []byte(tensors.String()), 0o644),
		os.WriteFile(filepath.Join(dir, service.FileONNX), model, 0o644),
	)
}
