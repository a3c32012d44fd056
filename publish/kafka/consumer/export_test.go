package consumer

import "time"

// LookAgainAfter sets how long to read before asking whether the topic is
// still the same.
func (c *Consumer) LookAgainAfter(d time.Duration) { c.lookAgain = d }
