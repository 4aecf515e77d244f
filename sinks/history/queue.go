package history

import (
	"container/list"

	"github.com/plumbline/plumbline/pipeline/record"
)

// queue are the events that wait for a subscriber, oldest first. From full events on, the newest snapshot of a series
// replaces the one before that waits; alerts and decisions always stay. At most events wait. The History's lock guards
// it.
type queue struct {
	full, most int
	order      *list.List                    // of Event
	newest     map[SnapshotKey]*list.Element // of each series
}

func newQueue(cfg Config) queue {
	return queue{full: cfg.SubscriberBuffer, most: cfg.SubscriberBuffer + cfg.Keys, order: list.New(),
		newest: map[SnapshotKey]*list.Element{}}
}

// put adds an event; false where too many wait.
func (q *queue) put(e Event) bool {
	k, snapshot := seriesOf(e)
	if old := q.newest[k]; snapshot && old != nil && q.order.Len() >= q.full {
		if atOf(old.Value.(Event)) > atOf(e) {
			return true // e is of the past
		}
		q.order.Remove(old)
	}
	if q.order.Len() >= q.most {
		return false
	}
	if el := q.order.PushBack(e); snapshot {
		q.newest[k] = el
	}
	return true
}

// take removes the oldest event.
func (q *queue) take() (Event, bool) {
	el := q.order.Front()
	if el == nil {
		return Event{}, false
	}
	e := q.order.Remove(el).(Event)
	if k, snapshot := seriesOf(e); snapshot && q.newest[k] == el {
		delete(q.newest, k)
	}
	return e, true
}

func atOf(snapshot Event) int64 { return snapshot.Record.(*record.Snapshot).At.UnixNano() }

func seriesOf(e Event) (k SnapshotKey, snapshot bool) {
	s, ok := e.Record.(*record.Snapshot)
	if !ok {
		return k, false
	}
	return SnapshotKey{s.Model, s.Version, s.Slice, s.Window.Name}, true
}
