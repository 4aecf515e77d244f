package schemas

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/plumbline/plumbline/pipeline/inputs"
)

func newClient(t *testing.T, c Config) *Client {
	t.Helper()
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestSchemas are had once, with what they refer to, those without references first.
func TestSchemas(t *testing.T) {
	asked := 0
	fake := srfake.New()
	defer fake.Close()
	fake.Intercept(func(http.ResponseWriter, *http.Request) bool { asked++; return false })
	own, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	add := func(subject, text string, to ...sr.SchemaReference) sr.SubjectSchema {
		t.Helper()
		s, err := own.CreateSchema(t.Context(), subject, sr.Schema{Schema: text, References: to})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	add("a", `{"type":"record","name":"A","fields":[]}`)
	add("b", `{"type":"record","name":"B","fields":[{"name":"a","type":"A"}]}`,
		sr.SchemaReference{Name: "A", Subject: "a", Version: 1})
	s := add("c", `{"type":"record","name":"C","fields":[{"name":"b","type":"B"}]}`,
		sr.SchemaReference{Name: "B", Subject: "b", Version: 1},
		sr.SchemaReference{Name: "A", Subject: "a", Version: 1})
	client, made := newClient(t, Config{URL: fake.URL()}), asked
	for range 3 {
		got, err := client.Schema(t.Context(), uint32(s.ID))
		if err != nil || got.Type != "AVRO" || len(got.Refers) != 2 || got.Refers[0].Name != "A" ||
			got.Refers[1].Name != "B" {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	before := asked
	for range 3 {
		if _, err := client.Schema(t.Context(), 1000); !errors.Is(err, inputs.ErrNoSchema) {
			t.Errorf("one that is not there: %v", err)
		}
	}
	if asked != before+1 || before != made+3 {
		t.Errorf("asked %d times for schemas that are there, %d for one that is not", before-made, asked-before)
	}
}

// TestRegistryThatCannotAnswer: whatever is not its word that there is no such schema is an error of the moment.
func TestRegistryThatCannotAnswer(t *testing.T) {
	answer := func(code int, body string) string {
		fake := srfake.New()
		t.Cleanup(fake.Close)
		fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
			return true
		})
		return fake.URL()
	}
	for name, url := range map[string]string{
		"refused":        "http://127.0.0.1:1",
		"another server": answer(404, "404 page not found"),
		"failing":        answer(500, `{"error_code":50001,"message":"store"}`),
		"unauthorised":   answer(401, `{"error_code":40101,"message":"who"}`),
		"endless":        answer(200, `{"schema":"`+strings.Repeat("x", maxAnswer)+`"}`),
		"no JSON":        answer(200, "<html>"),
	} {
		_, err := newClient(t, Config{URL: url}).Schema(t.Context(), 7)
		if err == nil || errors.Is(err, inputs.ErrNoSchema) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newClient(t, Config{URL: answer(200, "{}")}).Schema(ctx, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNumbersOfNoRegistry: one that no registry gives, and a schema that refers to too much, are no reason to wait. The
// registry answers as Confluent's does: its numbers are Java's.
func TestNumbersOfNoRegistry(t *testing.T) {
	fake := srfake.New()
	defer fake.Close()
	fake.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		id, ofID := strings.CutPrefix(r.URL.Path, "/schemas/ids/")
		_, err := strconv.ParseInt(id, 10, 32)
		switch {
		case ofID && err != nil:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"error_code":404,"message":"HTTP 404 Not Found"}`))
		case ofID:
			var to []string
			for i := range maxRefers + 1 {
				to = append(to, fmt.Sprintf(`{"name":"n%d","subject":"s","version":%d}`, i, i+1))
			}
			_, _ = w.Write([]byte(`{"schema":"\"string\"","references":[` + strings.Join(to, ",") + `]}`))
		default:
			_, _ = w.Write([]byte(`{"subject":"s","version":1,"id":9,"schema":"\"string\""}`))
		}
		return true
	})
	for id, want := range map[uint32]error{math.MaxUint32: inputs.ErrNoSchema, math.MaxInt32 + 1: inputs.ErrNoSchema,
		8: inputs.ErrBadSchema} {
		c := newClient(t, Config{URL: fake.URL()})
		for range 2 {
			if _, err := c.Schema(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("%d: got %v, want %v", id, err, want)
			}
		}
	}
}

func TestPassword(t *testing.T) {
	fake := srfake.New(srfake.WithAuth("Basic dTpzZWNyZXQ=")) // u:secret
	defer fake.Close()
	file := filepath.Join(t.TempDir(), "password")
	for password, known := range map[string]bool{"secret\n": true, "wrong": false} {
		if err := os.WriteFile(file, []byte(password), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newClient(t, Config{URL: fake.URL(), Username: "u", PasswordFile: file}).Schema(t.Context(), 7)
		if errors.Is(err, inputs.ErrNoSchema) != known {
			t.Errorf("password %q: %v", password, err)
		}
	}
}
