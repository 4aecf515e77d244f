//go:build integration

package integration

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// schemaRegistry stands in for a schema registry: none of the known ones is in a package registry. Producers reach it
// from the start, plumbline from when begin is called on.
type schemaRegistry struct {
	url   string // of producers
	later string // of plumbline
	begin func(t *testing.T)
}

func newSchemaRegistry(t *testing.T) *schemaRegistry {
	t.Helper()
	fake := srfake.New()
	t.Cleanup(fake.Close)
	to, err := url.Parse(fake.URL())
	if err != nil {
		t.Fatal(err)
	}
	at := freePort(t)
	return &schemaRegistry{url: fake.URL(), later: "http://" + at, begin: func(t *testing.T) {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: httputil.NewSingleHostReverseProxy(to), ReadHeaderTimeout: time.Minute}
		go func() { _ = s.Serve(l) }()
		t.Cleanup(func() { _ = s.Close() })
	}}
}

// registeredRecords are what registered.py sends of the rows from one to another.
func registeredRecords(d *inputData, in source, from, to int) any {
	record := keys{"topic": in.Topic, "rows": in.Rows, "key": inputID(from), "time": rowTime(from).UnixMilli()}
	if in.Rows == "labels" {
		var values []any
		for i := from; i < to; i++ {
			values = append(values, keys{"prediction": inputID(i), "truth": d.label[i]})
		}
		record["values"] = values
		return record
	}
	var outputs []any
	for i := from; i < to; i++ {
		outputs = append(outputs, keys{"logits": d.row(i)})
	}
	record["values"] = []any{keys{"request_id": requestID(from), "served_at": rowTime(from).UnixMilli(),
		"latency": 0.25, "model": "digits", "version": "1", "outputs": outputs}}
	return record
}

// sendRegistered sends the rows of an input by Confluent's serializers.
func sendRegistered(t *testing.T, s settings, in source, data *inputData) {
	t.Helper()
	var lines bytes.Buffer
	for from := 0; from < setupRows; from += inputRows {
		lines.Write(asJSON(registeredRecords(data, in, from, min(from+inputRows, setupRows))))
		lines.WriteByte('\n')
	}
	cmd := exec.Command(s.python(), filepath.Join("testdata", "registered.py"), strings.Join(brokers, ","),
		s.registry.url, in.Format)
	cmd.Stdin = &lines
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("registered.py: %v\n%s", err, tail(out))
	}
}

// sendOTLP sends the rows of a set-up by OpenTelemetry's SDK.
func sendOTLP(t *testing.T, s settings) {
	t.Helper()
	rows := loadRows(t, streams[0].file, streams[0].array, streams[0].k)
	data := &inputData{rows.K, rows.Scores, rows.Label}
	var lines bytes.Buffer
	for i := range setupRows {
		lines.Write(asJSON(keys{"id": inputID(i), "ts": rowTime(i).UnixNano(), "logits": data.row(i),
			"label": data.label[i]}))
		lines.WriteByte('\n')
	}
	cmd := exec.Command(s.python(), filepath.Join("testdata", "otlp.py"), "http://"+s.listen+"/api/v1/ingest/otlp")
	cmd.Stdin = &lines
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("Failed to export")) {
		t.Fatalf("otlp.py: %v\n%s", err, tail(out))
	}
}

// waitsForSchema waits until the page says that records wait for the registry, and then lets plumbline reach it.
func waitsForSchema(t *testing.T, s settings) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		now := troubles(t, s)
		for _, x := range now {
			if x.Kind == "waits" && strings.Contains(x.Text, "connection refused") {
				s.registry.begin(t)
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing waits for the registry: %+v", now)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
