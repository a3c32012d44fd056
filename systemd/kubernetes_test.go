package systemd_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
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

// The Deployment is valid by the schema of Kubernetes, the ScaledObject by that of KEDA,
// unknown keys included; and a fault in either is found.
func TestWorkersOnKubernetesAreValid(t *testing.T) {
	text, err := os.ReadFile("lacuna-worker.kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{name: "as it is"},
		{"an unknown key of a pod", "readOnlyRootFilesystem", "readonlyRootFilesystem", "Deployment"},
		{"a number in words", "terminationGracePeriodSeconds: 30", "terminationGracePeriodSeconds: soon", "Deployment"},
		{"an unknown key of the scaling", "pollingInterval", "pollInterval", "ScaledObject"},
		{"a number that must be a text", `lagThreshold: "2"`, "lagThreshold: 2", "ScaledObject"},
		{"a long window", "stabilizationWindowSeconds: 600", "stabilizationWindowSeconds: 6000", "ScaledObject"},
		{"no topic", "topic: lacuna.jobs\n", "offset: lacuna.jobs\n", "ScaledObject"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(string(text), tt.old) {
				t.Fatalf("the file has no %q", tt.old)
			}
			deployment, scaled, _ := strings.Cut(strings.Replace(string(text), tt.old, tt.new, 1), "\n---\n")
			found := ""
			if before, _, _ := strings.Cut(string(text), "\n---\n"); deployment == before && tt.old != "" {
				t.Log("the Deployment is as it was")
			} else if err := validDeployment(t, deployment); err != nil {
				found = "Deployment"
			}
			if err := validScaledObject(t, scaled); err != nil {
				found += "ScaledObject"
			}
			if found != tt.want {
				t.Errorf("the fault is found in %q, want %q", found, tt.want)
			}
		})
	}
}

// validDeployment compares a manifest with the schemas of Kubernetes.
func validDeployment(t *testing.T, text string) error {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.Command(python, "-c", "import kubernetes_validate").Run() != nil {
		t.Skip("no Python with kubernetes-validate: set LACUNA_PYTHON, or run make test, which installs it")
	}
	file := filepath.Join(t.TempDir(), "worker.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-m", "kubernetes_validate", "--strict", file).CombinedOutput()
	if err == nil && bytes.Contains(out, []byte("WARN")) { // of a kind without a schema it only warns
		err = errors.New("not all of it was compared")
	}
	return err
}

// validScaledObject compares a manifest with the facts of testdata.
func validScaledObject(t *testing.T, text string) error {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("testdata/scaledobject.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	as, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := jsonschema.UnmarshalJSON(bytes.NewReader(as))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(object)
}
