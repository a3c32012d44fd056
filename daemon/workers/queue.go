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
// are its own. Those of one partition are taken in their order.
type queue struct {
	mu       sync.Mutex
	assigned map[partition]bool
	done     map[partition]int64 // largest offset of those that were done
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

// take returns the first record of a topic, else of any; nil: there is none.
func (q *queue) take(first string) *kgo.Record {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.records) == 0 {
		return nil
	}
	at := max(slices.IndexFunc(q.records, func(r *kgo.Record) bool { return r.Topic == first }), 0)
	r := q.records[at]
	q.records = slices.Delete(q.records, at, at+1)
	return r
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

// passes reports whether a record is of a partition of its own and behind all that were
// done: a training that waited for another worker is done after later ones, and its
// offset must not take those back.
func (q *queue) passes(r *kgo.Record) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := partitionOf(r)
	if !q.assigned[p] || r.Offset < q.done[p] {
		return false
	}
	q.done[p] = r.Offset
	return true
}
