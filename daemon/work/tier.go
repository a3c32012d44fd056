package work

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"lacuna/ledger"
	"lacuna/pipeline/infer"
	"lacuna/publish"
)

// promptly is how long a live product waits for its tier where the settings do not
// say: who looks at today's map waits for it.
const promptly = time.Minute

// paced returns the settings of a fill with its deadline, a share of the rhythm of
// the series where none is set. Where somebody waits, as for the first product of a
// live granule, it is filled by the best tier at once if that is done promptly, else
// by the tier fast and then made anew. A backlog has as long for each field as a
// live product: it may be of thousands. The fields of a granule share the time that
// its product may be waited for.
func (d Dataset) paced(lane ledger.Lane, fields int, awaited bool) infer.Config {
	cfg := d.Fill
	n := cfg.Network.Rhythm(cfg.Interval())
	wait := cmp.Or(n.Prompt, promptly)
	n.Prompt = 0
	switch {
	case n.Tier != "":
	case lane == ledger.Backfill:
		n.Deadline = min(n.Deadline, wait)
	case awaited:
		n.Prompt = max(wait/time.Duration(max(fields, 1)), 1)
	}
	cfg.Network = n
	return cfg
}

// bettersTier reports whether a product was made by a better tier than the one
// that was published before it.
func bettersTier(before ledger.Publication, now *publish.Sampling) bool {
	var told publish.Product
	if json.Unmarshal([]byte(before.Body), &told) != nil || told.Sampling == nil || now == nil {
		return false
	}
	rank := func(tier string) int { return slices.Index(infer.Tiers(), infer.Tier(tier)) }
	return rank(now.Tier) > rank(told.Sampling.Tier)
}
