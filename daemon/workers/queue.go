package workers

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

type partition struct {
	topic  string
	number int32
}

func partitionOf(r *kgo.Record) partition { return partition{r.Topic, r.Partition} }

// queue are the records that a worker has fetched and not done, of partitions that
// are its own. Those of one partition are taken in their order, but for one that is put
// behind the others.
type queue struct {
	mu       sync.Mutex
	assigned map[partition]bool
	done     map[partition]*kgo.Record // the last of those that were done
	records  []*kgo.Record
}

// assign adds partitions or takes them away, with their records.
func (q *queue) assign(all map[string][]int32, ours bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for topic, numbers := range all {
		for _, n := range numbers {
			if ours {
				q.assigned[partition{topic, n}] = true
			} else {
				delete(q.assigned, partition{topic, n})
				delete(q.done, partition{topic, n})
			}
		}
	}
	q.records = slices.DeleteFunc(q.records, func(r *kgo.Record) bool { return !q.assigned[partitionOf(r)] })
}

func (q *queue) add(records []*kgo.Record) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range records {
		if q.assigned[partitionOf(r)] { // else it was taken away meanwhile
			q.records = append(q.records, r)
		}
	}
}

// take returns the first record of a topic, else of any, and takes it away; nil: there
// is none.
func (q *queue) take(topic string) *kgo.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == 0 {
		return nil
	}
	at := q.next(topic)
	r := q.records[at]
	q.records = slices.Delete(q.records, at, at+1)
	return r
}

// first returns the record that take would return.
func (q *queue) first(topic string) *kgo.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == 0 {
		return nil
	}
	return q.records[q.next(topic)]
}

// next returns the place of the record that is to be taken; q.mu must be held.
func (q *queue) next(topic string) int {
	return max(slices.IndexFunc(q.records, func(r *kgo.Record) bool { return r.Topic == topic }), 0)
}

// partitions returns the numbers of the partitions that are its own.
func (q *queue) partitions() (numbers []int32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for p := range q.assigned {
		numbers = append(numbers, p.number)
	}
	slices.Sort(numbers)
	return numbers
}

func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.records)
}

// finish notes that a record is done, and returns the one up to which its partition is
// done now; nil: the partition was taken away, or a record before it still waits, which
// would be lost with this worker.
func (q *queue) finish(r *kgo.Record) *kgo.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := partitionOf(r)
	if !q.assigned[p] {
		return nil
	}
	last := q.done[p]
	if last == nil || last.Offset < r.Offset {
		last = r
	}
	q.done[p] = last
	if slices.ContainsFunc(q.records, func(o *kgo.Record) bool { return partitionOf(o) == p && o.Offset < last.Offset }) {
		return nil
	}
	return last
}
