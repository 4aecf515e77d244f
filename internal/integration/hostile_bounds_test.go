//go:build integration

package integration

import (
	"bytes"
	bin "encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/plumbline/plumbline/internal/kafkatest"
)

func init() {
	for name, codec := range map[string]compress.Compression{"zstd": compress.Zstd, "gzip": compress.Gzip,
		"lz4": compress.Lz4} {
		hostile["bounds-"+name] = func(t *testing.T, a *attack) { inflating(t, a, codec) }
	}
	hostile["bounds-calibrate"] = manyBodies
}

// manyBodies posts 64 of the largest and dearest bodies at once between the halves of a good stream.
func manyBodies(t *testing.T, a *attack) {
	a.Input = "64 requests of 8 MB of JSON at once to calibrate"
	a.Before = "2.25 GB for 16"
	want := goodHash(t)
	s := configure(t, oneDay)
	p := run(t, s)
	good := goodStream(t, s)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	p.wait(time.Minute, "know the model", func() bool {
		return p.get("/api/v1/models/good/calibrator", &struct{}{}) == nil
	})
	body := `{"logits":[[1,1]` + strings.Repeat(",[1,1]", 8<<20/6-10) + `]}`
	var answered, busy atomic.Int64
	var g sync.WaitGroup
	for range 64 {
		g.Go(func() {
			resp, err := http.Post("http://"+s.listen+"/api/v1/models/good/calibrate", "application/json",
				strings.NewReader(body))
			if err != nil { // hung up on
				busy.Add(1)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusOK:
				answered.Add(1)
			case http.StatusServiceUnavailable:
				busy.Add(1)
			default:
				t.Errorf("a large body: %s", resp.Status)
			}
		})
	}
	g.Wait()
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	p.drain(goodRows, goodRows)
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	a.RSS = peakOf(t, p)
	const most = 1 << 30
	if a.RSS > most || answered.Load() == 0 {
		t.Errorf("%d answered; resident memory: %d MB, want at most %d", answered.Load(), a.RSS>>20, most>>20)
	}
	a.Note = fmt.Sprintf("%d answered, %d told to come again", answered.Load(), busy.Load())
	p.stop()
}

// inflating sends batches of zeros to every topic that a process reads, between the halves of a good stream.
func inflating(t *testing.T, a *attack, codec compress.Compression) {
	const zeros = 500 << 20
	bomb := zeroBatch(t, codec, zeros)
	a.Input = fmt.Sprintf("%d KB of %s that hold %d MB of zeros, on all partitions of 5 topics", len(bomb)>>10, codec,
		zeros>>20)
	a.Before = "of zstd 7.1 GB, then the end at a limit of 9 GB"
	want := goodHash(t)
	s := configure(t, oneDay)
	p := run(t, s)
	good := goodStream(t, s)
	kafkatest.Write(t, brokers, good[:len(good)/2]...)
	const inputs = 2 * partitions
	for _, topic := range []string{"logits", "labels", "panes", "calibrators", "decisions"} {
		for i := range partitions {
			rawProduce(t, s.topic(topic), i, bomb)
		}
	}
	kafkatest.Write(t, brokers, good[len(good)/2:]...)
	sent := time.Now()
	var st status
	p.wait(2*time.Minute, "get behind the attack", func() bool {
		var err error
		st, err = p.status()
		return err == nil && st.Drained && st.Counts.Joined >= goodRows &&
			st.Counts.DeadLetters["inflates"] >= inputs
	})
	a.Lag = fmt.Sprintf("%.1f s", time.Since(sent).Seconds())
	a.exact(t, p, want)
	a.RSS = peakOf(t, p)
	const most = 400 << 20
	if a.RSS > most {
		t.Errorf("resident memory: %d MB, want at most %d", a.RSS>>20, most>>20)
	}
	p.stop()
	n := 0
	for _, m := range kafkatest.ReadAll(t, brokers, s.topic("deadletter")) {
		a.Letters += int64(len(m.Key) + len(m.Value))
		for _, h := range m.Headers {
			a.Letters += int64(len(h.Key) + len(h.Value))
			if h.Key == "plumbline-detail" && bytes.Contains(h.Value, []byte("inflates")) {
				n++
			}
		}
	}
	if n != inputs {
		t.Errorf("%d dead letters say that a batch inflates, want %d", n, inputs)
	}
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"panes", "calibrators", "decisions"} {
		if !strings.Contains(string(log), s.topic(topic)+" ") || !strings.Contains(string(log), "inflates") {
			t.Errorf("the log does not say that %s has a batch that inflates", topic)
		}
	}
}

// peakOf is VmHWM.
func peakOf(t *testing.T, p *process) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// zeroBatch is a record batch of one record whose value is n zeros.
func zeroBatch(t *testing.T, codec compress.Compression, n int64) []byte {
	t.Helper()
	head := []byte{0, 0, 0, 2, 'k'} // attributes, time, offset, the key that compaction needs
	head = bin.AppendVarint(head, n)
	head = append(bin.AppendVarint(nil, int64(len(head))+n+1), head...)
	var body bytes.Buffer
	w := codec.Codec().NewWriter(&body)
	zeros := make([]byte, 1<<20)
	_, err := w.Write(head)
	for left := n; left > 0 && err == nil; left -= int64(len(zeros)) {
		_, err = w.Write(zeros[:min(left, int64(len(zeros)))])
	}
	if err == nil {
		_, err = w.Write([]byte{0}) // no headers
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 61, 61+body.Len())
	be := bin.BigEndian
	be.PutUint32(b[8:], uint32(49+body.Len()))
	be.PutUint32(b[12:], math.MaxUint32) // leader epoch
	b[16] = 2
	be.PutUint16(b[21:], uint16(codec))
	now := uint64(time.Now().UnixMilli())
	be.PutUint64(b[27:], now)
	be.PutUint64(b[35:], now)
	be.PutUint64(b[43:], math.MaxUint64)
	be.PutUint16(b[51:], math.MaxUint16)
	be.PutUint32(b[53:], math.MaxUint32)
	be.PutUint32(b[57:], 1)
	b = append(b, body.Bytes()...)
	be.PutUint32(b[17:], crc32.Checksum(b[21:], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// rawProduce sends a record batch as it is.
func rawProduce(t *testing.T, topic string, partition int, batch []byte) {
	t.Helper()
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(brokers...), Timeout: time.Minute, Transport: transport}
	sized := bin.BigEndian.AppendUint32(nil, uint32(len(batch)))
	res, err := client.RawProduce(t.Context(), &kafka.RawProduceRequest{Topic: topic, Partition: partition,
		RequiredAcks: kafka.RequireAll,
		RawRecords:   protocol.RawRecordSet{Reader: io.MultiReader(bytes.NewReader(sized), bytes.NewReader(batch))}})
	if err == nil {
		err = res.Error
	}
	if err != nil {
		t.Fatalf("produce to %s: %v", topic, err)
	}
}
