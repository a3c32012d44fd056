package s3

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"lacuna/fetch"
	"lacuna/fetch/archivetest"
)

const versityModule = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"

// gateway is a real S3 host over a folder, which checks signatures.
type gateway struct {
	root   string
	client *minio.Client
	cfg    Config
}

// versity returns the path of the gateway's program, building it where that
// was not done before.
func versity(t *testing.T) string {
	t.Helper()
	if os.Getenv("LACUNA_LONG") == "" {
		t.Skip("part of the long suite; set LACUNA_LONG=1")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skipf("no cache folder to build versitygw in: %v", err)
	}
	dir := filepath.Join(cache, "lacuna-test", "versitygw-1.8.0")
	program := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(program); err == nil {
		return program
	}
	install := exec.Command("go", "install", versityModule)
	install.Dir = t.TempDir()
	install.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=")
	if out, err := install.CombinedOutput(); err != nil {
		t.Skipf("versitygw cannot be built here: %v\n%s", err, out)
	}
	return program
}

func newGateway(t *testing.T, program string) *gateway {
	t.Helper()
	t.Setenv("S3_TEST_ACCESS", "AKIAVERSITY")
	t.Setenv("S3_TEST_SECRET", "a real secret")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	g := &gateway{root: t.TempDir(), cfg: DefaultConfig()}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "--port", address, "--quiet", "posix", g.root)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY_ID=AKIAVERSITY", "ROOT_SECRET_ACCESS_KEY=a real secret")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("versitygw: %s", out.String())
		}
	})
	g.client, err = minio.New(address, &minio.Options{Creds: credentials.NewStaticV4("AKIAVERSITY", "a real secret", "")})
	must(t, err)
	g.cfg.Endpoint, g.cfg.Bucket, g.cfg.Prefix = "http://"+address, bucket, "native/P"
	g.cfg.AccessKey.Env, g.cfg.SecretKey.Env = "S3_TEST_ACCESS", "S3_TEST_SECRET"
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if err = g.client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}); err == nil {
			return g
		}
		if time.Now().After(deadline) {
			t.Fatalf("versitygw does not answer: %v", err)
		}
	}
}

func (g *gateway) put(t *testing.T, name string, content []byte, options minio.PutObjectOptions) {
	t.Helper()
	_, err := g.client.PutObject(t.Context(), bucket, "native/P/"+name, bytes.NewReader(content), int64(len(content)), options)
	must(t, err)
}

func TestVersityConforms(t *testing.T) {
	program := versity(t)
	archivetest.Run(t, func(t *testing.T) archivetest.Fixture {
		g := newGateway(t, program)
		g.cfg.PageObjects = 3
		return archivetest.Fixture{
			Archive: open(t, g.cfg),
			Put: func(name string, content []byte, _ time.Time) {
				g.put(t, name, content, minio.PutObjectOptions{DisableMultipart: true})
			},
			Remove: func(name string) {
				must(t, g.client.RemoveObject(t.Context(), bucket, "native/P/"+name, minio.RemoveObjectOptions{}))
			},
			Sever:  func() { must(t, os.RemoveAll(filepath.Join(g.root, bucket))) },
			Refuse: func() { t.Setenv("S3_TEST_SECRET", "an old secret") },
			Summed: true,
		}
	})
}

func TestVersityMultipartObjectHasNoChecksumAndResumes(t *testing.T) {
	g := newGateway(t, versity(t))
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<20-3)
	g.put(t, "a.nc", content, minio.PutObjectOptions{PartSize: 5 << 20})
	a := open(t, g.cfg)
	objects, err := a.List(t.Context(), fetch.Scope{})
	must(t, err)
	if len(objects) != 1 || objects[0].MD5 != "" || objects[0].ETag == "" {
		t.Fatalf("List() = %+v, want a tag and no checksum", objects)
	}
	r, err := a.Open(t.Context(), objects[0], 7_000_000)
	must(t, err)
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[7_000_000:]) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}
