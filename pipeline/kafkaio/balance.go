package kafkaio

import (
	"cmp"
	"slices"

	"github.com/segmentio/kafka-go"
)

// copartition is the group balancer: partition number p of every topic goes to one member, in ranges of numbers.
// kafka-go's range balancer takes partitions topic by topic in the broker's order, so one member could get the logits
// of a number and another its labels.
type copartition struct{}

// ProtocolName implements kafka.GroupBalancer.
func (copartition) ProtocolName() string { return "plumbline-copartition" }

// UserData implements kafka.GroupBalancer.
func (copartition) UserData() ([]byte, error) { return nil, nil }

// AssignGroups implements kafka.GroupBalancer. The members of a plumbline group all read the same topics.
func (copartition) AssignGroups(members []kafka.GroupMember,
	partitions []kafka.Partition) kafka.GroupMemberAssignments {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b kafka.GroupMember) int { return cmp.Compare(a.ID, b.ID) })
	count := 0
	for _, p := range partitions {
		count = max(count, p.ID+1)
	}
	out := kafka.GroupMemberAssignments{}
	for _, m := range members {
		out[m.ID] = map[string][]int{}
	}
	for _, p := range partitions {
		m := members[p.ID*len(members)/count]
		if slices.Contains(m.Topics, p.Topic) {
			out[m.ID][p.Topic] = append(out[m.ID][p.Topic], p.ID)
		}
	}
	return out
}
