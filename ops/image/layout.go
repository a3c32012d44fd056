package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	oci "github.com/opencontainers/image-spec/specs-go/v1"
)

// About is what an image says of itself.
type About struct {
	Version  string // as the program prints it
	Revision string // commit; empty: not known
	Created  time.Time
}

// Tag is the version as a tag, in which a plus cannot be.
func (a About) Tag() string { return strings.ReplaceAll(a.Version, "+", "-") }

// Write writes the image as a tar file and returns the digest of its manifest,
// by which it is known wherever it is copied.
func Write(w io.Writer, layers []Tree, about About) (digest.Digest, error) {
	out := layout{archive: tar.NewWriter(w)}
	config := about.config()
	manifest := oci.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageManifest, Annotations: config.Config.Labels}
	for _, tree := range layers {
		layer, plain, err := compressed(tree)
		if err != nil {
			return "", err
		}
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, plain)
		manifest.Layers = append(manifest.Layers, out.blob(oci.MediaTypeImageLayerGzip, layer))
	}
	manifest.Config = out.document(oci.MediaTypeImageConfig, config)
	described := out.document(oci.MediaTypeImageManifest, manifest)
	described.Platform = &config.Platform
	name := "lacuna:" + about.Tag()
	described.Annotations = map[string]string{oci.AnnotationRefName: about.Tag(), "io.containerd.image.name": "docker.io/library/" + name}
	out.file(oci.ImageIndexFile, encoded(oci.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: oci.MediaTypeImageIndex, Manifests: []oci.Descriptor{described},
	}))
	out.file(oci.ImageLayoutFile, encoded(oci.ImageLayout{Version: oci.ImageLayoutVersion}))
	// Docker before version 25 reads no index, but this.
	old := struct {
		Config           string
		RepoTags, Layers []string
	}{blobPath(manifest.Config.Digest), []string{name}, nil}
	for _, layer := range manifest.Layers {
		old.Layers = append(old.Layers, blobPath(layer.Digest))
	}
	out.file("manifest.json", encoded([]any{old}))
	if out.err == nil {
		out.err = out.archive.Close()
	}
	if out.err != nil {
		return "", fmt.Errorf("write the image: %w", out.err)
	}
	return described.Digest, nil
}

func (a About) config() oci.Image {
	labels := map[string]string{
		oci.AnnotationTitle:       "lacuna",
		oci.AnnotationDescription: "Gap-free satellite ocean maps, as granules arrive",
		oci.AnnotationLicenses:    "Apache-2.0",
		oci.AnnotationVersion:     a.Version,
		oci.AnnotationCreated:     a.Created.UTC().Format(time.RFC3339),
	}
	if a.Revision != "" {
		labels[oci.AnnotationRevision] = a.Revision
	}
	created := a.Created.UTC()
	return oci.Image{
		Created:  &created,
		Platform: oci.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config: oci.ImageConfig{
			User:         fmt.Sprintf("%d:%[1]d", User),
			ExposedPorts: map[string]struct{}{"8087/tcp": {}}, // of the status page
			Env:          []string{"PATH=/usr/bin", "HOME=/var/lib/lacuna", "ZONEINFO=" + zoneinfo},
			Entrypoint:   []string{"lacuna"},
			Cmd:          []string{"--help"},
			Volumes:      map[string]struct{}{"/var/lib/lacuna": {}},
			WorkingDir:   "/var/lib/lacuna",
			StopSignal:   "SIGTERM",
			Labels:       labels,
		},
		RootFS: oci.RootFS{Type: "layers"},
	}
}

// compressed returns a layer and the digest that it has without compression.
func compressed(tree Tree) (layer []byte, plain digest.Digest, err error) {
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	sum := sha256.New()
	if err := tree.Tar(io.MultiWriter(packed, sum)); err != nil {
		return nil, "", err
	}
	if err := packed.Close(); err != nil {
		return nil, "", fmt.Errorf("compress a layer: %w", err)
	}
	return out.Bytes(), digest.NewDigest(digest.SHA256, sum), nil
}

// layout writes the files of an OCI layout. After a first error it writes nothing.
type layout struct {
	archive *tar.Writer
	err     error
}

func (l *layout) file(name string, content []byte) {
	if l.err != nil {
		return
	}
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
	if l.err = l.archive.WriteHeader(header); l.err == nil {
		_, l.err = l.archive.Write(content)
	}
}

func (l *layout) blob(kind string, content []byte) oci.Descriptor {
	d := oci.Descriptor{MediaType: kind, Digest: digest.FromBytes(content), Size: int64(len(content))}
	l.file(blobPath(d.Digest), content)
	return d
}

func (l *layout) document(kind string, value any) oci.Descriptor { return l.blob(kind, encoded(value)) }

func blobPath(d digest.Digest) string { return "blobs/" + d.Algorithm().String() + "/" + d.Encoded() }

func encoded(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // structures of our own, which have a JSON form
	}
	return text
}
