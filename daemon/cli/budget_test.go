package cli

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStopSaysWhetherItWasTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spent, cancel := WithBudget(t.Context(), time.Hour)
		defer cancel()
		time.Sleep(time.Hour + time.Second)
		if spent.Err() == nil || StopReason(spent).Error() != "the time budget is spent" {
			t.Errorf("after the budget the reason is %v", StopReason(spent))
		}
		parent, stop := context.WithCancel(t.Context())
		free, cancel := WithBudget(parent, 0)
		defer cancel()
		time.Sleep(1000 * time.Hour)
		if free.Err() != nil {
			t.Error("a run without a budget was stopped")
		}
		stop()
		if free.Err() == nil || StopReason(free).Error() != "stopped" {
			t.Errorf("after a signal the reason is %v", StopReason(free))
		}
	})
}
