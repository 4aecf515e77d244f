package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/pipeline/murmur"
)

// transport takes rows until ctx is done. It calls done for each part of them, with nil where it has arrived, and
// trouble with what it tries again after.
type transport interface {
	send(ctx context.Context, c *call, done func(rows int, err error), trouble func(why string))
}

func newTransport(model string, o *Options) (transport, error) {
	u, query, err := parseTo(o.To)
	if err != nil {
		return nil, fmt.Errorf("to %q: %w", redacted(o.To), err)
	}
	if u.Scheme == "kafka" {
		return &toKafka{model: model, version: o.Version,
			client: &kafka.Client{Addr: kafka.TCP(strings.Split(u.Host, ",")...), Transport: o.Transport,
				Timeout: 10 * time.Second},
			topics: [2]string{cmp.Or(query.Get("logits"), "plumbline.logits"),
				cmp.Or(query.Get("labels"), "plumbline.labels")}}, nil
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: 30 * time.Second}
	}
	at := strings.TrimSuffix(o.To, "/") + "/api/v1/ingest/" + url.PathEscape(model) + "/"
	return &toHTTP{url: at, model: model, version: o.Version, client: o.HTTP, token: o.Token}, nil
}

// parseTo reads where rows go. What would be ignored is an error.
func parseTo(to string) (u *url.URL, query url.Values, err error) {
	if u, err = url.Parse(to); err != nil {
		if wrong := (*url.Error)(nil); errors.As(err, &wrong) {
			err = wrong.Err // without the address, which may have a password
		}
		return nil, nil, err
	}
	if query, err = url.ParseQuery(u.RawQuery); err != nil {
		return nil, nil, err
	}
	overKafka := u.Scheme == "kafka"
	for name, values := range query {
		switch {
		case !overKafka || name != "logits" && name != "labels":
			return nil, nil, fmt.Errorf("unknown parameter %.40q: those of kafka:// are logits and labels", name)
		case len(values) != 1 || values[0] == "":
			return nil, nil, fmt.Errorf("parameter %s: must be one topic", name)
		}
	}
	switch {
	case !overKafka && u.Scheme != "http" && u.Scheme != "https":
		err = errors.New("must begin with kafka://, http:// or https://")
	case u.Hostname() == "" || slices.Contains(strings.Split(u.Host, ","), ""):
		err = errors.New("a host is missing")
	case u.Fragment != "":
		err = errors.New("must be without #")
	case overKafka && u.User != nil:
		err = errors.New("must be without a user: users of Kafka are set in Options.Transport")
	case overKafka && strings.Trim(u.Path, "/") != "":
		err = fmt.Errorf("must be without the path %.40q: topics are set as ?logits=TOPIC&labels=TOPIC", u.Path)
	}
	return u, query, err
}

// redacted is an address without its password.
func redacted(to string) string {
	if u, err := url.Parse(to); err == nil {
		return u.Redacted()
	}
	if at := strings.LastIndex(to, "@"); at >= 0 {
		return to[at+1:]
	}
	return to
}

// errTooLarge means that fewer rows may fit.
var errTooLarge = errors.New("too large")

// permanent is an answer that the same rows would get again.
type permanent struct{ error }

// deliver sends a part as a whole, or in halves where it is too large, and tries again what may pass.
func deliver(ctx context.Context, c *call, once func(*call) error, done func(int, error), trouble func(string)) {
	for pause := backoff.New(100*time.Millisecond, 5*time.Second); ; pause.Wait(ctx) {
		err := once(c)
		var forGood permanent
		switch {
		case errors.Is(err, errTooLarge) && c.n > 1:
			half := c.n / 2
			deliver(ctx, c.part(sequence(0, half)), once, done, trouble)
			deliver(ctx, c.part(sequence(half, c.n)), once, done, trouble)
			return
		case err == nil, errors.As(err, &forGood), errors.Is(err, errTooLarge), ctx.Err() != nil:
			done(c.n, err)
			return
		}
		trouble(err.Error())
	}
}

func sequence(from, to int) []int {
	out := make([]int, 0, to-from)
	for i := from; i < to; i++ {
		out = append(out, i)
	}
	return out
}

// toKafka sends every row to the partition of its id, where its label meets it.
type toKafka struct {
	model, version string
	client         *kafka.Client
	topics         [2]string
	partitions     [2]int
}

func (t *toKafka) send(ctx context.Context, c *call, done func(int, error), trouble func(string)) {
	kind := 0
	if c.labels {
		kind = 1
	}
	for t.partitions[kind] == 0 {
		err := t.ask(ctx, kind)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			done(c.n, err)
			return
		}
		trouble(err.Error())
		backoff.Sleep(ctx, time.Second/2)
	}
	places := make([][]int, t.partitions[kind])
	for i, id := range c.IDs {
		p := murmur.PartitionOf([]byte(id), len(places))
		places[p] = append(places[p], i)
	}
	for p, rows := range places {
		if len(rows) > 0 {
			deliver(ctx, c.part(rows), func(c *call) error { return t.produce(ctx, kind, p, c) }, done, trouble)
		}
	}
}

// ask learns how many partitions a topic has.
func (t *toKafka) ask(ctx context.Context, kind int) error {
	topic := t.topics[kind]
	m, err := t.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	if len(m.Topics) != 1 || m.Topics[0].Error != nil || len(m.Topics[0].Partitions) == 0 {
		return fmt.Errorf("topic %s: %w", topic, kafka.UnknownTopicOrPartition)
	}
	t.partitions[kind] = len(m.Topics[0].Partitions)
	return nil
}

func (t *toKafka) produce(ctx context.Context, kind, partition int, c *call) error {
	value, err := c.encode(t.model, t.version)
	if err != nil {
		return permanent{err}
	}
	if len(value) > maxMessage { // the broker looks at what lz4 makes of it
		return fmt.Errorf("%w: a message of %d bytes, at most %d", errTooLarge, len(value), maxMessage)
	}
	res, err := t.client.Produce(ctx, &kafka.ProduceRequest{Topic: t.topics[kind], Partition: partition,
		RequiredAcks: kafka.RequireAll, Compression: kafka.Lz4,
		Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes(value), Time: time.Now()})})
	if err == nil {
		err = res.Error
	}
	var refused kafka.Error
	switch {
	case errors.Is(err, kafka.MessageSizeTooLarge):
		return fmt.Errorf("%w: %w", errTooLarge, err)
	case errors.As(err, &refused) && !refused.Temporary():
		return permanent{err}
	}
	return err
}

// toHTTP sends rows to a plumbline process.
type toHTTP struct {
	url, model, version, token string
	client                     *http.Client
	until                      time.Time
}

func (t *toHTTP) send(ctx context.Context, c *call, done func(int, error), trouble func(string)) {
	deliver(ctx, c, func(c *call) error {
		rejected, reason, err := t.post(ctx, c)
		if err == nil && rejected > 0 {
			done(rejected, fmt.Errorf("rejected: %s", reason))
			c.n -= rejected
		}
		return err
	}, done, trouble)
}

// post sends a request; rows that are written and rejected are counted.
func (t *toHTTP) post(ctx context.Context, c *call) (rejected int, reason string, err error) {
	select {
	case <-time.After(time.Until(t.until)):
	case <-ctx.Done():
		return 0, "", ctx.Err()
	}
	value, err := c.encode(t.model, t.version)
	if err != nil {
		return 0, "", permanent{err}
	}
	path := t.url + "predictions"
	if c.labels {
		path = t.url + "labels"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(value))
	if err != nil {
		return 0, "", permanent{err}
	}
	req.Header.Set("Content-Type", "application/vnd.apache.arrow.stream")
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	res, err := t.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 1<<16))
	if err != nil {
		return 0, "", err
	}
	var answer struct {
		Error    string
		Rows     *int
		Rejected int
		First    []struct{ Reason, Detail string } `json:"first_rejected"`
	}
	unread := json.Unmarshal(body, &answer)
	switch {
	case res.StatusCode < 300 && (unread != nil || answer.Rows == nil):
		return 0, "", permanent{fmt.Errorf("%d: not an answer of plumbline: %.80q", res.StatusCode, body)}
	case res.StatusCode < 300:
		if len(answer.First) > 0 {
			reason = strings.TrimSuffix(answer.First[0].Reason+": "+answer.First[0].Detail, ": ")
		}
		return min(max(answer.Rejected, 0), c.n), reason, nil
	case res.StatusCode == http.StatusRequestEntityTooLarge:
		return 0, "", fmt.Errorf("%w: 413: %s", errTooLarge, answer.Error)
	case res.StatusCode == http.StatusRequestTimeout && c.n > 1: // a slow network: less at a time may come through
		return 0, "", fmt.Errorf("%w: 408: %s", errTooLarge, answer.Error)
	case res.StatusCode == http.StatusRequestTimeout, res.StatusCode == http.StatusTooManyRequests,
		res.StatusCode >= 500:
		if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			t.until = time.Now().Add(min(time.Duration(s)*time.Second, 30*time.Second))
		}
		return 0, "", fmt.Errorf("%d: %s", res.StatusCode, answer.Error)
	}
	return 0, "", permanent{fmt.Errorf("%d: %s", res.StatusCode, answer.Error)}
}
