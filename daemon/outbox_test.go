package daemon

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"lacuna/daemon/operate"
	"lacuna/daemon/outbox"
	"lacuna/ledger"
	"lacuna/publish"
	"lacuna/publish/kafka"
	"lacuna/publish/kafka/consumer"

	"github.com/twmb/franz-go/pkg/kfake"
)

// freePort returns a loopback port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// kafkaOn makes the daemon of b publish to a broker on a port.
func (b *bench) kafkaOn(port int) {
	b.cfg.Publish.Kafka = &outbox.Kafka{Config: kafka.DefaultConfig()}
	b.cfg.Publish.Kafka.Brokers = []string{net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	b.cfg.Publish.Kafka.Timeout = time.Second
}

// broker starts a broker on a port, or on a free one for 0, and returns the port.
func broker(t *testing.T, port int) int {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.Ports(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	_, text, err := net.SplitHostPort(cluster.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (b *bench) publishStatus(t *testing.T) map[string]operate.SinkStatus {
	t.Helper()
	p, err := operate.JoinPublications(t.Context(), b.cfg.Operate())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]operate.SinkStatus{}
	for _, row := range s.Sinks {
		rows[row.Sink] = row
	}
	return rows
}

// consume returns the events that a consumer gets, as granule@revision, with a
// minus before a retraction.
func consume(t *testing.T, addr string, enough func(got []string) bool) []string {
	t.Helper()
	cfg := consumer.DefaultConfig()
	cfg.Brokers, cfg.Dir, cfg.Once = []string{addr}, t.TempDir(), enough == nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	c, err := consumer.New(cfg, func(_ context.Context, p consumer.Product) error {
		mark := ""
		if p.Retracted {
			mark = "-"
		}
		got = append(got, mark+p.Granule+"@"+strconv.Itoa(p.Revision))
		if enough != nil && enough(got) {
			cancel()
		}
		return p.Missing
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return got
}

// Kafka is away and the disk fills up: files are stored at once, the queue is
// delivered when the broker is back, full disk or not, and the granule that found
// no room is taken up again.
func TestNeitherAnAbsentKafkaNorAFullDiskLosesAnything(t *testing.T) {
	b := newBench(t)
	w := world(t, 24, 32)
	days := firstVersions(w, 3)
	port := freePort(t)
	b.kafkaOn(port)
	for _, d := range days[:2] {
		put(t, b.archive(), w.Granule(d))
	}
	s, err := b.daemon(t).Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "kafka:lacuna") || s.Products != 2 || s.Unfinished != 0 {
		t.Errorf("Once() = %+v, %v with the broker away, want two products and an error that names it", s, err)
	}
	if files := b.products(t); len(files) != 2 {
		t.Errorf("%d files with the broker away, want 2", len(files))
	}
	rows := b.publishStatus(t)
	if k := rows["kafka:lacuna"]; k.Waiting != 2 || k.Bytes == 0 || k.Attempts == 0 || k.Problem == "" || k.Oldest.IsZero() {
		t.Errorf("status of kafka is %+v, want two waiting with the problem", k)
	}
	if d := rows["disk"]; d.Waiting != 0 || d.Delivered != 2 {
		t.Errorf("status of disk is %+v, want all delivered", d)
	}

	broker(t, port)
	put(t, b.archive(), w.Granule(days[2]))
	b.cfg.Publish.Disk.FloorMiB = 1 << 40 // more than any disk has
	s, err = b.daemon(t).Once(t.Context())
	if err == nil || !strings.Contains(err.Error(), "floor") || s.Unfinished != 1 || s.Products != 0 {
		t.Errorf("Once() = %+v, %v on a full disk, want one granule unfinished", s, err)
	}
	if k := b.publishStatus(t)["kafka:lacuna"]; k.Waiting != 0 || k.Delivered != 2 {
		t.Errorf("status of kafka is %+v, want what was promised delivered", k)
	}
	b.cfg.Publish.Disk.FloorMiB = 0
	if s := b.once(t); s.Products != 1 {
		t.Errorf("Once() = %+v with room again, want the granule that waited", s)
	}
	want := []string{days[0].Name + "@1", days[1].Name + "@1", days[2].Name + "@1"}
	if got := consume(t, b.cfg.Publish.Kafka.Brokers[0], nil); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("consumer was told %v, want %v", got, want)
	}
}

func TestRetractionAndReplayReachTheConsumer(t *testing.T) {
	b := newBench(t)
	w := world(t, 24, 32)
	day := firstVersions(w, 1)[0]
	b.kafkaOn(broker(t, 0))
	put(t, b.archive(), w.Granule(day))
	b.once(t)
	p, err := operate.JoinPublications(t.Context(), b.cfg.Operate())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if n, err := p.Replay(t.Context(), operate.Replay{Sink: "kafka:lacuna"}); n != 1 || err != nil {
		t.Errorf("Replay() = %d, %v", n, err)
	}
	b.once(t)
	if gone, err := p.Retract(t.Context(), operate.Selection{Names: []string{day.Name}}, "sensor fault"); len(gone) != 1 || err != nil {
		t.Errorf("Retract() = %v, %v", gone, err)
	}
	b.once(t)
	want := []string{day.Name + "@1", "-" + day.Name + "@1"} // a consumer drops the replay
	if got := consume(t, b.cfg.Publish.Kafka.Brokers[0], nil); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("consumer was told %v, want %v", got, want)
	}
	if files := b.products(t); len(files) != 0 {
		t.Errorf("%v is still there after the retraction", files)
	}
}

func TestRunPublishesToTheEmbeddedBroker(t *testing.T) {
	b := newBench(t)
	port := freePort(t)
	b.cfg.Publish.Kafka = &outbox.Kafka{Config: kafka.DefaultConfig(), Embedded: true, EmbeddedPort: port}
	w := world(t, 24, 32)
	days := firstVersions(w, 2)
	for _, d := range days {
		put(t, b.archive(), w.Granule(d))
	}
	d := b.daemon(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	got := consume(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), func(got []string) bool { return len(got) == 2 })
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run() = %v", err)
	}
	if want := days[0].Name + "@1 " + days[1].Name + "@1"; strings.Join(got, " ") != want {
		t.Errorf("consumer was told %v, want %v", got, want)
	}
	if !strings.Contains(b.log.String(), "kafka=127.0.0.1:"+strconv.Itoa(port)) {
		t.Errorf("the log does not say where the broker is:\n%s", b.log)
	}
}

func TestWhatIsToldOfAProductIsTrue(t *testing.T) {
	b := newBench(t)
	w := world(t, 24, 32)
	put(t, b.archive(), w.Granule(firstVersions(w, 1)[0]))
	b.cfg.Publish.BaseURL, b.cfg.Publish.QuickLook = "https://example.org/p/", true
	b.once(t)
	book, err := ledger.Open(t.Context(), b.cfg.state().Ledger())
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	all, err := book.Publications(t.Context(), "", time.Time{}, time.Time{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	p := outbox.Delivery(ledger.Delivery{Publication: all[0]}).Product
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(b.products(t)[0])
	if err != nil || hash(content) != p.SHA256 || int64(len(content)) != p.Size {
		t.Errorf("told %s and %d bytes, the file has %s and %d, %v", p.SHA256, p.Size, hash(content), len(content), err)
	}
	if p.Mode != publish.NearRealTime || p.Model != "oi" || p.Variable != "CHL" || p.Units != "milligram m^-3" || p.Revision != 1 || p.Supersedes != 0 {
		t.Errorf("told %+v", p)
	}
	if p.CoverageBefore <= 0 || p.CoverageBefore >= p.CoverageAfter || p.MeanUncertainty <= 0 || p.MeanUncertainty > 2 {
		t.Errorf("coverage from %v to %v, uncertainty %v", p.CoverageBefore, p.CoverageAfter, p.MeanUncertainty)
	}
	if west, south, east, north := p.BBox[0], p.BBox[1], p.BBox[2], p.BBox[3]; west < 26 || east > 43 || south < 40 || north > 48 || west >= east {
		t.Errorf("bounding box is %v, want that of the Black Sea", p.BBox)
	}
	rel, _ := filepath.Rel(b.cfg.ProductsDir, b.products(t)[0])
	if want := "https://example.org/p/" + filepath.ToSlash(rel); p.Links["file"] != want || p.Links["quick_look"] != strings.TrimSuffix(want, ".nc")+".png" {
		t.Errorf("links are %v, want %s", p.Links, want)
	}
}

func TestPublishConfigErrorsNameLineAndRemedy(t *testing.T) {
	for text, want := range map[string]string{
		"retry_min: 0s":                                         "retry_min is 0s",
		"base_url: example.org":                                 "base_url is",
		"disk: {floor_mib: -1}":                                 "floor_mib is -1",
		"disk: {keep_days: {old: 1}}":                           `unknown key "old"`,
		"disk: {keep_days: {delayed: -1}}":                      "delayed is -1",
		"kafka: {prefix: lacuna}":                               "brokers is empty",
		"kafka: {embedded: true, brokers: ['a:1']}":             "embedded is true, but brokers are named",
		"s3: {endpoint: 'https://s3.example.org', bucket: a/b}": "bucket is",
	} {
		_, err := parseConfig("lacuna.yaml", []byte("publish:\n  "+text+"\n"+validConfig))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lacuna.yaml:2:") {
			t.Errorf("%s: %v, want line 2 and %q", text, err, want)
		}
	}
	good := "publish:\n  kafka: {embedded: true}\n  s3: {endpoint: 'https://s3.example.org', bucket: b}\n" + validConfig
	cfg, err := parseConfig("lacuna.yaml", []byte(good))
	if err != nil || cfg.Publish.Kafka.Prefix != "lacuna" || cfg.Publish.S3.Region != "us-east-1" || !cfg.Publish.QuickLook {
		t.Errorf("parseConfig() = %+v, %v, want the defaults around what the file says", cfg.Publish, err)
	}
}
