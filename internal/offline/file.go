package offline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/plumbline/plumbline/calib/calibrator"
)

// ReadCalibrator reads a file that `plumbline fit` wrote, or a record that contains a calibrator: an answer of the API,
// or a record of the calibrators topic.
func ReadCalibrator(file string) (calibrator.Calibrator, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err // the error names the file
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // editors on Windows begin with it
	var record struct {
		Calibrator json.RawMessage `json:"calibrator"` // no calibrator has a key of this name
	}
	if json.Unmarshal(text, &record) == nil && record.Calibrator != nil {
		if text = record.Calibrator; string(text) == "null" {
			return nil, fmt.Errorf("read %s: the record has no calibrator: nothing was published by it", file)
		}
	}
	c, err := calibrator.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return c, nil
}

// CheckClasses refuses rows whose K differs from the calibrator's.
func CheckClasses(calFile string, c calibrator.Calibrator, file string, k int) error {
	if !calibrator.Fits(c, k) {
		return fmt.Errorf("%s is for %d classes, %s has %d", calFile, calibrator.ClassesOf(c), file, k)
	}
	return nil
}

// CheckFree refuses to overwrite an existing file unless force is true.
func CheckFree(flag, file string, force bool) error {
	if _, err := os.Lstat(file); err == nil && !force {
		return fmt.Errorf("%s %s: the file is there; --force replaces it", flag, file)
	}
	return nil
}

// ReplaceFile writes file completely or not at all. write creates it under a temporary name with the same extension.
func ReplaceFile(file string, force bool, write func(temporary string) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*"+filepath.Ext(file))
	if err != nil {
		return err
	}
	temporary := f.Name()
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := write(temporary); err != nil {
		return err
	}
	const mode = 0o644 // temporary files are readable by their owner only
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	if err := CheckFree("-o", file, force); err != nil { // the file may have been created meanwhile
		return err
	}
	return os.Rename(temporary, file)
}

// WriteCalibrator writes a file that ReadCalibrator reads.
func WriteCalibrator(file string, force bool, c calibrator.Calibrator) error {
	text, err := calibrator.Encode(c)
	if err != nil {
		return err
	}
	return ReplaceFile(file, force, func(temporary string) error {
		return os.WriteFile(temporary, append(text, '\n'), 0o600)
	})
}
