package chaos

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/spf13/afero"
)

// Ways in which archives mislead those who read them.
type trouble string

const (
	honest    trouble = ""
	drips     trouble = "drips"       // bytes come one by one
	truncates trouble = "truncates"   // a file ends in its middle
	garbles   trouble = "garbles"     // bytes of a file are others
	redirects trouble = "redirects"   // to a place that is not there
	lessening trouble = "lists less"  // a listing is half of it
	boasting  trouble = "lists more"  // a listing names what is not there
	refusing  trouble = "refuses"     // every request is an error
	cutting   trouble = "cuts resume" // a file ends in its middle, and is another when it is resumed
)

// archives are an FTP server and an S3 server with the same granules.
type archives struct {
	ftp     string // address
	ftpRoot string // folder that it serves
	s3      string // address that the daemon reads, which may mislead
	bucket  string // address of the server itself; also of the bucket of products

	onFTP, onS3 atomic.Value           // trouble
	cut         sync.Map               // names of objects of which cutting has sent the first half
	onDelivery  atomic.Pointer[func()] // called once, in the midst of a delivery to the bucket of products that then fails

	closers []func()
}

func newArchives(folder string) (*archives, error) {
	a := &archives{ftpRoot: filepath.Join(folder, "ftp")}
	a.onFTP.Store(honest)
	a.onS3.Store(honest)
	if err := os.MkdirAll(a.ftpRoot, 0o755); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a.ftp = listener.Addr().String()
	server := ftpserver.NewFtpServer(&ftpDriver{archives: a, settings: ftpserver.Settings{Listener: listener}})
	if err := server.Listen(); err != nil {
		return nil, err
	}
	go server.Serve() // ends with Stop
	a.closers = append(a.closers, func() { _ = server.Stop() })

	backend := s3mem.New()
	if err := errors.Join(backend.CreateBucket("granules"), backend.CreateBucket("products")); err != nil {
		return nil, err
	}
	host := httptest.NewServer(a.interrupting(gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog()), gofakes3.WithTimeSkewLimit(0)).Server()))
	a.bucket = host.URL
	target, err := url.Parse(host.URL)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target); r.Out.Host = target.Host },
		ModifyResponse: a.mislead, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo),
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch a.onS3.Load().(trouble) {
		case redirects:
			http.Redirect(w, r, "http://127.0.0.1:9/elsewhere", http.StatusTemporaryRedirect)
		case refusing:
			http.Error(w, "busy", http.StatusServiceUnavailable)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	a.s3 = front.URL
	a.closers = append(a.closers, host.Close, func() { front.CloseClientConnections(); front.Close() })
	return a, nil
}

// interrupting breaks off the next upload of a product where that is asked for.
func (a *archives) interrupting(server http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/products/") && strings.HasSuffix(r.URL.Path, ".nc") {
			if strike := a.onDelivery.Swap(nil); strike != nil {
				(*strike)()
				panic(http.ErrAbortHandler) // the connection ends, without an answer
			}
		}
		server.ServeHTTP(w, r)
	})
}

func (a *archives) close() {
	for _, end := range a.closers {
		end()
	}
}

// put gives an object new content in both archives.
func (a *archives) put(ctx context.Context, name string, content []byte, changed time.Time) error {
	temp := filepath.Join(filepath.Dir(a.ftpRoot), "incoming")
	file := filepath.Join(a.ftpRoot, name)
	if err := errors.Join(os.WriteFile(temp, content, 0o644), os.Chtimes(temp, changed, changed), os.Rename(temp, file)); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, a.bucket+"/granules/"+name, bytes.NewReader(content))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("put %s: %s", name, answer.Status)
	}
	return nil
}

// halved reports whether cutting has sent the first half of an object.
func (a *archives) halved(name string) bool {
	_, s3 := a.cut.Load("/granules/" + name)
	_, ftp := a.cut.Load("ftp:/" + name)
	return s3 || ftp
}

// mislead changes an answer of the S3 server.
func (a *archives) mislead(answer *http.Response) error {
	now := a.onS3.Load().(trouble)
	listing := answer.Request.URL.Query().Has("list-type")
	switch {
	case answer.StatusCode/100 != 2:
	case listing && (now == lessening || now == boasting):
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		text = wrongListing(text, now)
		answer.Body = io.NopCloser(bytes.NewReader(text))
		answer.ContentLength = int64(len(text))
		answer.Header.Set("Content-Length", fmt.Sprint(len(text)))
	case listing || answer.Request.Method != http.MethodGet:
	case now == drips, now == truncates, now == garbles:
		answer.Body = &wrongBody{ReadCloser: answer.Body, now: now, still: &a.onS3, length: answer.ContentLength}
	case now == cutting:
		if _, again := a.cut.LoadOrStore(answer.Request.URL.Path, true); !again {
			answer.Body = &wrongBody{ReadCloser: answer.Body, now: truncates, length: answer.ContentLength}
		}
	}
	return nil
}

var contents = regexp.MustCompile(`(?s)<Contents>.*?</Contents>`)

// wrongListing returns a listing without every other object, or with one that is
// not there.
func wrongListing(text []byte, now trouble) []byte {
	n := 0
	return contents.ReplaceAllFunc(text, func(one []byte) []byte {
		n++
		switch {
		case now == lessening && n%2 == 0:
			return nil
		case now == boasting && n == 1:
			more := regexp.MustCompile(`<Key>.*?</Key>`).ReplaceAll(one, []byte("<Key>20991231_not_there.nc</Key>"))
			return append(bytes.Clone(one), more...)
		}
		return one
	})
}

// wrongBody is a file that comes as no file should.
type wrongBody struct {
	io.ReadCloser
	now    trouble
	still  *atomic.Value // the trouble of its archive: a connection that drips is quick again when that is over
	length int64
	sent   int64
}

func (b *wrongBody) Read(p []byte) (int, error) {
	switch b.now {
	case drips:
		if b.still.Load().(trouble) == drips {
			time.Sleep(20 * time.Millisecond)
			p = p[:min(len(p), 1)]
		}
	case truncates:
		if b.sent >= b.length/2 {
			return 0, io.ErrUnexpectedEOF
		}
		p = p[:min(int64(len(p)), max(b.length/2-b.sent, 1))]
	}
	n, err := b.ReadCloser.Read(p)
	if b.now == garbles {
		for i := range p[:n] {
			if (b.sent+int64(i))%97 == 50 {
				p[i] ^= 0x55
			}
		}
	}
	b.sent += int64(n)
	return n, err
}

// ftpDriver serves the FTP server.
type ftpDriver struct {
	archives *archives
	settings ftpserver.Settings
}

func (d *ftpDriver) GetSettings() (*ftpserver.Settings, error)               { return &d.settings, nil }
func (d *ftpDriver) ClientConnected(ftpserver.ClientContext) (string, error) { return "ready", nil }
func (d *ftpDriver) ClientDisconnected(ftpserver.ClientContext)              {}
func (d *ftpDriver) GetTLSConfig() (*tls.Config, error)                      { return nil, errors.New("no TLS") }

func (d *ftpDriver) AuthUser(ftpserver.ClientContext, string, string) (ftpserver.ClientDriver, error) {
	if d.archives.onFTP.Load().(trouble) == refusing {
		return nil, errors.New("too many users")
	}
	return &ftpFolder{Fs: afero.NewBasePathFs(afero.NewOsFs(), d.archives.ftpRoot), archives: d.archives}, nil
}

// ftpFolder is the folder as one user sees it.
type ftpFolder struct {
	afero.Fs
	archives *archives
}

// ReadDir implements ftpserver.ClientDriverExtensionFileList.
func (f *ftpFolder) ReadDir(name string) ([]os.FileInfo, error) {
	all, err := afero.ReadDir(f.Fs, name)
	switch now := f.archives.onFTP.Load().(trouble); {
	case now == lessening:
		return all[:len(all)/2], err
	case now == boasting && len(all) > 0:
		return append(all, renamed{all[0], "20991231_not_there.nc"}), err
	}
	return all, err
}

type renamed struct {
	os.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

// GetHandle implements ftpserver.ClientDriverExtentionFileTransfer.
func (f *ftpFolder) GetHandle(name string, flags int, offset int64) (ftpserver.FileTransfer, error) {
	file, err := f.OpenFile(name, flags, 0)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	now := f.archives.onFTP.Load().(trouble)
	if now == cutting {
		now = honest
		if _, again := f.archives.cut.LoadOrStore("ftp:"+name, true); !again {
			now = truncates
		}
	}
	if now != drips && now != truncates { // FTP has no checksum: garbled bytes of a file cannot be told from a correction
		return file, nil
	}
	return &ftpFile{File: file, body: wrongBody{ReadCloser: file, now: now, still: &f.archives.onFTP, length: info.Size() - offset}}, nil
}

type ftpFile struct {
	afero.File
	body wrongBody
}

func (f *ftpFile) Read(p []byte) (int, error) { return f.body.Read(p) }
