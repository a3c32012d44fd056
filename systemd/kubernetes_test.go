package systemd_test

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// deployment are the parts of the example that must agree with one another and with
// the program.
type deployment struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Containers []struct {
					Args            []string
					VolumeMounts    []struct{ Name string } `yaml:"volumeMounts"`
					SecurityContext struct {
						ReadOnlyRootFilesystem bool `yaml:"readOnlyRootFilesystem"`
					} `yaml:"securityContext"`
				}
				Volumes []struct{ Name string }
			}
		}
		ScaleTargetRef  struct{ Name string } `yaml:"scaleTargetRef"`
		MaxReplicaCount int                   `yaml:"maxReplicaCount"`
		Triggers        []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

// The Deployment of workers is scaled by the topics that they read, to no more of them
// than have a partition.
func TestWorkersOnKubernetesAreScaledByTheirTopics(t *testing.T) {
	text, err := os.ReadFile("lacuna-worker.kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var d, scaled deployment
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if err := decoder.Decode(&scaled); err != nil {
		t.Fatal(err)
	}
	if d.Kind != "Deployment" || scaled.Kind != "ScaledObject" || scaled.Spec.ScaleTargetRef.Name != d.Metadata.Name {
		t.Errorf("%s %s is scaled by %s for %s", d.Kind, d.Metadata.Name, scaled.Kind, scaled.Spec.ScaleTargetRef.Name)
	}
	for key, value := range d.Spec.Selector.MatchLabels {
		if d.Spec.Template.Metadata.Labels[key] != value {
			t.Errorf("the selector asks for %s=%s, which its pods do not have", key, value)
		}
	}
	pod := d.Spec.Template.Spec
	if args := pod.Containers[0].Args; args[0] != "worker" || !slices.Contains(args, "--config") || !slices.Contains(args, "--name") {
		t.Errorf("the container runs %v", args)
	}
	if !pod.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
		t.Error("the container may write to its image")
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v struct{ Name string }) bool { return v.Name == mount.Name }) {
			t.Errorf("there is no volume %s", mount.Name)
		}
	}
	var topics []string
	for _, trigger := range scaled.Spec.Triggers {
		topics = append(topics, trigger.Type+" "+trigger.Metadata["consumerGroup"]+" "+trigger.Metadata["topic"])
	}
	// As daemon/workers names them, with the default prefix.
	if want := "kafka lacuna.workers lacuna.jobs, kafka lacuna.workers lacuna.jobs.backfill"; strings.Join(topics, ", ") != want {
		t.Errorf("scaled by %v, want %s", topics, want)
	}
	if most := scaled.Spec.MaxReplicaCount; most != 64 { // workers.partitions by itself
		t.Errorf("at most %d workers, want the partitions", most)
	}
}
