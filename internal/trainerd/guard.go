package trainerd

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/plumbline/plumbline/internal/filelock"
	"github.com/plumbline/plumbline/trainer/backend/cuda"
	"github.com/plumbline/plumbline/trainer/service"
)

// GuardCommand is how this program starts itself as a guard.
func GuardCommand(grace time.Duration) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("trainer.command: %w", err)
	}
	return []string{exe, "trainer", "guard", grace.String()}, nil
}

// lockDevice refuses a second trainer on a device of this machine, where the recipes are to run on one and it is there:
// two trainings would share its memory and each take twice as long.
func lockDevice(t service.Config, dir string, log *slog.Logger) (free func(), err error) {
	none := func() {}
	if len(t.Command) > 0 || t.Backend == "go" || t.Backend == "gorgonia" {
		return none, nil
	}
	if _, err := (&cuda.Backend{Device: t.Device}).Describe(); err != nil {
		return none, nil //nolint:nilerr // the backend says so when it falls back
	}
	return lockDeviceFile(t.Device, dir, log)
}

func lockDeviceFile(device int, dir string, log *slog.Logger) (free func(), err error) {
	file := filepath.Join(dir, fmt.Sprintf("plumbline-device-%d.lock", device))
	f, err := filelock.Open(file)
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("trainer.device %d: another trainer of this machine has it (%s is held); "+
			"give each device one trainer", device, file)
	case err != nil:
		log.Warn("whether another trainer has the device is not known", "device", device, "err", err)
		return func() {}, nil
	}
	return func() { _ = f.Close() }, nil
}
