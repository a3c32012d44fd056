package work

import (
	"fmt"
	"testing"
	"time"
)

func TestSecondsOfTheLogHaveTwoDecimals(t *testing.T) {
	for d := time.Duration(0); d < 20*time.Second; d += 7654321 * time.Nanosecond {
		if text := fmt.Sprint(roundSeconds(d)); len(text) > len("19.99") {
			t.Fatalf("%v is logged as %s", d, text)
		}
	}
}
