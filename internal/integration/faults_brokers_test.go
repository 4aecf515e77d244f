//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// outage is how long a broker is away: long enough that its partitions have new leaders.
const outage = 5 * time.Second

// killLeader is kill -9 of the broker that leads a partition of the input, and later of the one that leads a
// partition of the panes.
func (s *suite) killLeader(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	s.disturbed(t, d, func(p *producer) {
		for i, name := range []string{"logits", "panes"} {
			s.progress(t, d, 0.2+0.4*float64(i))
			s.cluster.heal(t, d.topics()...)
			n := s.cluster.leader(t, d.topic(name), 0)
			s.cluster.kill(t, n)
			d.did("kill -9 of the leader of a partition of %s", name)
			time.Sleep(outage)
			s.cluster.start(t, n)
		}
		s.cluster.heal(t, d.topics()...)
	})
}

// killBrokersInTurn kills two brokers one after the other, the second when the first is back.
func (s *suite) killBrokersInTurn(t *testing.T) {
	d := s.deploy(t, s.options())
	s.disturbed(t, d, func(p *producer) {
		first := s.random.IntN(clusterBrokers)
		for i := range 2 {
			s.progress(t, d, 0.2+0.4*float64(i))
			n := (first + i) % clusterBrokers
			s.cluster.heal(t, d.topics()...)
			s.cluster.kill(t, n)
			d.did("kill -9 of a broker")
			time.Sleep(outage)
			s.cluster.start(t, n)
		}
		s.cluster.heal(t, d.topics()...)
	})
}

// killAllBrokers is a power failure of the brokers, whose disks survive.
func (s *suite) killAllBrokers(t *testing.T) {
	d := s.deploy(t, s.options())
	s.disturbed(t, d, func(p *producer) {
		s.progress(t, d, 0.4)
		s.cluster.kill(t)
		d.did("kill -9 of all brokers at once")
		time.Sleep(outage)
		s.cluster.start(t)
		s.cluster.heal(t, d.topics()...)
	})
}

// sinkRefuses makes the brokers refuse every record of the snapshots, then of the panes: the tasks stand still, and
// go on when the topic takes records again.
func (s *suite) sinkRefuses(t *testing.T, o deployOptions) {
	d := s.deploy(t, o)
	refusal := 20 * time.Second
	if s.full {
		refusal = time.Minute
	}
	s.disturbed(t, d, func(p *producer) {
		for i, name := range []string{"snapshots", "panes"} {
			s.progress(t, d, 0.1+0.3*float64(i))
			before := d.logged("Message Size Too Large")
			s.setLimit(t, d.topic(name), "10")
			d.did("%s refuses every record for %v", name, refusal)
			time.Sleep(refusal)
			s.setLimit(t, d.topic(name), "16777216")
			if d.logged("Message Size Too Large") == before {
				t.Errorf("no log line tells that %s refused: the test did not test it", name)
			}
		}
	})
}

func (s *suite) setLimit(t *testing.T, topic, bytes string) {
	t.Helper()
	within(t, time.Minute, "set max.message.bytes of "+topic, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		res, err := s.cluster.client(t).IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
			Resources: []kafka.IncrementalAlterConfigsRequestResource{{ResourceType: kafka.ResourceTypeTopic,
				ResourceName: topic,
				Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: "max.message.bytes", Value: bytes,
					ConfigOperation: kafka.ConfigOperationSet}}}}})
		if err == nil {
			for _, r := range res.Resources {
				err = r.Error
			}
		}
		return err
	})
}
