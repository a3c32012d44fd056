package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Folder is storage that the coordinator and all workers see. Its content:
//
//	objects/ab/abcd…          files by the sha256 of their content
//	open/DATASET/…json        messages whose products are not stored yet
//	done/ab/JOB.json          results by job
//	tries/ab/JOB              a line for each attempt at a job that has no result
//
// A file appears whole, under its final name, or not at all.
type Folder struct{ Root string }

// object returns the path of an object.
func (f Folder) object(sum string) string { return filepath.Join(f.Root, "objects", sum[:2], sum) }

func (f Folder) done(job string) string { return filepath.Join(f.Root, "done", job[:2], job+".json") }

func (f Folder) tries(job string) string { return filepath.Join(f.Root, "tries", job[:2], job) }

func isSum(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 2*sha256.Size
}

// Add copies a file into the folder under the hash that it must have. One that is
// there already is marked as in use.
func (f Folder) Add(path, sum string) error {
	if !isSum(sum) {
		return fmt.Errorf("share %s: %q is no sha256", path, sum)
	}
	if f.touch(sum) {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("share a file with the workers: %w", err)
	}
	defer in.Close()
	got, err := f.add(in, sum)
	if err == nil && got != sum {
		err = fmt.Errorf("its sha256 is %s, and it was %s", got, sum)
	}
	if err != nil {
		return fmt.Errorf("share %s with the workers: %w", path, err)
	}
	return nil
}

// AddBytes puts content into the folder and returns its hash.
func (f Folder) AddBytes(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	if f.touch(name) {
		return name, nil
	}
	_, err := f.add(bytes.NewReader(content), name)
	return name, err
}

// touch marks an object as in use and reports whether it is there.
func (f Folder) touch(sum string) bool {
	now := time.Now()
	return os.Chtimes(f.object(sum), now, now) == nil
}

// add copies content to the object want, unless it has another hash, which it
// returns.
func (f Folder) add(content io.Reader, want string) (got string, err error) {
	target := f.object(want)
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return "", err
	}
	out, err := renameio.NewPendingFile(target, renameio.WithPermissions(0o644))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	got, _, err = copySum(out, content)
	if err != nil || got != want {
		return got, err
	}
	return got, out.CloseAtomicallyReplace()
}

// Fetch copies an object to a path, which it does not leave with other content than
// that of the hash.
func (f Folder) Fetch(sum, path string) (err error) {
	if !isSum(sum) {
		return fmt.Errorf("fetch from the shared folder: %q is no sha256", sum)
	}
	in, err := os.Open(f.object(sum))
	if err != nil {
		return fmt.Errorf("fetch from the shared folder: %w", err)
	}
	defer in.Close()
	out, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Cleanup()) }()
	got, _, err := copySum(out, in)
	if err == nil && got != sum {
		err = fmt.Errorf("object %s of the shared folder is damaged, its sha256 is %s: remove it, and it is written again", sum, got)
	}
	if err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

// Read returns the content of an object.
func (f Folder) Read(sum string) ([]byte, error) {
	if !isSum(sum) {
		return nil, fmt.Errorf("read from the shared folder: %q is no sha256", sum)
	}
	content, err := os.ReadFile(f.object(sum))
	if err != nil {
		return nil, fmt.Errorf("read from the shared folder: %w", err)
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("object %s of the shared folder is damaged: remove it, and it is written again", sum)
	}
	return content, nil
}

func copySum(to io.Writer, from io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(to, h), from)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// Done returns the result of a job, and false where it has none yet.
func (f Folder) Done(job string) (r Result, ok bool, err error) {
	content, err := os.ReadFile(f.done(job))
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err != nil {
		return r, false, fmt.Errorf("read the result of job %s: %w", job, err)
	}
	return r, true, nil
}

// Finish records the result of a job and forgets its tries. Where the job has a
// result already, that one counts and is returned.
func (f Folder) Finish(r Result) (Result, error) {
	if before, ok, err := f.Done(r.Job); ok || err != nil {
		return before, err
	}
	if err := writeJSON(f.done(r.Job), r); err != nil {
		return r, fmt.Errorf("record the result of job %s: %w", r.Job, err)
	}
	if err := os.Remove(f.tries(r.Job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	return r, nil
}

// Forget removes a result that nobody adopts, so that the job is done anew.
func (f Folder) Forget(job string) error {
	if err := os.Remove(f.done(job)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Try records the beginning of an attempt at a job and returns the attempts so far,
// this one not among them, the last at the end. An attempt that ended in a failure is
// noted by Failed.
func (f Folder) Try(job, worker string, now time.Time) (before []string, err error) {
	path := f.tries(job)
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("count the attempts at job %s: %w", job, err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
		if line != "" {
			before = append(before, line)
		}
	}
	return before, f.note(job, fmt.Sprintf("%s %s", now.UTC().Format(time.RFC3339), worker))
}

// Failed replaces the last attempt at a job by one with the reason of its failure.
func (f Folder) Failed(job, worker, why string, now time.Time) error {
	path := f.tries(job)
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	lines = lines[:max(len(lines)-1, 0)]
	lines = append(lines, fmt.Sprintf("%s %s: %s", now.UTC().Format(time.RFC3339), worker, strings.ReplaceAll(why, "\n", " ")))
	return renameio.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (f Folder) note(job, line string) (err error) {
	path := f.tries(job)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = io.WriteString(file, line+"\n")
	return err
}

func writeJSON(path string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(path, content, 0o644)
}

// Place writes the files of a result to path, as Write does.
func (f Folder) Place(_ context.Context, r Result, path string) error {
	err := f.Fetch(r.SHA256, path)
	if err == nil && r.MembersSum != "" {
		err = f.Fetch(r.MembersSum, membersPath(path))
	}
	if err == nil && r.PictureSum != "" {
		err = f.Fetch(r.PictureSum, path+pictureEnding)
	}
	return err
}

// Withdraw takes the last attempt at a job back: it was neither done nor failed.
func (f Folder) Withdraw(job string) error {
	path := f.tries(job)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text := strings.TrimSuffix(string(content), "\n")
	text = text[:strings.LastIndex(text, "\n")+1]
	return renameio.WriteFile(path, []byte(text), 0o644)
}
