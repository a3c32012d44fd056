package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"lacuna/ops/image"
	"lacuna/ops/supply"
)

var about = image.About{Version: "0.2.0-dev+g0000000", Revision: "0000000", Created: time.Unix(1_700_000_000, 0)}

// The image runs with nothing of this machine but its kernel, as a user who can
// change nothing but the state: the checks that an operator would do first, and a
// fill by a network, which needs libonnxruntime.
func TestTheImageRunsInAnEmptyRoot(t *testing.T) {
	file := writeProgram(t)
	root := t.TempDir()
	config := unpack(t, file, root)
	for _, c := range []struct{ args, says string }{
		{"version", "lacuna 0."},
		{"check --config /etc/lacuna/lacuna.yaml", "/etc/lacuna/lacuna.yaml is good"},
		{"engines", "ort       usable"},
		{"simulate -o /var/lib/lacuna/archive --days 14 --grid 40x60 --seed 3", "20240414"},
		{"fill /var/lib/lacuna/archive/20240414_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D.nc -o /var/lib/lacuna/filled --model starter --history /var/lib/lacuna/archive", "filled/20240414_"},
		{"inspect /var/lib/lacuna/filled/20240414_cmems_obs-oc_blk_bgc-plankton_my_l3-multi-1km_P1D_l4.nc", "CHL"},
	} {
		out, err := inside(t, root, config, strings.Fields(c.args)...)
		if err != nil || !strings.Contains(out, c.says) {
			t.Fatalf("lacuna %s: %v, want %q in:\n%s", c.args, err, c.says, out)
		}
	}
	if out, err := inside(t, root, config, "simulate", "-o", "/usr/share/archive", "--days", "1"); err == nil {
		t.Errorf("the user of the image may write to /usr: %s", out)
	}
	zone := strings.Replace(read(t, filepath.Join(root, "etc/lacuna/lacuna.yaml")), "time_zone: UTC", "time_zone: Europe/Lisbon", 1)
	write(t, filepath.Join(root, "tmp/zone.yaml"), zone)
	if out, err := inside(t, root, config, "check", "--config", "/tmp/zone.yaml"); err != nil {
		t.Errorf("a time zone is not known: %v\n%s", err, out)
	}
	t.Run("skopeo", func(t *testing.T) { loads(t, file) })
}

// loads has a program of the containers' world read the image, in both of the
// forms that the file has.
func loads(t *testing.T, file string) {
	if _, err := exec.LookPath("skopeo"); err != nil {
		t.Skip("there is no skopeo here")
	}
	for _, form := range []string{"oci-archive:", "docker-archive:"} {
		out, err := exec.Command("skopeo", "--insecure-policy", "copy", form+file, "dir:"+t.TempDir()).CombinedOutput()
		if err != nil {
			t.Errorf("as %s %v\n%s", form, err, out)
		}
	}
}

// writeProgram writes the image of the program as it is now.
func writeProgram(t *testing.T) string {
	t.Helper()
	runtime := os.Getenv("LACUNA_ONNXRUNTIME")
	switch {
	case testing.Short():
		t.Skip("links the program; leave -short out to run it")
	case runtime == "":
		t.Skip("no libonnxruntime: set LACUNA_ONNXRUNTIME, or run make test, which installs one")
	}
	dir := t.TempDir()
	program, file := filepath.Join(dir, "lacuna"), filepath.Join(dir, "lacuna.oci.tar")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "lacuna/daemon/cmd/lacuna").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	sources, err := supply.FindSources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	from := image.Sources{
		Program: program, Runtime: runtime, Config: "../../systemd/lacuna.yaml", Bill: "doc.go", Licences: "doc.go",
		CAs: "/etc/ssl/certs/ca-certificates.crt", Zones: filepath.Join(sources.GoRoot, "lib/time/zoneinfo.zip"),
	}
	if _, err := os.Stat(from.CAs); err != nil {
		t.Skipf("no certificates of authorities, which the package ca-certificates has: %v", err)
	}
	layers, err := image.Layers(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := image.Write(out, layers, about); err != nil {
		t.Fatal(err)
	}
	return file
}

// inside runs the entrypoint as a container's runtime does: with the root, user and
// environment of the image, /proc and a few devices, and no network. Who is not
// root here is not the user of the image but the only one there is.
func inside(t *testing.T, root string, config oci.ImageConfig, args ...string) (string, error) {
	t.Helper()
	namespaces, user := []string{"--mount", "--pid", "--fork", "--net", "--ipc"}, config.User
	if os.Geteuid() != 0 {
		namespaces, user = append(namespaces, "--map-root-user"), "0:0"
	}
	if out, err := exec.Command("unshare", append(namespaces, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces can be made here: %v: %s", err, out)
	}
	const start = `root=$1 user=$2; shift 2
mkdir -p "$root/proc" "$root/dev" && mount -t proc proc "$root/proc" || exit 125
for d in null urandom; do touch "$root/dev/$d" && mount --bind "/dev/$d" "$root/dev/$d" || exit 125; done
exec /usr/sbin/chroot --userspec="$user" "$root" "$@"`
	cmd := exec.Command("unshare", slices.Concat(namespaces, []string{"sh", "-c", start, "sh", root, user}, config.Entrypoint, args)...)
	cmd.Env = config.Env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// unpack checks an image as a registry would, puts its layers into root, and
// returns how it is to be run.
func unpack(t *testing.T, file, root string) oci.ImageConfig {
	t.Helper()
	blobs := contents(t, []byte(read(t, file)))
	for name, content := range blobs {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digest.FromBytes(content).Encoded() != sum {
			t.Errorf("the content of %s is not that of its name", name)
		}
	}
	blob := func(d oci.Descriptor) []byte {
		content := blobs["blobs/sha256/"+d.Digest.Encoded()]
		if int64(len(content)) != d.Size || d.Size == 0 {
			t.Fatalf("%s %s has %d bytes, want %d", d.MediaType, d.Digest, len(content), d.Size)
		}
		return content
	}
	var index oci.Index
	var manifest oci.Manifest
	var config oci.Image
	decode(t, blobs["index.json"], &index)
	decode(t, blob(index.Manifests[0]), &manifest)
	decode(t, blob(manifest.Config), &config)
	for i, layer := range manifest.Layers {
		unzipped, err := gzip.NewReader(bytes.NewReader(blob(layer)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(unzipped)
		if err != nil {
			t.Fatal(err)
		}
		if digest.FromBytes(plain) != config.RootFS.DiffIDs[i] {
			t.Errorf("layer %d is not that of the configuration", i)
		}
		extract := exec.Command("tar", "-xp", "-C", root)
		extract.Stdin = bytes.NewReader(plain)
		if out, err := extract.CombinedOutput(); err != nil && os.Geteuid() == 0 {
			t.Fatalf("unpack layer %d: %v: %s", i, err, out)
		}
	}
	return config.Config
}

// The same files give the same image, whatever their times, their owner, their
// place and the mask of this process; a byte more gives another.
func TestTheSameFilesGiveTheSameDigest(t *testing.T) {
	build := func(content string, changed time.Time, mode fs.FileMode) (digest.Digest, []byte) {
		file := filepath.Join(t.TempDir(), "program")
		write(t, file, content)
		if err := errors.Join(os.Chtimes(file, changed, changed), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		tree := image.Tree{"usr/bin/lacuna": {Mode: 0o755, From: file}, "tmp": {Mode: fs.ModeDir | fs.ModeSticky | 0o777}, "a/b/c": {Mode: 0o644, Text: "x"}}
		sum, err := image.Write(&out, []image.Tree{tree}, about)
		if err != nil {
			t.Fatal(err)
		}
		return sum, out.Bytes()
	}
	first, bytesOfFirst := build("program", time.Unix(1, 0), 0o755)
	second, bytesOfSecond := build("program", time.Unix(2_000_000, 0), 0o600)
	if first != second || !bytes.Equal(bytesOfFirst, bytesOfSecond) {
		t.Errorf("the digests of the same files are %s and %s", first, second)
	}
	if other, _ := build("programs", time.Unix(1, 0), 0o755); other == first {
		t.Error("another program has the same digest")
	}
}

func TestAnImageIsNamedByItsVersion(t *testing.T) {
	var out bytes.Buffer
	if _, err := image.Write(&out, []image.Tree{{"a": {Mode: 0o644}}}, about); err != nil {
		t.Fatal(err)
	}
	files := contents(t, out.Bytes())
	var old []struct {
		Config   string
		RepoTags []string
	}
	decode(t, files["manifest.json"], &old)
	if want := []string{"lacuna:0.2.0-dev-g0000000"}; !slices.Equal(old[0].RepoTags, want) {
		t.Errorf("tags %q, want %q", old[0].RepoTags, want)
	}
	var config oci.Image
	decode(t, files[old[0].Config], &config)
	if got := config.Config.Labels[oci.AnnotationVersion]; got != about.Version {
		t.Errorf("its label says version %q, want %q", got, about.Version)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"lacuna"}) {
		t.Errorf("user %q runs %q, want 65532:65532 and lacuna", config.Config.User, config.Config.Entrypoint)
	}
}

// contents returns the files of a tar file.
func contents(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for reader := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
