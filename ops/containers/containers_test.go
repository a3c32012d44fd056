// Package containers_test checks the examples for containers against the schemas
// of their formats, and against what the image and the program are.
package containers_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"

	"lacuna/ops/image"
)

// compose loads a compose file as docker compose does: by its schema, with
// variables replaced, and with the names of volumes and services resolved.
func compose(t *testing.T, text string, environment map[string]string) (*types.Project, error) {
	t.Helper()
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  ".",
		ConfigFiles: []types.ConfigFile{{Filename: "compose.yaml", Content: []byte(text)}},
		Environment: environment,
	})
}

func TestTheComposeFileIsValidAndHoldsTheServiceTight(t *testing.T) {
	text := read(t, "compose.yaml")
	project, err := compose(t, text, map[string]string{"S3_SECRET_KEY": "secret"})
	if err != nil {
		t.Fatal(err)
	}
	service := project.Services["lacuna"]
	if want := "lacuna:" + release(t); service.Image != want {
		t.Errorf("the image is %s, want %s", service.Image, want)
	}
	if !service.ReadOnly || !slices.Equal(service.CapDrop, []string{"ALL"}) || service.Privileged || service.User != "" {
		t.Errorf("read-only %t, drops %v, privileged %t, user %q: want the user of the image, and nothing else writable", service.ReadOnly, service.CapDrop, service.Privileged, service.User)
	}
	for name, s := range project.Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("port %d of %s is open to %q, want this machine only", p.Target, name, p.HostIP)
			}
		}
	}
	config := config{}
	decode(t, read(t, "lacuna.yaml"), &config)
	mounts := []string{service.Configs[0].Target}
	for _, v := range service.Volumes {
		mounts = append(mounts, v.Target)
	}
	config.fits(t, service.Command, mounts, int(service.Ports[0].Target))
	if len(config.Publish.Kafka.Brokers) != 1 || config.Publish.Kafka.Brokers[0] != "kafka:9092" || !strings.Contains(project.Services["kafka"].Environment.ToMapping()["KAFKA_ADVERTISED_LISTENERS"], "//kafka:9092") {
		t.Errorf("Kafka is looked for at %q, where the broker does not say it is", config.Publish.Kafka.Brokers)
	}
	bucket := project.Services["bucket"]
	if got := bucket.Entrypoint[len(bucket.Entrypoint)-1]; got != "/buckets/"+config.Publish.S3.Bucket {
		t.Errorf("the bucket that is made is %s, the one that is used %s", got, config.Publish.S3.Bucket)
	}
	key := project.Services["store"].Environment.ToMapping()["ROOT_ACCESS_KEY"]
	if got := service.Environment.ToMapping()["AWS_ACCESS_KEY_ID"]; got != key || key == "" {
		t.Errorf("the service is %q to the store, which knows %q", got, key)
	}
}

func TestWhatIsWrongInAComposeFileIsFound(t *testing.T) {
	text := read(t, "compose.yaml")
	for name, c := range map[string]struct{ old, new string }{
		"an unknown key":       {"read_only: true\n    tmpfs", "readonly: true\n    tmpfs"},
		"a volume of no name":  {"  state: {}\n", ""},
		"a service of no name": {"      kafka: {condition: service_healthy}", "      broker: {condition: service_healthy}"},
		"a wrong type":         {"cap_drop: [ALL]", "cap_drop: ALL"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s: the file has no %q", name, c.old)
		}
		if _, err := compose(t, strings.Replace(text, c.old, c.new, 1), map[string]string{"S3_SECRET_KEY": "secret"}); err == nil {
			t.Errorf("%s is not found", name)
		}
	}
	if _, err := compose(t, text, nil); err == nil || !strings.Contains(err.Error(), "choose a secret key") {
		t.Errorf("without a secret key: %v, want a sentence", err)
	}
}

// manifests are the parts of the Kubernetes example that must fit each other.
type manifests struct {
	ConfigMap struct {
		Data map[string]string `yaml:"data"`
	}
	Service struct {
		Spec struct {
			Selector map[string]string `yaml:"selector"`
			Ports    []struct {
				Port       int    `yaml:"port"`
				TargetPort string `yaml:"targetPort"`
			} `yaml:"ports"`
		} `yaml:"spec"`
	}
	StatefulSet struct {
		Spec struct {
			Replicas int `yaml:"replicas"`
			Template struct {
				Metadata struct {
					Labels map[string]string `yaml:"labels"`
				} `yaml:"metadata"`
				Spec pod `yaml:"spec"`
			} `yaml:"template"`
			VolumeClaimTemplates []struct {
				Metadata struct {
					Name string `yaml:"name"`
				} `yaml:"metadata"`
			} `yaml:"volumeClaimTemplates"`
		} `yaml:"spec"`
	}
}

type pod struct {
	SecurityContext struct {
		RunAsUser    int  `yaml:"runAsUser"`
		RunAsGroup   int  `yaml:"runAsGroup"`
		FSGroup      int  `yaml:"fsGroup"`
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []struct {
		Image string   `yaml:"image"`
		Args  []string `yaml:"args"`
		Ports []struct {
			Name          string `yaml:"name"`
			ContainerPort int    `yaml:"containerPort"`
		} `yaml:"ports"`
		StartupProbe   probe `yaml:"startupProbe"`
		LivenessProbe  probe `yaml:"livenessProbe"`
		ReadinessProbe probe `yaml:"readinessProbe"`
		VolumeMounts   []struct {
			Name      string `yaml:"name"`
			MountPath string `yaml:"mountPath"`
		} `yaml:"volumeMounts"`
	} `yaml:"containers"`
	Volumes []struct {
		Name string `yaml:"name"`
	} `yaml:"volumes"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
}

func TestTheKubernetesExampleIsValid(t *testing.T) {
	text := read(t, "kubernetes.yaml")
	if out, err := validate(t, text); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, c := range map[string]struct{ old, new string }{
		"an unknown key":       {"readOnlyRootFilesystem", "readonlyRootFilesystem"},
		"a key that is needed": {"  serviceName: lacuna\n  selector:\n    matchLabels: {app.kubernetes.io/name: lacuna}\n", "  serviceName: lacuna\n"},
		"a wrong type":         {"replicas: 1", "replicas: one"},
		"an unknown kind":      {"apps/v1", "apps/v0"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s: the file has no %q", name, c.old)
		}
		if out, err := validate(t, strings.Replace(text, c.old, c.new, 1)); err == nil {
			t.Errorf("%s is not found:\n%s", name, out)
		}
	}
}

// validate compares manifests with the schemas of Kubernetes, unknown keys
// included.
func validate(t *testing.T, text string) (string, error) {
	t.Helper()
	python := os.Getenv("LACUNA_PYTHON")
	if python == "" || exec.Command(python, "-c", "import kubernetes_validate").Run() != nil {
		t.Skip("no Python with kubernetes-validate: set LACUNA_PYTHON, or run make test, which installs it")
	}
	file := filepath.Join(t.TempDir(), "kubernetes.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-m", "kubernetes_validate", "--strict", file).CombinedOutput()
	if err == nil && strings.Contains(string(out), "WARN") { // of a kind without a schema it only warns
		err = errors.New("not all of it was compared")
	}
	return string(out), err
}

func TestThePartsOfTheKubernetesExampleFitEachOther(t *testing.T) {
	m := readManifests(t)
	spec := m.StatefulSet.Spec
	pod := spec.Template.Spec
	container := pod.Containers[0]
	if s := pod.SecurityContext; !s.RunAsNonRoot || s.RunAsUser != image.User || s.RunAsGroup != image.User || s.FSGroup != image.User {
		t.Errorf("it runs as %+v, want the user of the image, %d", s, image.User)
	}
	if spec.Replicas != 1 {
		t.Errorf("%d pods share a state", spec.Replicas)
	}
	if !strings.HasSuffix(container.Image, "/lacuna:"+release(t)) {
		t.Errorf("the image is %s, want that of %s", container.Image, release(t))
	}
	port := container.Ports[0]
	if p := m.Service.Spec.Ports[0]; p.TargetPort != port.Name {
		t.Errorf("the service leads to port %s, the container's is %s", p.TargetPort, port.Name)
	}
	if fmt.Sprint(m.Service.Spec.Selector) != fmt.Sprint(spec.Template.Metadata.Labels) {
		t.Errorf("the service selects %v, the pod is %v", m.Service.Spec.Selector, spec.Template.Metadata.Labels)
	}
	handler := read(t, "../handler.go")
	for _, p := range []probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
		if p.HTTPGet.Port != port.Name || !strings.Contains(handler, `mux.HandleFunc("`+p.HTTPGet.Path+`"`) {
			t.Errorf("a probe asks for %s at port %s, which nobody answers", p.HTTPGet.Path, p.HTTPGet.Port)
		}
	}
	var volumes, mounts []string
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, v := range spec.VolumeClaimTemplates {
		volumes = append(volumes, v.Metadata.Name)
	}
	for _, v := range container.VolumeMounts {
		mounts = append(mounts, v.MountPath)
		if !slices.Contains(volumes, v.Name) {
			t.Errorf("there is no volume %s for %s", v.Name, v.MountPath)
		}
	}
	config := config{}
	decode(t, m.ConfigMap.Data["lacuna.yaml"], &config)
	config.fits(t, container.Args, mounts, port.ContainerPort)
	if !slices.Contains(config.Web.Hosts, "lacuna.lacuna.svc") {
		t.Errorf("the page answers to %v, not to the name of the service", config.Web.Hosts)
	}
}

// The program takes the configurations of the examples, and finds no key in them
// that it does not know.
func TestTheProgramTakesTheConfigurations(t *testing.T) {
	if testing.Short() {
		t.Skip("links the program; leave -short out to run it")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "lacuna")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "lacuna/daemon/cmd/lacuna").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range map[string]string{"compose": read(t, "lacuna.yaml"), "kubernetes": readManifests(t).ConfigMap.Data["lacuna.yaml"]} {
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "check", "--config", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// config is the part of a configuration that a container must fit.
type config struct {
	StateDir    string `yaml:"state_dir"`
	ProductsDir string `yaml:"products_dir"`
	Web         struct {
		Listen string   `yaml:"listen"`
		Hosts  []string `yaml:"hosts"`
	} `yaml:"web"`
	Publish struct {
		S3 struct {
			Bucket string `yaml:"bucket"`
		} `yaml:"s3"`
		Kafka struct {
			Brokers []string `yaml:"brokers"`
		} `yaml:"kafka"`
	} `yaml:"publish"`
	Train struct {
		Store string `yaml:"store"`
	} `yaml:"train"`
}

// fits checks that what the program writes outlives its container, that it reads
// this configuration, and that its page is where the container opens a port.
func (c config) fits(t *testing.T, args, mounts []string, port int) {
	t.Helper()
	if want := []string{"run", "--config", "/etc/lacuna/lacuna.yaml"}; !slices.Equal(args, want) {
		t.Errorf("it is started with %q, want %q", args, want)
	}
	for _, path := range []string{c.StateDir, c.ProductsDir, c.Train.Store, args[2]} {
		if !slices.ContainsFunc(mounts, func(m string) bool { return path == m || strings.HasPrefix(path, m+"/") }) {
			t.Errorf("%q lies on none of the volumes %q", path, mounts)
		}
	}
	if want := fmt.Sprintf("0.0.0.0:%d", port); c.Web.Listen != want {
		t.Errorf("the page is at %s, want %s, the port of the container", c.Web.Listen, want)
	}
}

func readManifests(t *testing.T) manifests {
	t.Helper()
	var m manifests
	kinds := map[string]any{"ConfigMap": &m.ConfigMap, "Service": &m.Service, "StatefulSet": &m.StatefulSet, "Namespace": &struct{}{}}
	for _, document := range strings.Split(read(t, "kubernetes.yaml"), "\n---\n") {
		var head struct {
			Kind string `yaml:"kind"`
		}
		decode(t, document, &head)
		decode(t, document, kinds[head.Kind])
	}
	return m
}

// release is the version in daemon/version/version.go.
func release(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^const release = "(.*)"$`).FindStringSubmatch(read(t, "../../daemon/version/version.go"))
	if found == nil {
		t.Fatal("daemon/version/version.go names no release")
	}
	return found[1]
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.NewDecoder(bytes.NewReader([]byte(text))).Decode(into); err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("%v in:\n%s", err, text)
	}
}
