package daemon

import (
	"strings"
	"testing"
)

// FuzzConfig feeds arbitrary text to the reader of configurations: what is taken
// has no faults, and what is not is refused with the file that it is in.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(validConfig))
	f.Add([]byte("state_dir: &a [*a]\ndatasets: [{name: x, bbox: [1, 2]}]\n<<: *a\n"))
	f.Add([]byte("publish: {kafka: {brokers: [x], sasl: {}}, s3: null, retry_min: 1e9h}\ndatasets:\n- ? name\n"))
	f.Add([]byte("train: !!binary x\n---\ndrain: -1s\n...\n"))
	f.Add([]byte("datasets: !word list\n")) // the library panics at it
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := parseConfig("lacuna.yaml", text)
		if err != nil {
			if !strings.Contains(err.Error(), "lacuna.yaml") {
				t.Errorf("the error does not say where: %v", err)
			}
			return
		}
		if faults := cfg.faults(); len(faults) > 0 || len(cfg.Datasets) == 0 {
			t.Errorf("a configuration with faults was taken: %v", faults)
		}
	})
}
