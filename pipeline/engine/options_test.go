package engine

import (
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/pkg/pjrt"
)

func TestTheGPUsAndTheirMemoryAreThoseThatWereNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		env  map[string]string
		want pjrt.NamedValuesMap
		err  string
	}{
		{name: "nothing", want: pjrt.NamedValuesMap{"preallocate": false}},
		{
			name: "config", cfg: Config{GPUs: []int{1, 3}, Memory: 0.25}, env: map[string]string{GPUVariable: "7", MemoryVariable: "0.9"},
			want: pjrt.NamedValuesMap{"preallocate": false, "visible_devices": []int64{1, 3}, "memory_fraction": float32(0.25)},
		},
		{
			name: "environment", env: map[string]string{GPUVariable: "2, 0", MemoryVariable: "0.5"},
			want: pjrt.NamedValuesMap{"preallocate": false, "visible_devices": []int64{2, 0}, "memory_fraction": float32(0.5)},
		},
		{name: "no number", env: map[string]string{GPUVariable: "first"}, err: GPUVariable},
		{name: "no GPU", env: map[string]string{GPUVariable: "-1"}, err: GPUVariable},
		{name: "too much", env: map[string]string{MemoryVariable: "50"}, err: MemoryVariable},
		{name: "not a number", env: map[string]string{MemoryVariable: "NaN"}, err: MemoryVariable},
	} {
		got, err := tt.cfg.deviceOptions(func(name string) string { return tt.env[name] })
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error is %v, want one that names %s", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
}

// The processor stands in for a GPU that cannot be used, and says for what; any other
// engine is as it is opened by name.
func TestTheProcessorStandsInForAGPUThatIsAway(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	cfg := Config{Plugin: "/nowhere/plugin.so"}
	e, err := OpenOrStandIn(XLACUDA, cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Finalize()
	if e.Kind != ORT || e.Away == nil || !strings.Contains(e.Away.Error(), "/nowhere/plugin.so") || e.Try() != nil {
		t.Errorf("%s stands in because of %v", e.Kind, e.Away)
	}
	if _, err := Open(XLACUDA, cfg, log); err == nil {
		t.Error("an engine that was asked for alone fell back")
	}
	if _, err := OpenOrStandIn("none", cfg, log); err == nil {
		t.Error("the processor stands in for an engine that does not exist")
	}
}
