//go:build linux

package standalone

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFullDisk: a disk that is full refuses rows, and what was acknowledged before is counted; with room again the
// process goes on by itself.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for requests that are refused after some seconds")
	}
	disk := filepath.Join(t.TempDir())
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=12m", "none", disk).CombinedOutput(); err != nil {
		t.Skipf("a disk of its own cannot be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
	p := newProcess(t, filepath.Join(disk, "plumbline"))
	p.start()
	p.await(0)
	const per = 2000
	batches, refused := 0, ""
	for ; batches < 200 && refused == ""; batches++ {
		predictions, labels := rows(batches*per, per)
		predictions = strings.ReplaceAll(predictions, `"probs"`, `"features":[`+
			strings.TrimSuffix(strings.Repeat("0.123,", 50), ",")+`],"probs"`)
		code, err := p.post("predictions", predictions)
		if code != http.StatusOK {
			refused = fmt.Sprint(err)
			if out, err := exec.Command("mount", "-o", "remount,size=200m", disk).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			for code != http.StatusOK {
				code, _ = p.post("predictions", predictions)
			}
		}
		for code = 0; code != http.StatusOK; {
			if code, err = p.post("labels", labels); code != http.StatusOK && refused == "" {
				refused = fmt.Sprint(err)
				_ = exec.Command("mount", "-o", "remount,size=200m", disk).Run()
			}
		}
	}
	if !strings.HasPrefix(refused, "503 ") {
		t.Errorf("the full disk's answer: %q", refused)
	}
	t.Logf("%d rows, then: %s", batches*per, bytes.TrimSpace([]byte(refused)))
	p.await(int64(batches * per))
}
