package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/plumbline/plumbline/internal/embedded/seglog"
)

// produce appends batches; the partitions of a request are synced side by side.
func (s *Server) produce(req *kmsg.ProduceRequest) *kmsg.ProduceResponse {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	var work sync.WaitGroup
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewProduceResponseTopic()
		out.Topic = t.Topic
		out.Partitions = make([]kmsg.ProduceResponseTopicPartition, len(t.Partitions))
		for j := range t.Partitions {
			work.Go(func() { out.Partitions[j] = s.append(t.Topic, &t.Partitions[j]) })
		}
		resp.Topics = append(resp.Topics, out)
	}
	work.Wait()
	return resp
}

func (s *Server) append(name string, p *kmsg.ProduceRequestTopicPartition) kmsg.ProduceResponseTopicPartition {
	out := kmsg.NewProduceResponseTopicPartition()
	out.Partition = p.Partition
	fail := func(e *kerr.Error, why string) kmsg.ProduceResponseTopicPartition {
		out.ErrorCode, out.ErrorMessage = e.Code, kmsg.StringPtr(why)
		return out
	}
	t, l, err := s.log(name, p.Partition)
	switch {
	case err != nil:
		s.Log.Error("the embedded log cannot be opened", "topic", name, "partition", p.Partition, "err", err)
		return fail(kerr.KafkaStorageError, err.Error())
	case l == nil:
		return fail(kerr.UnknownTopicOrPartition, "")
	case len(p.Records) > t.messageMax:
		return fail(kerr.MessageTooLarge, "")
	}
	if err := seglog.Check(p.Records); err != nil {
		return fail(kerr.CorruptMessage, err.Error())
	}
	if t.appendTime {
		now := time.Now().UnixMilli()
		seglog.Stamp(p.Records, now)
		out.LogAppendTime = now
	}
	base, err := l.Append(p.Records)
	switch {
	case errors.Is(err, seglog.ErrSequence):
		return fail(kerr.OutOfOrderSequenceNumber, err.Error())
	case errors.Is(err, seglog.ErrEpoch):
		return fail(kerr.InvalidProducerEpoch, err.Error())
	case err != nil:
		s.Log.Error("the embedded log did not take a batch", "topic", name, "partition", p.Partition, "err", err)
		return fail(kerr.KafkaStorageError, err.Error())
	}
	out.BaseOffset = base
	out.LogStartOffset, _ = l.Bounds()
	return out
}

// fetch reads batches, and waits for as long as the request says where there are too few.
func (s *Server) fetch(req *kmsg.FetchRequest) *kmsg.FetchResponse {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(req.MaxWaitMillis)*time.Millisecond)
	defer cancel()
	for {
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		if req.SessionEpoch > 0 { // there are no sessions: a fetch names all that it wants
			resp.ErrorCode = kerr.FetchSessionIDNotFound.Code
			return resp
		}
		r := &reading{left: int(req.MaxBytes), more: make(chan struct{}, 1)}
		if req.Version < 3 {
			r.left = maxFrame / 2
		}
		r.left = min(r.left, maxFrame/2)
		for i := range req.Topics {
			out := kmsg.NewFetchResponseTopic()
			out.Topic = req.Topics[i].Topic
			for j := range req.Topics[i].Partitions {
				out.Partitions = append(out.Partitions, s.read(out.Topic, &req.Topics[i].Partitions[j], r))
			}
			resp.Topics = append(resp.Topics, out)
		}
		if r.bytes >= int(req.MinBytes) || r.failed || !s.wait(ctx, r) {
			return resp
		}
	}
}

// reading is what the partitions of a fetch share.
type reading struct {
	left, bytes int
	failed      bool
	waits       []<-chan struct{}
	more        chan struct{}
}

// wait returns when one of the partitions has more; false when the time is over.
func (s *Server) wait(ctx context.Context, r *reading) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, w := range r.waits {
		go func() {
			select {
			case <-w:
				select {
				case r.more <- struct{}{}:
				default:
				}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case <-r.more:
		return true
	case <-s.done:
	case <-ctx.Done():
	}
	return false
}

func (s *Server) read(name string, p *kmsg.FetchRequestTopicPartition,
	r *reading) kmsg.FetchResponseTopicPartition {
	out := kmsg.NewFetchResponseTopicPartition()
	out.Partition = p.Partition
	out.RecordBatches = []byte{}
	fail := func(e *kerr.Error) kmsg.FetchResponseTopicPartition {
		out.ErrorCode, r.failed = e.Code, true
		return out
	}
	_, l, err := s.log(name, p.Partition)
	switch {
	case err != nil:
		return fail(kerr.KafkaStorageError)
	case l == nil:
		out.HighWatermark = -1
		return fail(kerr.UnknownTopicOrPartition)
	}
	r.waits = append(r.waits, l.Changed()) // before the end is looked at
	start, end := l.Bounds()
	out.LogStartOffset, out.HighWatermark, out.LastStableOffset = start, end, end
	if r.left <= 0 {
		return out
	}
	b, err := l.Read(p.FetchOffset, min(r.left, int(p.PartitionMaxBytes)))
	switch {
	case errors.Is(err, seglog.ErrRange):
		return fail(kerr.OffsetOutOfRange)
	case err != nil:
		s.Log.Error("the embedded log cannot be read", "topic", name, "partition", p.Partition, "err", err)
		return fail(kerr.KafkaStorageError)
	case r.bytes > 0 && len(b) > r.left: // only the first may be larger than asked for
		return out
	}
	out.RecordBatches = b
	r.bytes += len(b)
	r.left -= len(b)
	return out
}

// Offsets that have a name, as times.
const (
	atEnd   = -1
	atStart = -2
)

func (s *Server) listOffsets(req *kmsg.ListOffsetsRequest) *kmsg.ListOffsetsResponse {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for i := range req.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = req.Topics[i].Topic
		for j := range req.Topics[i].Partitions {
			out.Partitions = append(out.Partitions, s.offset(out.Topic, &req.Topics[i].Partitions[j]))
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

func (s *Server) offset(name string,
	p *kmsg.ListOffsetsRequestTopicPartition) kmsg.ListOffsetsResponseTopicPartition {
	out := kmsg.NewListOffsetsResponseTopicPartition()
	out.Partition, out.LeaderEpoch = p.Partition, 0
	_, l, err := s.log(name, p.Partition)
	switch {
	case err != nil:
		out.ErrorCode = kerr.KafkaStorageError.Code
		return out
	case l == nil:
		out.ErrorCode = kerr.UnknownTopicOrPartition.Code
		return out
	}
	start, end := l.Bounds()
	switch {
	case p.Timestamp == atStart:
		out.Offset = start
	case p.Timestamp == atEnd:
		out.Offset = end
	case p.Timestamp < 0:
		out.ErrorCode = kerr.UnsupportedVersion.Code
	default:
		at, err := l.At(p.Timestamp)
		if out.Offset = at; at >= 0 {
			out.Timestamp = p.Timestamp
		}
		if err != nil {
			out.ErrorCode = kerr.KafkaStorageError.Code
		}
	}
	out.OldStyleOffsets = []int64{out.Offset}
	return out
}

// leaderEpochs says that every record is of the first leader.
func (s *Server) leaderEpochs(req *kmsg.OffsetForLeaderEpochRequest) *kmsg.OffsetForLeaderEpochResponse {
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	for i := range req.Topics {
		out := kmsg.NewOffsetForLeaderEpochResponseTopic()
		out.Topic = req.Topics[i].Topic
		for _, p := range req.Topics[i].Partitions {
			at := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			at.Partition, at.LeaderEpoch = p.Partition, 0
			if _, l, err := s.log(out.Topic, p.Partition); err != nil || l == nil {
				at.ErrorCode = kerr.UnknownTopicOrPartition.Code
			} else {
				_, at.EndOffset = l.Bounds()
			}
			out.Partitions = append(out.Partitions, at)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}
