package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/plumbline/plumbline/arrowio"
	"github.com/plumbline/plumbline/arrowio/archivefile"
	"github.com/plumbline/plumbline/trainer/artefact"
	"github.com/plumbline/plumbline/trainer/dataset"
	"github.com/plumbline/plumbline/trainer/head"
)

// TestTrainMemory trains a head of 1,000 classes on 1 M rows of 2,048 float16 features, 4 GiB in an archive directory,
// for 200 mini-batches and more, with passes over 200,000 validation rows, in under 6 GiB resident.
func TestTrainMemory(t *testing.T) {
	if os.Getenv("PLUMBLINE_BIG") == "" {
		t.Skip("PLUMBLINE_BIG is not set: 4.3 GB of disk, minutes")
	}
	const n, d, k, batch, trained, limit = 1_000_000, 2048, 1000, 1024, 220_000, 6 << 30
	dir := t.TempDir()
	rows := n
	if v := os.Getenv("PLUMBLINE_TRAIN_ROWS"); v != "" {
		rows, _ = strconv.Atoi(v)
	}
	start := time.Now()
	writeBigArchive(t, filepath.Join(dir, "archive"), rows, d, k)
	t.Logf("%d rows of %d float16 features written in %s", rows, d, time.Since(start).Round(time.Second))
	binary := filepath.Join(dir, "plumbline")
	build := exec.Command("go", "build", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var b bytes.Buffer
	if err := artefact.WriteSafetensors(&b, head.FreshLinear(d, k, 1), nil); err != nil {
		t.Fatal(err)
	}
	headFile := filepath.Join(dir, "head.safetensors")
	if err := os.WriteFile(headFile, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	maxRows := trained
	if v := os.Getenv("PLUMBLINE_TRAIN_MAX_ROWS"); v != "" {
		maxRows, _ = strconv.Atoi(v)
	}
	cmd := exec.Command(binary, "train", filepath.Join(dir, "archive"), "--head", headFile, "--recipe", "ce",
		"--epochs", "1", "--batch", strconv.Itoa(batch),
		"--max-rows", strconv.Itoa(maxRows), "--backend", "go", "--json")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start = time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := make(chan map[string]int64, 1)
	go watchMemory(cmd.Process.Pid, peak)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var got struct {
		Rows         dataset.Rows
		TrainSeconds float64 `json:"train_seconds"`
		BLAS         string
		Validation   struct{ Before, After map[string]any }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	high := <-peak
	t.Logf("%d of %d rows in %d mini-batches, validation of %d rows: %.0f s of training, %s in all, "+
		"peak resident %.2f GiB (VmHWM; of it at the end: anonymous %.2f, files %.2f), NLL %v → %v, %s, GOMAXPROCS %d",
		got.Rows.Train, got.Rows.Rows, (got.Rows.Train+batch-1)/batch, got.Rows.Used.Validation, got.TrainSeconds,
		time.Since(start).Round(time.Second), gib(high["VmHWM"]), gib(high["RssAnon"]), gib(high["RssFile"]),
		got.Validation.Before["nll"], got.Validation.After["nll"], got.BLAS, runtime.GOMAXPROCS(0))
	if rows == n && (!got.Rows.Streamed || got.Rows.Train < 200*batch) {
		t.Errorf("rows %+v: want features that stay in files, and 200 mini-batches", got.Rows)
	}
	if high["VmHWM"] == 0 || high["VmHWM"] > limit {
		t.Errorf("peak of %d bytes, want less than %d", high["VmHWM"], limit)
	}
	if after, _ := got.Validation.After["nll"].(float64); !(after < got.Validation.Before["nll"].(float64)) {
		t.Errorf("it has not learnt: %v", got.Validation)
	}
}

func gib(n int64) float64 { return float64(n) / (1 << 30) }

// watchMemory reads what the kernel says about a process until it ends.
func watchMemory(pid int, peak chan<- map[string]int64) {
	high, tick := map[string]int64{}, time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			break
		}
		seen := false
		for in := bufio.NewScanner(f); in.Scan(); {
			name, rest, _ := strings.Cut(in.Text(), ":")
			if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil &&
				strings.HasSuffix(rest, "kB") {
				high[name], seen = max(high[name], kib<<10), true
			}
		}
		_ = f.Close()
		if !seen { // a zombie
			break
		}
	}
	peak <- high
}

// writeBigArchive writes archive files of rows whose labels a linear head can learn: the label's features are shifted.
func writeBigArchive(t *testing.T, dir string, n, d, k int) {
	t.Helper()
	const perBatch, perFile = 1000, 50_000
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	state := uint64(1)
	for from, seq := 0, uint64(0); from < n; from, seq = from+perFile, seq+1 {
		f := archivefile.File{Group: "big", Model: "m", Version: "1", Sequence: seq, K: k}
		segments := map[string][]byte{}
		for at := from; at < min(from+perFile, n); at += perBatch {
			r := archivefile.Rows{Model: "m", Version: "1", K: k, D: d, Half: true}
			for i := at; i < min(at+perBatch, n); i++ {
				label := int32(i * 7919 % k)
				r.Features = noise(r.Features, d, &state)
				for j := range 8 { // 1.0, where the noise is below 0.5
					o := len(r.Features) - 2*d + 2*((int(label)*131+j*257)%d)
					r.Features[o], r.Features[o+1] = 0x00, 0x3c
				}
				ts := int64(1_700_000_000_000_000_000) + int64(i)*1e6
				r.IDs, r.TS, r.LabelTS = append(r.IDs, arrowio.HashIntID(uint64(i))), append(r.TS, ts),
					append(r.LabelTS, ts+1e9)
				r.Label, r.Weight = append(r.Label, label), append(r.Weight, 1)
			}
			data, err := archivefile.EncodeSegment(&r, strconv.Itoa(at))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			name := hex.EncodeToString(sum[:])
			segments[name] = data
			f.Segments = append(f.Segments, archivefile.Segment{Name: name, Bytes: int64(len(data))})
			f.Rows += int64(r.N())
			f.Newest = r.LabelTS[r.N()-1]
		}
		w, err := os.Create(filepath.Join(dir, f.Name()))
		if err == nil {
			err = archivefile.Write(w, &f, func(s archivefile.Segment) ([]byte, error) { return segments[s.Name], nil })
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// noise appends d float16 numbers below 0.5, of both signs.
func noise(dst []byte, d int, state *uint64) []byte {
	for range d {
		*state = *state*6364136223846793005 + 1442695040888963407
		h := uint16(*state >> 48)
		h = h&0x83ff | h>>10&0x1f%14<<10
		dst = append(dst, byte(h), byte(h>>8))
	}
	return dst
}
