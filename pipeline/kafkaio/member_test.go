package kafkaio

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/eventually"
	"github.com/plumbline/plumbline/internal/kafkatest"
)

// silent joins a group, takes all of it and says nothing more: a process that was killed. Its session outlives the
// test.
func silent(t *testing.T, c *kafka.Client, group string, topics ...string) (id string) {
	t.Helper()
	ctx := context.Background()
	const session = 5 * time.Minute
	req := &kafka.JoinGroupRequest{
		GroupID:          group,
		SessionTimeout:   session,
		RebalanceTimeout: session,
		ProtocolType:     "consumer",
		Protocols: []kafka.GroupProtocol{{Name: copartition{}.ProtocolName(),
			Metadata: kafka.GroupProtocolSubscription{Topics: topics}}},
	}
	res, err := c.JoinGroup(ctx, req)
	if err == nil && errors.Is(res.Error, kafka.MemberIDRequired) {
		req.MemberID = res.MemberID
		res, err = c.JoinGroup(ctx, req)
	}
	if err == nil {
		err = res.Error
	}
	if err != nil {
		t.Fatalf("join: %v", err)
	}
	sync, err := c.SyncGroup(ctx, &kafka.SyncGroupRequest{
		GroupID:      group,
		GenerationID: res.GenerationID,
		MemberID:     res.MemberID,
		ProtocolType: "consumer",
		ProtocolName: res.ProtocolName,
		Assignments:  []kafka.SyncGroupRequestAssignment{{MemberID: res.MemberID}},
	})
	if err == nil {
		err = sync.Error
	}
	if err != nil {
		t.Fatalf("sync: %v", err)
	}
	return res.MemberID
}

// TestMemberOfADeadProcessLeaves: the partitions of a process that was killed come back at once, not after its session,
// which here would take longer than the test may.
func TestMemberOfADeadProcessLeaves(t *testing.T) {
	t.Parallel()
	brokers := kafkatest.Start(t)
	kafkatest.CreateTopics(t, brokers, 2, "z")
	c := newClient(t, brokers)
	dir := t.TempDir()
	dead, err := openMember(dir, "g")
	if err != nil {
		t.Fatal(err)
	}
	dead.remember("the longer id of an earlier membership of the same process, which must not show through")
	dead.remember(silent(t, c, "g", "z"))
	if err := dead.file.Close(); err != nil { // the kernel does so for a process that is killed
		t.Fatal(err)
	}
	w := &works{t: t, by: map[int]string{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	g := Group{ID: "g", Brokers: brokers, Dialer: &kafka.Dialer{Timeout: time.Second}, Topics: []string{"z"},
		Log: quiet, Client: c, Members: dir}
	go func() { done <- g.Run(ctx, w.work("a")) }()
	eventually.True(t, "all with a", func() bool { return w.state() == "0a 1a" })
	// The file of the dead one goes when the broker has answered, which is after the partitions have come.
	eventually.True(t, "its own file only", func() bool {
		files, _ := os.ReadDir(dir)
		return len(files) == 1
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 0 {
		t.Errorf("%d files after a good end, want none", len(files))
	}
}

// TestMemberOfALivingProcessStays: nobody is made to leave who holds the lock, is of another host or of another group.
func TestMemberOfALivingProcessStays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(group string) *member {
		m, err := openMember(dir, group)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.close)
		return m
	}
	living := open("g")
	living.remember("living")
	other := open("g-shards")
	other.remember("other group")
	_ = other.file.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, age := range map[string]time.Duration{"g@" + host + "-1@7": 0, "g@elsewhere@7": 0,
		"g@elsewhere@8": 2 * memberForget, "g@" + host + "@9": 0} {
		file := filepath.Join(dir, name+memberSuffix)
		text := name
		if strings.HasSuffix(name, "9") {
			text = "" // made, and killed before it had joined
		}
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if m := open("g"); len(m.stale) != 0 {
		t.Errorf("%q are taken for dead, want nobody", m.stale[0].id)
	}
	for name, want := range map[string]bool{"g@elsewhere@7": true, "g@elsewhere@8": false, "g@" + host + "@9": false} {
		if _, err := os.Stat(filepath.Join(dir, name+memberSuffix)); (err == nil) != want {
			t.Errorf("file of %s is there: %v, want %v", name, err == nil, want)
		}
	}
	_ = living.file.Close()
	if m := open("g"); len(m.stale) != 1 || m.stale[0].id != "living" {
		t.Errorf("%d are taken for dead, want the one whose lock is free", len(m.stale))
	}
}
