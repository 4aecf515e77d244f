//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// fullDisk fills the file system under the checkpoints for a while. Where none can be mounted, a plain file takes the
// directory's place: no write succeeds there either.
func (s *suite) fullDisk(t *testing.T) {
	o := s.options()
	o.state = filepath.Join(t.TempDir(), "disk")
	fill, free := fillDisk, freeDisk
	if err := mountSmall(t, o.state, 64+s.input.rows/1600); err != nil {
		t.Logf("no small file system can be mounted (%v): a directory that is none takes its place", err)
		fill, free = hideDirectory, showDirectory
	}
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i := range 2 {
			s.progress(t, d, 0.2+0.4*float64(i))
			fill(t, o.state)
			d.did("full disk under checkpoints and join for 8s")
			time.Sleep(8 * time.Second)
			failing := d.failing()
			free(t, o.state)
			if failing == 0 {
				t.Error("no task fails on the full disk: the test did not test it")
			}
		}
	})
}

// failing is how many tasks fail, by what their processes say.
func (d *deployment) failing() (n int) {
	for _, w := range d.workers {
		if st, err := w.status(); err == nil {
			n += len(st.Failing)
		}
	}
	return n
}

// mountSmall mounts a file system of that size until the test ends.
func mountSmall(t *testing.T, dir string, megabytes int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", megabytes), "tmpfs",
		dir).CombinedOutput()
	if err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return nil
}

const ballast = "ballast"

// fillDisk leaves not a byte.
func fillDisk(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, ballast))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		n, err := f.Write(block)
		switch {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:min(len(block)-1, n+len(block)/2)]
		case err != nil:
			t.Fatal(err)
		}
	}
}

func freeDisk(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, ballast)); err != nil {
		t.Fatal(err)
	}
}

func hideDirectory(t *testing.T, dir string) {
	t.Helper()
	if err := os.Rename(dir, dir+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func showDirectory(t *testing.T, dir string) {
	t.Helper()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".aside", dir); err != nil {
		t.Fatal(err)
	}
}
