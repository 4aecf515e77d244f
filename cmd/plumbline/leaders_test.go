package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/engine"
	"github.com/plumbline/plumbline/internal/kafkaclient"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// TestStartWhileLeadersAreChosen: a topic that an order is making, and a topic of checkpoints whose broker has just
// gone, are without a leader for a moment. A process that starts then waits for one.
func TestStartWhileLeadersAreChosen(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]string{"plumbline.plumbline.logits-by-id-5": "directory",
		"plumbline.checkpoints": "topic"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			defer cluster.Close()
			_, cfg := deploy(t, fmt.Sprintf("kafka: {brokers: [%q], partitions: 2}\nhttp: {listen: \"\"}\n"+
				"checkpoints: {dir: %q, store: %s}\n", cluster.ListenAddrs()[0], t.TempDir(), store))
			if store == "directory" {
				kafkatest.CreateTopics(t, cluster.ListenAddrs(), 5, name)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var asked atomic.Int32
			cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				r := req.(*kmsg.ListOffsetsRequest)
				if r.Topics[0].Topic != name {
					return nil, nil, false
				}
				if asked.Add(1) > 2 {
					cancel()
					return nil, nil, false
				}
				return noLeader(r), nil, true
			})
			err = engine.New(cfg, slog.New(slog.DiscardHandler)).Run(ctx, engine.Stages{Shards: true, Models: true})
			if asked.Load() < 3 || err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("asked %d times, %v", asked.Load(), err)
			}
		})
	}
}

// noLeader is the answer of a broker that leads none of the partitions.
func noLeader(r *kmsg.ListOffsetsRequest) kmsg.Response {
	res := r.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, topic := range r.Topics {
		answer := kmsg.NewListOffsetsResponseTopic()
		answer.Topic = topic.Topic
		for _, p := range topic.Partitions {
			part := kmsg.NewListOffsetsResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
			answer.Partitions = append(answer.Partitions, part)
		}
		res.Topics = append(res.Topics, answer)
	}
	return res
}

// TestTooFewReplicas: doctor says that a broker that is down stops the pipeline, where fewer replicas are in sync than
// min.insync.replicas wants.
func TestTooFewReplicas(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "plumbline.panes", "plumbline.snapshots"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cluster.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		res := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range req.(*kmsg.DescribeConfigsRequest).Resources {
			of := kmsg.NewDescribeConfigsResponseResource()
			of.ResourceType, of.ResourceName = r.ResourceType, r.ResourceName
			c := kmsg.NewDescribeConfigsResponseResourceConfig()
			least := "2"
			if r.ResourceName == "plumbline.snapshots" {
				least = "1"
			}
			c.Name, c.Value = "min.insync.replicas", &least
			of.Configs = append(of.Configs, c)
			res.Resources = append(res.Resources, of)
		}
		return res, nil, true
	})
	client := &kafka.Client{Addr: kafka.TCP(cluster.ListenAddrs()...)}
	behind := kafkaclient.Topic{Partitions: 2, Behind: 1, InSync: 1}
	got, err := kafkaclient.RefuseWrites(t.Context(), client, map[string]kafkaclient.Topic{
		"plumbline.panes": behind, "plumbline.snapshots": behind,
		"plumbline.alerts": {Partitions: 2, InSync: 2}, "plumbline.labels": {Partitions: 2, InSync: 1}})
	want := []string{"plumbline.labels (1 in sync, min.insync.replicas=2)",
		"plumbline.panes (1 in sync, min.insync.replicas=2)"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}
