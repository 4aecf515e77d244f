package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Consumers that throw the bytes away, as `e2e kafka-go BROKER TOPIC=MESSAGES…`. They look at every value's length, as
// a program that reads them must have them in memory.

func bare(client, broker string, wants []string) error {
	var topics []string
	all := int64(0)
	for _, w := range wants {
		topic, count, _ := strings.Cut(w, "=")
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil {
			return err
		}
		topics, all = append(topics, topic), all+n
	}
	switch client {
	case "kafka-go":
		return bareKafkaGo(broker, topics, all)
	case "franz-go":
		return bareFranzGo(broker, topics, all)
	}
	return fmt.Errorf("client %q: allowed are kafka-go and franz-go", client)
}

func bareKafkaGo(broker string, topics []string, all int64) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	read, failed := make(chan struct{}, 1024), make(chan error)
	for _, topic := range topics {
		for p := range partitions {
			r := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{broker}, Topic: topic, Partition: p,
				MaxBytes: 32 << 20, MinBytes: 1})
			defer r.Close()
			go func() {
				for {
					_, err := r.ReadMessage(ctx)
					if errors.Is(err, context.Canceled) {
						return
					}
					if err != nil {
						failed <- err
						return
					}
					read <- struct{}{}
				}
			}()
		}
	}
	for range all {
		select {
		case <-read:
		case err := <-failed:
			return err
		}
	}
	return nil
}

func bareFranzGo(broker string, topics []string, all int64) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxPartitionBytes(8<<20), kgo.FetchMaxBytes(64<<20))
	if err != nil {
		return err
	}
	defer c.Close()
	for n := int64(0); n < all; {
		f := c.PollFetches(context.Background())
		if err := f.Err(); err != nil {
			return err
		}
		n += int64(f.NumRecords())
	}
	return nil
}
