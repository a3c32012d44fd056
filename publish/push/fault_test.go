package push

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	ftpserver "github.com/fclairamb/ftpserverlib"

	"lacuna/publish"
	"lacuna/publish/sinktest"
)

// large returns a product of some megabytes that do not repeat themselves.
func large(t *testing.T, revision int) publish.Product { return sized(t, revision, 3<<20) }

func sized(t *testing.T, revision, size int) publish.Product {
	t.Helper()
	p := sinktest.Product(t, "sea", "a", revision)
	var content bytes.Buffer
	for i := 0; content.Len() < size; i++ {
		sum := sha256.Sum256(fmt.Append(nil, revision, i))
		content.Write(sum[:])
	}
	must(t, os.WriteFile(p.Path, content.Bytes(), 0o600))
	sum := sha256.Sum256(content.Bytes())
	p.Size, p.SHA256 = int64(content.Len()), hex.EncodeToString(sum[:])
	return p
}

// final is where receivers find p.
func (h host) final(p publish.Product) string {
	return filepath.Join(h.root, filepath.FromSlash(testFolders.Folder(p.Dataset, p.Time)), p.Name)
}

// neverPartial fails t unless the file under the final name is one of some
// products, or absent.
func (h host) neverPartial(t *testing.T, of ...publish.Product) {
	t.Helper()
	content, err := os.ReadFile(h.final(of[0]))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	sum := sha256.Sum256(content)
	for _, p := range of {
		if p.SHA256 == hex.EncodeToString(sum[:]) {
			return
		}
	}
	t.Errorf("the file under the final name has %d bytes of no revision", len(content))
}

func (h host) receivesOnly(t *testing.T, p publish.Product) {
	t.Helper()
	got := receive(t, h.root, p.Dataset)
	if len(got) != 1 || got[p.Granule].SHA256 != p.SHA256 || got[p.Granule].Revision != p.Revision {
		t.Errorf("a receiver has %+v, want revision %d with %s", got, p.Revision, p.SHA256)
	}
}

// remembers fails t unless the manifest still knows a revision that was replaced:
// other bytes under its number are refused.
func (h host) remembers(t *testing.T, first, second publish.Product) {
	t.Helper()
	if err := h.open(t).Publish(t.Context(), sinktest.Other(t, first)); !errors.Is(err, publish.ErrConflict) {
		t.Errorf("Publish() = %v of other bytes under the revision that %s replaced, want ErrConflict", err, second.ID())
	}
}

// An upload that finds the disk full in its middle shows nothing, says what to do,
// and goes on where it stopped.
func TestFullDiskIsSaidAndTheUploadResumes(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			first, second := large(t, 1), large(t, 2)
			must(t, h.open(t).Publish(t.Context(), first))
			h.room.Store(2 << 20)
			err := h.open(t).Publish(t.Context(), second)
			if err == nil || errors.Is(err, publish.ErrPermanent) || !strings.Contains(err.Error(), "goes on where it stopped") {
				t.Fatalf("Publish() = %v on a full disk, want a passing error with the remedy", err)
			}
			h.neverPartial(t, first)
			h.room.Store(-1)
			before := h.written.Load()
			must(t, h.open(t).Publish(t.Context(), second))
			h.receivesOnly(t, second)
			if sent := h.written.Load() - before; sent > 2<<20 {
				t.Errorf("%d bytes were sent for the megabyte that was missing", sent)
			}
		})
	}
}

// Between any two renamings the service is killed: the product comes all the
// same, without being sent again, and no file is ever seen in part.
func TestKilledBetweenUploadAndRename(t *testing.T) {
	all := hosts()
	all["FTP that renames over no file"] = func(t *testing.T) host {
		h := all["FTP"](t)
		h.renameOff.Store(true)
		return h
	}
	for name, start := range all {
		t.Run(name, func(t *testing.T) {
			for renames := range 24 {
				h := start(t)
				first, second := sized(t, 1, 100_000), sized(t, 2, 100_000)
				must(t, h.open(t).Publish(t.Context(), first))
				h.onRename.Store(int64(renames))
				err := h.open(t).Publish(t.Context(), second)
				h.neverPartial(t, first, second)
				sent := h.written.Load()
				h.onRename.Store(-1)
				must(t, h.open(t).Publish(t.Context(), second))
				h.receivesOnly(t, second)
				h.remembers(t, first, second)
				if again := h.written.Load() - sent; again > 20_000 {
					t.Errorf("killed before renaming %d: %d bytes were sent again", renames, again)
				}
				if err == nil {
					if renames < 3 {
						t.Errorf("a revision was shown with %d renamings", renames)
					}
					return
				}
			}
			t.Error("a revision takes more than 24 renamings")
		})
	}
}

// A line that is cut in the middle of an upload shows nothing, and what came of it
// is not sent twice.
func TestCutLineResumes(t *testing.T) {
	h := newSSHHost(t)
	place := host{h.trouble, h.root, h.sink}
	p := large(t, 1)
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		for h.written.Load() < 1<<20 {
			time.Sleep(time.Millisecond)
		}
		h.cut()
	}()
	slow := h.config(t)
	slow.Verify = BySize // one piece after the other, so that the cut comes before the end
	if err := openSFTP(t, slow).Publish(t.Context(), p); err == nil || errors.Is(err, publish.ErrPermanent) {
		t.Fatalf("Publish() = %v over a line that was cut, want a passing error", err)
	}
	<-cut
	place.neverPartial(t, p)
	if _, err := os.Stat(place.final(p)); err == nil {
		t.Fatal("the cut came after the end of the upload")
	}
	before := h.written.Load()
	must(t, h.sink(t).Publish(t.Context(), p))
	place.receivesOnly(t, p)
	if sent := h.written.Load() - before; sent > p.Size-(1<<19) {
		t.Errorf("%d bytes were sent after the cut, of %d", sent, p.Size)
	}
}

// What a server has of an upload may not be what was sent: a disk that lost its
// last blocks, a byte that was turned.
func TestWrongBytesAreNeverShown(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			p := large(t, 1)
			h.flip.Store(true)
			if err := h.open(t).Publish(t.Context(), p); err == nil || errors.Is(err, publish.ErrPermanent) {
				t.Errorf("Publish() = %v with a byte turned, want a passing error", err)
			}
			h.neverPartial(t, p)
			must(t, h.open(t).Publish(t.Context(), p))
			h.receivesOnly(t, p)

			next := large(t, 2)
			h.room.Store(1 << 20)
			if err := h.open(t).Publish(t.Context(), next); err == nil {
				t.Fatal("Publish() is nil on a full disk")
			}
			h.room.Store(-1)
			parts, _ := filepath.Glob(filepath.Join(filepath.Dir(h.final(p)), "*"+partEnding))
			if len(parts) != 1 {
				t.Fatalf("parts are %v, want one", parts)
			}
			part, err := os.ReadFile(parts[0])
			must(t, err)
			copy(part[len(part)-4096:], make([]byte, 4096)) // a crash: the size was written, the last block was not
			must(t, os.WriteFile(parts[0], part, 0o644))
			must(t, h.open(t).Publish(t.Context(), next))
			h.receivesOnly(t, next)
		})
	}
}

// A file that lies under the final name is used where it is the product, and
// replaced where it is not; receivers may take files away.
func TestFileThatIsThereAlready(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			p := large(t, 1)
			content, err := os.ReadFile(p.Path)
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(h.final(p)), 0o755))
			must(t, os.WriteFile(h.final(p), content, 0o644))
			must(t, h.open(t).Publish(t.Context(), p))
			h.receivesOnly(t, p)
			if sent := h.written.Load(); sent > 1<<20 {
				t.Errorf("%d bytes were sent of a file that was there", sent)
			}

			content[len(content)-1] ^= 1 // of the same size
			must(t, os.WriteFile(h.final(p), content, 0o644))
			must(t, os.Remove(publish.SideName(h.final(p))))
			must(t, h.open(t).Publish(t.Context(), p))
			h.receivesOnly(t, p)

			must(t, os.RemoveAll(filepath.Dir(h.final(p))))
			must(t, h.open(t).Publish(t.Context(), p)) // a replay for a receiver that has lost it
			h.receivesOnly(t, p)
		})
	}
}

// An upload of a revision that was overtaken does not stay behind.
func TestPartsOfOtherRevisionsAreSwept(t *testing.T) {
	for name, start := range hosts() {
		t.Run(name, func(t *testing.T) {
			h := start(t)
			h.room.Store(1 << 20)
			if err := h.open(t).Publish(t.Context(), large(t, 1)); err == nil {
				t.Fatal("Publish() is nil on a full disk")
			}
			h.room.Store(-1)
			second := large(t, 2)
			must(t, h.open(t).Publish(t.Context(), second))
			h.receivesOnly(t, second) // fails where a part is there
		})
	}
}

func TestUploadResumesByAPPEWithoutREST(t *testing.T) {
	h := newFTPHost(t, ftpserver.Settings{})
	place := host{h.trouble, h.root, h.sink}
	p := large(t, 1)
	h.room.Store(1 << 20)
	if err := h.sink(t).Publish(t.Context(), p); err == nil {
		t.Fatal("Publish() is nil on a full disk")
	}
	h.room.Store(-1)
	before := h.written.Load()
	h.address = withoutREST(t, h.address)
	must(t, h.sink(t).Publish(t.Context(), p))
	place.receivesOnly(t, p)
	if sent := h.written.Load() - before; sent > p.Size-(1<<19) {
		t.Errorf("%d bytes were sent, of %d of which a third was there", sent, p.Size)
	}
}

func TestStalledServerEndsADelivery(t *testing.T) {
	h := newSSHHost(t)
	cfg := h.config(t)
	cfg.Timeout = 300 * time.Millisecond
	s := openSFTP(t, cfg)
	must(t, s.Check(t.Context()))
	h.stall.Store(true)
	defer h.stall.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.Publish(ctx, large(t, 1)); err == nil || ctx.Err() != nil {
		t.Errorf("Publish() = %v (%v), want an error after the timeout", err, ctx.Err())
	}
}
