package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// uneven is a reader that gives its bytes in reads of any length.
type uneven struct {
	io.Reader
	random *rand.Rand
	most   int
}

func (u uneven) Read(p []byte) (int, error) {
	return u.Reader.Read(p[:min(len(p), 1+u.random.IntN(u.most))])
}

// unsteady is a disk that is slow now and then.
type unsteady struct {
	tempFile
	random *rand.Rand
}

func (u unsteady) Write(p []byte) (int, error) {
	time.Sleep(time.Duration(u.random.IntN(3)) * time.Millisecond)
	return u.tempFile.Write(p)
}

func TestEveryByteIsHashedAndWrittenOnce(t *testing.T) {
	content := randomBytes(2*ringBytes + 12345)
	for _, tt := range []struct {
		name string
		most int // bytes of a read
		wrap func(tempFile) tempFile
	}{
		{"reads of a few bytes", stepBytes / 50, nil},
		{"reads as long as the ring", ringBytes, nil},
		{"a disk that is slower than the line", ringBytes, func(f tempFile) tempFile {
			return unsteady{f, rand.New(rand.NewPCG(1, 2))}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, spool := newMemArchive(), NewSpool(t.TempDir())
			if tt.wrap != nil {
				spool.wrap = tt.wrap
			}
			a.put("a.nc", string(content), longAgo())
			a.onOpening(func(Object) (io.ReadCloser, error) {
				return io.NopCloser(uneven{bytes.NewReader(content), rand.New(rand.NewPCG(3, 4)), tt.most}), nil
			})
			told := 0
			g, err := spool.Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"], OnBytes: func(n int) { told += n }})
			if err != nil {
				t.Fatal(err)
			}
			wantWhole(t, g, string(content))
			if told != len(content) {
				t.Errorf("%d bytes were told of, want %d", told, len(content))
			}
		})
	}
}

// A killed process leaves what is in the folder at that moment.
func TestNoteOfAKilledDownloadVouchesForTheRightBytes(t *testing.T) {
	const killedAt = 2*noteEvery + ringBytes/2
	content, dir, left := randomBytes(3*noteEvery), t.TempDir(), t.TempDir()
	a := newMemArchive()
	a.put("a.nc", string(content), longAgo())
	d := Download{Archive: a, Object: a.objects["a.nc"]}
	read := 0
	a.onOpening(func(Object) (io.ReadCloser, error) {
		src := bytes.NewReader(content)
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			if before := read; before < killedAt && before+len(p) >= killedAt {
				time.Sleep(20 * time.Millisecond) // for the bytes under way
				if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
					return 0, err
				}
			}
			n, err := src.Read(p)
			read += n
			return n, err
		})), nil
	})
	if _, err := NewSpool(dir).Bring(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	resumedAt := int64(-1)
	g, err := NewSpool(left).Bring(t.Context(), Download{Archive: openedAt{a, content, &resumedAt}, Object: d.Object})
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, g, string(content))
	if least := int64(killedAt - noteEvery - stepBytes - ringBytes); resumedAt < least {
		t.Errorf("resumed at byte %d, want %d at least", resumedAt, least)
	}
}

// openedAt remembers where its object was opened.
type openedAt struct {
	*memArchive
	content []byte
	at      *int64
}

func (a openedAt) Open(_ context.Context, _ Object, offset int64) (io.ReadCloser, error) {
	*a.at = offset
	return io.NopCloser(bytes.NewReader(a.content[offset:])), nil
}

// The line is silent when the disk fails: nobody may wait for its next byte.
func TestDiskFailureEndsADownloadWhoseLineIsSilent(t *testing.T) {
	dir := t.TempDir()
	spool, a := NewSpool(dir), newMemArchive()
	spool.wrap = func(f tempFile) tempFile { return failingFile{tempFile: f, write: syscall.ENOSPC} }
	_, err := spool.Bring(t.Context(), Download{Archive: silentAfter{a, "some bytes"}, Object: Object{Name: "a.nc", Size: 1000}})
	if !errors.Is(err, ErrSpool) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Bring() = %v, want the error of the disk", err)
	}
	if files := filesIn(t, dir); len(files) != 0 {
		t.Errorf("the spool holds %v, want nothing", files)
	}
}

// silentAfter gives some bytes, and then none until it is cancelled.
type silentAfter struct {
	*memArchive
	bytes string
}

func (a silentAfter) Open(ctx context.Context, _ Object, _ int64) (io.ReadCloser, error) {
	return io.NopCloser(io.MultiReader(strings.NewReader(a.bytes), readerFunc(func([]byte) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}))), nil
}

// On a slow line the bytes that have come are in the file, not in memory.
func TestSlowLineIsWrittenAsItComes(t *testing.T) {
	dir, a := t.TempDir(), newMemArchive()
	content := "0123456789"
	a.put("a.nc", content, longAgo())
	sent := 0
	a.onOpening(func(Object) (io.ReadCloser, error) {
		return io.NopCloser(readerFunc(func(p []byte) (int, error) {
			if sent == len(content) {
				return 0, io.EOF
			}
			parts, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"+partEnding))
			if err != nil || len(parts) != 1 {
				t.Fatalf("parts = %v, %v; want one", parts, err)
			}
			for begun := time.Now(); ; time.Sleep(time.Millisecond) {
				if info, err := os.Stat(parts[0]); err == nil && info.Size() == int64(sent) {
					break
				}
				if time.Since(begun) > 2*time.Minute {
					return 0, errors.New("what came before is not in the file")
				}
			}
			sent++
			return copy(p, content[sent-1:sent]), nil
		})), nil
	})
	g, err := NewSpool(dir).Bring(t.Context(), Download{Archive: a, Object: a.objects["a.nc"]})
	if err != nil {
		t.Fatal(err)
	}
	wantWhole(t, g, content)
}

// slowHash is a hash that takes its time.
type slowHash struct{ hash.Hash }

func (h slowHash) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return h.Hash.Write(p)
}

func TestNoByteIsReplacedBeforeItIsHashed(t *testing.T) {
	content := randomBytes(2*ringBytes + 12345)
	p, err := openPart(t.TempDir(), Object{Name: "a.nc", Size: int64(len(content))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.discard()
	p.sha = slowHash{p.sha}
	s := newStream(p, func(int) {}, func(error) {})
	for rest := content; len(rest) > 0; {
		n := copy(s.room(), rest)
		s.filled(n)
		rest = rest[n:]
	}
	if err := s.end(); err != nil || p.written != int64(len(content)) {
		t.Errorf("end() = %v after %d bytes, want all %d", err, p.written, len(content))
	}
	if sum, _ := p.sums(); sum != sumOf(content) {
		t.Errorf("the hash of the bytes is %s, want %s", sum, sumOf(content))
	}
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
