//go:build integration

package integration

import (
	"errors"
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
	if err := mountSmall(t, o.state); err != nil {
		t.Logf("no small file system can be mounted (%v): a directory that is none takes its place", err)
		fill, free = hideDirectory, showDirectory
	}
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i := range 2 {
			s.progress(t, d, 0.2+0.4*float64(i))
			before := d.logged("save checkpoint")
			fill(t, o.state)
			t.Logf("full at %d rows", p.rows.Load())
			time.Sleep(8 * time.Second)
			free(t, o.state)
			t.Logf("free at %d rows", p.rows.Load())
			if d.logged("save checkpoint") == before {
				t.Error("no log line tells that a checkpoint could not be saved: the test did not test it")
			}
		}
	})
}

// mountSmall mounts a file system of 64 MB until the test ends.
func mountSmall(t *testing.T, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", dir).CombinedOutput()
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

// damagedCheckpoint stops all processes, flips bytes in the newest checkpoint of every task, and starts them again:
// they fall back to the one before and read the stream again from there.
func (s *suite) damagedCheckpoint(t *testing.T) {
	d := s.deploy(t, s.options())
	s.disturbed(t, d, func(p *producer) {
		for i := range 2 {
			s.progress(t, d, 0.3+0.3*float64(i))
			for _, w := range d.workers {
				if i == 0 {
					w.stop()
				} else {
					w.kill()
				}
			}
			damaged := 0
			for _, files := range d.checkpoints() {
				if len(files) < 2 {
					continue // there is none to fall back to
				}
				s.flip(t, files[0])
				damaged++
			}
			before := d.logged("checkpoint cannot be used, trying the one before")
			d.start()
			d.ready(2 * time.Minute)
			n := d.logged("checkpoint cannot be used, trying the one before") - before
			t.Logf("%d checkpoints damaged at %d rows, %d times the one before was taken", damaged, p.rows.Load(), n)
			if damaged == 0 || n < damaged {
				t.Errorf("%d checkpoints were damaged, and %d log lines tell that one could not be used", damaged, n)
			}
		}
	})
}

// flip changes one byte of a file somewhere.
func (s *suite) flip(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[s.random.IntN(len(b))] ^= 1 << s.random.IntN(8)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
