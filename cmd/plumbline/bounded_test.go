package main

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/schema"

	"github.com/plumbline/plumbline/internal/kafkatest"
	"github.com/plumbline/plumbline/internal/testsize"
)

// zeroArray is an npz file whose only array has n×10 zeros of float64: about a thousandth of them in bytes.
func zeroArray(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zeros.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, array := range []struct {
		name, descr, shape string
		bytes              int
	}{{"logits", "<f8", fmt.Sprintf("(%d, 10)", n), 80 * n}, {"labels", "<i8", fmt.Sprintf("(%d,)", n), 8 * n}} {
		w, err := z.Create(array.name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", array.descr, array.shape)
		b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
		binary.LittleEndian.PutUint16(b[8:], uint16(len(header)))
		_, err = w.Write(append(b, header...))
		zeros := make([]byte, 1<<20)
		for left := array.bytes; left > 0 && err == nil; left -= len(zeros) {
			_, err = w.Write(zeros[:min(left, len(zeros))])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// constantParquet is a Parquet file of n rows of ten equal logits: a dictionary of one value, and runs of its index.
func constantParquet(t *testing.T, n int) string {
	t.Helper()
	element := schema.NewFloat32Node("element", parquet.Repetitions.Required, -1)
	list, err := schema.ListOfWithName("logits", element, parquet.Repetitions.Required, -1)
	if err != nil {
		t.Fatal(err)
	}
	fields := schema.FieldList{list, schema.NewInt32Node("label", parquet.Repetitions.Required, -1)}
	root := schema.MustGroup(schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1))
	path := filepath.Join(t.TempDir(), "constant.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := file.NewParquetWriter(f, root,
		file.WithWriterProps(parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd))))
	group := w.AppendRowGroup()
	const classes, run = 10, 1 << 16
	logits := make([]float32, run*classes)
	definition, repetition := make([]int16, run*classes), make([]int16, run*classes)
	for i := range logits {
		definition[i] = 1
		repetition[i] = min(1, int16(i%classes))
	}
	for column := range fields {
		c, err := group.NextColumn()
		for left := n; left > 0 && err == nil; left -= run {
			rows := min(left, run)
			switch c := c.(type) {
			case *file.Float32ColumnChunkWriter:
				k := rows * classes
				_, err = c.WriteBatch(logits[:k], definition[:k], repetition[:k])
			case *file.Int32ColumnChunkWriter:
				_, err = c.WriteBatch(make([]int32, rows), nil, nil)
			}
		}
		if err == nil {
			err = c.Close()
		}
		if err != nil {
			t.Fatalf("column %d: %v", column, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// longLine is a CSV file whose second line does not end for a long time.
func longLine(t *testing.T, bytes int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "line.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.WriteString("logits_0,logits_1,label\n")
	for part := strings.Repeat("0", 1<<20); bytes > 0 && err == nil; bytes -= len(part) {
		_, err = f.WriteString(part)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// process is the command in a process of its own.
func process(args ...string) (cmd *exec.Cmd, errs *bytes.Buffer) {
	cmd, errs = exec.Command(os.Args[0], args...), &bytes.Buffer{}
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = errs
	return cmd, errs
}

// readers are the commands that read rows of a file; each reads an array of an npz file with labels, too.
func readers(t *testing.T) map[string][]string {
	t.Helper()
	config := brokerConfig(t, kafkatest.Start(t), "")
	run(t, "topics", "create", "-c", config)
	return map[string][]string{
		"eval":    {"eval"},
		"fit":     {"fit", "-o", filepath.Join(t.TempDir(), "c.json")},
		"replay":  {"replay"},
		"produce": {"produce", "-c", config},
		"train":   {"train", "--recipe", "ce", "--from", "linear", "--classes", "2"},
	}
}

// TestMaxMemory: a file that asks for more memory than it may have is refused, whatever reads it.
func TestMaxMemory(t *testing.T) {
	testsize.NoRace(t)
	testsize.Slow(t)
	const most = 64 << 20
	files := []string{zeroArray(t, 2<<20), constantParquet(t, 4<<20), longLine(t, 100<<20)}
	for _, file := range files[:2] {
		if st, err := os.Stat(file); err != nil || st.Size() > 1<<20 {
			t.Fatalf("%v, %v", st, err)
		}
	}
	for name, args := range readers(t) {
		for _, file := range files {
			args := append(slices.Clone(args), "--max-memory", "64MiB", file)
			switch ext := filepath.Ext(file); {
			case ext == ".npz":
				args[len(args)-1] += ":logits"
				args = append(args, "--labels", "labels")
			case name == "train":
				continue // those have no features
			}
			cmd, errs := process(args...)
			status := filepath.Join(t.TempDir(), "status")
			cmd.Env = append(cmd.Env, statusFile+"="+status)
			err := cmd.Run()
			if cmd.ProcessState.ExitCode() != exitFailed || errs.Len() > 1000 ||
				!strings.Contains(errs.String(), "more memory is needed than 64 MiB (--max-memory)") {
				t.Errorf("%v: %v %.1000s", args, err, errs)
			}
			rss := peakOf(status)
			t.Logf("%s %s: %d MiB", name, filepath.Base(file), rss>>20)
			if rss > 5*most {
				t.Errorf("%v took %d MiB", args, rss>>20)
			}
		}
	}
	for _, bad := range []string{"-1", "much"} {
		if code, _, errs := runCommand(t, "eval", files[0], "--max-memory", bad); code != exitUsage {
			t.Errorf("--max-memory %s: %d %s", bad, code, errs)
		}
	}
}

// peakOf is the most resident memory of a process in bytes by its /proc/self/status; 0 where there is none.
func peakOf(status string) (bytes int64) {
	text, _ := os.ReadFile(status)
	if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
		_, _ = fmt.Sscanf(after, "%d kB", &bytes)
	}
	return bytes << 10
}

// TestSignalsAreObeyedWhileReading: a command that waits for a file ends when it is told to.
func TestSignalsAreObeyedWhileReading(t *testing.T) {
	testsize.Slow(t)
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "rows.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	commands := readers(t)
	commands["convert"] = []string{"convert", "-o", filepath.Join(t.TempDir(), "x.onnx")}
	commands["test"] = []string{"test", "rules"}
	var all sync.WaitGroup // together: each waits some seconds before it leaves its reader behind
	for _, args := range commands {
		all.Go(func() {
			cmd, errs := process(append(slices.Clone(args), pipe)...)
			if err := cmd.Start(); err != nil {
				t.Error(err)
				return
			}
			time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
			hung := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
			defer hung.Stop()
			err := cmd.Wait()
			if cmd.ProcessState.ExitCode() != exitFailed ||
				!strings.Contains(errs.String(), "terminated signal received") {
				t.Errorf("%v: %v %s", args, err, errs)
			}
		})
	}
	all.Wait()
}
