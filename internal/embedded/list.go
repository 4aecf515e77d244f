package embedded

import (
	"cmp"
	"slices"

	"github.com/plumbline/plumbline/internal/embedded/seglog"
)

// Topic is one that a server has.
type Topic struct {
	Name    string
	Configs map[string]string
	// Logs are those of its partitions.
	Logs []*seglog.Log
	// Compact: records with a successor of the same key may be missing, so offsets have gaps.
	Compact bool
}

// Topics returns all, by name.
func (s *Server) Topics() ([]Topic, error) {
	s.mu.Lock()
	names := map[string]bool{}
	for at := range s.logs {
		if info := s.cluster.TopicIDInfo(at.id); info != nil {
			names[info.Topic] = true
		}
	}
	s.mu.Unlock()
	var out []Topic
	for name := range names {
		t := s.topicOf(name)
		o := Topic{Name: name, Configs: map[string]string{}, Compact: t.compact}
		for key, value := range s.cluster.TopicInfo(name).Configs {
			if value != nil {
				o.Configs[key] = *value
			}
		}
		for p := range t.partitions {
			l, err := s.open(name, place{t.id, p})
			if err != nil {
				return nil, err
			}
			o.Logs = append(o.Logs, l)
		}
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Topic) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}
