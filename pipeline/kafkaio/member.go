package kafkaio

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/plumbline/plumbline/internal/backoff"
	"github.com/plumbline/plumbline/internal/filelock"
)

// member is this process's membership of a group, written to a file that is locked while the process lives. When a
// process is killed, the lock is freed: the next process that starts beside the file tells the broker that the member
// has left, which the broker would otherwise learn only when the session times out. The file's name includes the
// host's, because a lock on shared storage may be seen by its own host only.
type member struct {
	file  *os.File // nil = nothing is remembered
	stale []staleMember
	log   *slog.Logger
}

// staleMember is the membership of a process that has ended, whose file this process has locked.
type staleMember struct {
	id   string
	file *os.File
}

const (
	memberSuffix = ".member"
	// memberForget is the age at which another host's file is removed: its session is long over.
	memberForget = 24 * time.Hour
	// memberMax bounds how much of a file is read; brokers make ids of some 60 bytes.
	memberMax = 1 << 10
)

// openMembership opens the group's membership file; without one everything works, and restarts are slower.
func (g *Group) openMembership() *member {
	if g.Members == "" {
		return &member{log: g.Log}
	}
	m, err := openMember(g.Members, g.ID)
	if err != nil {
		g.Log.Warn("no file to remember the member id in; after a crash its session must time out", "dir", g.Members,
			"err", err)
		m = &member{}
	}
	m.log = g.Log
	return m
}

// openMember makes this process's file in dir and finds files that ended processes of the same host and group have
// left.
func openMember(dir, group string) (*member, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	m := &member{}
	prefix := url.QueryEscape(group) + "@"
	own := prefix + url.QueryEscape(host) + "@"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, memberSuffix) {
			m.take(filepath.Join(dir, name), strings.HasPrefix(name, own))
		}
	}
	if m.file, err = filelock.Create(dir, own+"*"+memberSuffix); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// take locks the file of a process that has ended; a file that names no member is removed.
func (m *member) take(name string, own bool) {
	st, err := os.Stat(name)
	if err != nil || !own && time.Since(st.ModTime()) <= memberForget {
		return
	}
	f := filelock.Take(name)
	if f == nil {
		return
	}
	buf := make([]byte, memberMax)
	n, _ := f.ReadAt(buf, 0)
	if own && n > 0 {
		m.stale = append(m.stale, staleMember{string(buf[:n]), f})
		return
	}
	_ = os.Remove(name)
	_ = f.Close()
}

// remember writes the id that this process has in the group.
func (m *member) remember(id string) {
	if m.file == nil {
		return
	}
	err := m.file.Truncate(0)
	if err == nil {
		_, err = m.file.WriteAt([]byte(id), 0)
	}
	if err != nil {
		m.log.Warn("remember the member id; after a crash its session must time out", "file", m.file.Name(), "err", err)
	}
}

// close removes the file: a process that ends well leaves its group.
func (m *member) close() {
	for _, s := range m.stale {
		_ = s.file.Close()
	}
	if m.file != nil {
		_ = os.Remove(m.file.Name())
		_ = m.file.Close()
	}
}

// How long leaveStale waits for this process's own request to join to reach the broker.
const (
	joinSeen = 3 * time.Second
	joinPoll = 20 * time.Millisecond
)

// leaveStale tells the broker that the members of ended processes have left. It first waits until this process has
// asked to join: a group that is empty for a moment waits group.initial.rebalance.delay.ms for other members, but one
// that loses a member while another joins does not.
func (m *member) leaveStale(ctx context.Context, c *kafka.Client, group string) {
	stale := m.stale
	m.stale = nil
	if len(stale) == 0 {
		return
	}
	awaitJoin(ctx, c, group)
	for _, s := range stale {
		err := leave(ctx, c, group, s.id)
		if err != nil {
			m.log.Warn("leave the group for a process that is gone; its session will time out", "group", group,
				"member", s.id, "err", err)
		} else {
			m.log.Info("left the group for a process that is gone", "group", group, "member", s.id)
		}
		_ = os.Remove(s.file.Name())
		_ = s.file.Close()
	}
}

// awaitJoin returns when the group is rebalancing, has no members or cannot be asked, or after joinSeen.
func awaitJoin(ctx context.Context, c *kafka.Client, group string) {
	ctx, cancel := context.WithTimeout(ctx, joinSeen)
	defer cancel()
	for ctx.Err() == nil {
		res, err := c.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
		if err == nil && len(res.Groups) == 1 && res.Groups[0].Error == nil && res.Groups[0].GroupState != "Stable" {
			return
		}
		backoff.Sleep(ctx, joinPoll)
	}
}

func leave(ctx context.Context, c *kafka.Client, group, id string) error {
	res, err := c.LeaveGroup(ctx, &kafka.LeaveGroupRequest{GroupID: group,
		Members: []kafka.LeaveGroupRequestMember{{ID: id}}})
	if err != nil {
		return err
	}
	errs := []error{res.Error}
	for _, m := range res.Members {
		errs = append(errs, m.Error)
	}
	err = errors.Join(errs...)
	if errors.Is(err, kafka.UnknownMemberId) { // its session is over
		return nil
	}
	if err != nil {
		return fmt.Errorf("leave: %w", err)
	}
	return nil
}
