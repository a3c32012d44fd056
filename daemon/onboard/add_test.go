package onboard

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"lacuna/daemon/intake"
)

// Every line of the file stays, in its order, and the dataset is the last of the
// list, wherever the list stands and however it is indented.
func TestASecondDatasetGoesToTheEndOfTheList(t *testing.T) {
	for name, config := range map[string]string{
		"at the end":         "# mine\nstate_dir: s # here\ndatasets:\n  # the first\n  - name: a\n    fill: {method: oi} # kept\n",
		"no line break":      "state_dir: s\ndatasets:\n  - name: a\n    fill: {method: oi}",
		"in the middle":      "datasets:\n  - name: a\n    fill:\n      method: oi\n\n# the port\nweb:\n  listen: \"127.0.0.1:1\"\n",
		"not indented":       "datasets:\n- name: a\n  fill:\n    method: oi\n# about the state\nstate_dir: s\n",
		"indented by four":   "datasets:\n    - name: a\n      fill:\n          method: oi\nstate_dir: s\n",
		"a comment at a end": "state_dir: s\ndatasets:\n  - name: a\n    # last words of a\n",
	} {
		t.Run(name, func(t *testing.T) {
			o := Onboarding{Name: "second", Now: onboardingDay, Archive: intake.DefaultArchive()}
			got, err := o.Add([]byte(config))
			if err != nil {
				t.Fatal(err)
			}
			rest := string(got)
			for line := range strings.Lines(config) {
				_, after, found := strings.Cut(rest, strings.TrimRight(line, "\n")+"\n")
				if !found {
					t.Fatalf("%q is gone, or has moved:\n%s", line, got)
				}
				rest = after
			}
			var read struct {
				StateDir string `yaml:"state_dir"`
				Datasets []struct {
					Name string `yaml:"name"`
					Fill struct {
						Method string `yaml:"method"`
					} `yaml:"fill"`
				} `yaml:"datasets"`
			}
			if err := yaml.Unmarshal(got, &read); err != nil {
				t.Fatalf("%v in\n%s", err, got)
			}
			if len(read.Datasets) != 2 || read.Datasets[0].Name != "a" || read.Datasets[1].Name != "second" || read.Datasets[1].Fill.Method != "auto" ||
				strings.Contains(config, "state_dir") && read.StateDir != "s" {
				t.Errorf("it reads as %+v:\n%s", read, got)
			}
		})
	}
}

func TestAListThatCannotBeAddedToIsRefused(t *testing.T) {
	o := Onboarding{Name: "second", Now: onboardingDay, Archive: intake.DefaultArchive()}
	for _, config := range []string{"datasets: [{name: a}]\n", "datasets: a\n", "a: 1\n---\nb: 2\n", "datasets:\n\t- name"} {
		if got, err := o.Add([]byte(config)); err == nil {
			t.Errorf("%q became\n%s", config, got)
		}
	}
}

// Of an archive that is finished nobody is told every day how old it is.
func TestAFinishedArchiveExpectsNothing(t *testing.T) {
	archive, err := intake.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := Onboarding{Name: "a", Now: onboardingDay, Archive: archive, Sample: &Sample{Newest: onboardingDay.AddDate(-2, 0, 0), Step: 24 * 3600e9}}
	text := string(o.Propose())
	for _, want := range []string{"nothing: true", "settle: 0s", "future_days: 10"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	o.Sample.Newest = onboardingDay.AddDate(0, 0, -2)
	if text := string(o.Propose()); strings.Contains(text, "nothing: true") || !strings.Contains(text, "settle: 30s") || !strings.Contains(text, "future_days: 0") {
		t.Errorf("an archive that goes on is taken for finished:\n%s", text)
	}
}
