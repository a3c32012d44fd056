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
	"path"
	"strings"
	"time"

	"lacuna/internal/durable"
)

// Folder is storage that the coordinator and all workers see. Its content:
//
//	objects/ab/abcd…          files by the sha256 of their content
//	open/DATASET/…json        messages whose products are not stored yet
//	done/ab/JOB.json          results by job
//	tries/ab/JOB              a line for each attempt at a job that has no result
//	training/KEY.json         the files of the last checkpoint of a training
//	training/KEY.halt         the coordinator has it rest
type Folder struct{ Storage }

// object returns the key of an object.
func object(sum string) string { return path.Join("objects", sum[:2], sum) }

func doneKey(job string) string { return path.Join("done", job[:2], job+".json") }

func triesKey(job string) string { return path.Join("tries", job[:2], job) }

func isSum(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == 2*sha256.Size
}

// Add copies a file into the folder under the hash that it must have. One that is
// there already is marked as in use.
func (f Folder) Add(file, sum string) error {
	if !isSum(sum) {
		return fmt.Errorf("share %s: %q is no sha256", file, sum)
	}
	if there, err := f.Touch(object(sum)); there || err != nil {
		return err
	}
	got, size, err := sumFile(file)
	if err == nil && got != sum {
		err = fmt.Errorf("its sha256 is %s, and it was %s", got, sum)
	}
	if err != nil {
		return fmt.Errorf("share %s with the workers: %w", file, err)
	}
	in, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("share a file with the workers: %w", err)
	}
	defer in.Close()
	if err := f.Put(object(sum), in, size); err != nil {
		return fmt.Errorf("share %s with the workers: %w", file, err)
	}
	return nil
}

// AddBytes puts content into the folder and returns its hash.
func (f Folder) AddBytes(content []byte) (string, error) {
	sum := sha256.Sum256(content)
	name := hex.EncodeToString(sum[:])
	if there, err := f.Touch(object(name)); there || err != nil {
		return name, err
	}
	return name, f.putBytes(object(name), content)
}

func (f Folder) putBytes(key string, content []byte) error {
	return f.Put(key, bytes.NewReader(content), int64(len(content)))
}

// ErrGone says that a file of a job is not in the shared folder any more, as after the
// folder was restored from an older copy. Whoever waits for the job must prepare it
// anew.
var ErrGone = errors.New("a file of the job is gone")

// gone marks the error of an object that is not there.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// Fetch copies an object to a path, which it does not leave with other content than
// that of the hash.
func (f Folder) Fetch(sum, path string) (err error) {
	if !isSum(sum) {
		return fmt.Errorf("fetch from the shared folder: %q is no sha256", sum)
	}
	in, err := f.Storage.Open(object(sum))
	if err != nil {
		return fmt.Errorf("fetch from the shared folder: %w", gone(err))
	}
	defer in.Close()
	out, err := durable.Pending(path, 0o644)
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
	content, err := f.get(object(sum))
	if err != nil {
		return nil, fmt.Errorf("read from the shared folder: %w", gone(err))
	}
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return nil, fmt.Errorf("object %s of the shared folder is damaged: remove it, and it is written again", sum)
	}
	return content, nil
}

// get returns the content of a key.
func (f Folder) get(key string) ([]byte, error) {
	in, err := f.Storage.Open(key)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

func copySum(to io.Writer, from io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(io.MultiWriter(to, h), from)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// Done returns the result of a job, and false where it has none yet.
func (f Folder) Done(job string) (r Result, ok bool, err error) {
	content, err := f.get(doneKey(job))
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
// result already, that one counts and is returned: of two workers that finish at the
// same time one is first.
func (f Folder) Finish(r Result) (Result, error) {
	content, err := json.Marshal(r)
	if err != nil {
		return r, err
	}
	first, err := f.Create(doneKey(r.Job), content)
	if err != nil {
		return r, fmt.Errorf("record the result of job %s: %w", r.Job, err)
	}
	if !first {
		before, ok, err := f.Done(r.Job)
		if ok || err != nil {
			return before, err
		}
		return r, fmt.Errorf("record the result of job %s: another was there, and is gone", r.Job)
	}
	return r, f.Remove(triesKey(r.Job))
}

// Forget removes a result that nobody adopts, so that the job is done anew.
func (f Folder) Forget(job string) error { return f.Remove(doneKey(job)) }

// Try records the beginning of an attempt at a job and returns the attempts so far,
// this one not among them, the last at the end. An attempt that ended in a failure is
// noted by Failed. One worker at a time has a job: who has lost it and does not know
// yet may take a line away from the count, which costs one more attempt.
func (f Folder) Try(job, worker string, now time.Time) (before []string, err error) {
	if before, err = f.attempts(job); err != nil {
		return nil, fmt.Errorf("count the attempts at job %s: %w", job, err)
	}
	return before, f.setAttempts(job, append(before[:len(before):len(before)], fmt.Sprintf("%s %s", now.UTC().Format(time.RFC3339), worker)))
}

// Failed replaces the last attempt at a job by one with the reason of its failure.
func (f Folder) Failed(job, worker, why string, now time.Time) error {
	lines, err := f.attempts(job)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%s %s: %s", now.UTC().Format(time.RFC3339), worker, strings.ReplaceAll(why, "\n", " "))
	return f.setAttempts(job, append(lines[:max(len(lines)-1, 0)], line))
}

// Withdraw takes the last attempt at a job back: it was neither done nor failed.
func (f Folder) Withdraw(job string) error {
	lines, err := f.attempts(job)
	if err != nil || len(lines) == 0 {
		return err
	}
	return f.setAttempts(job, lines[:len(lines)-1])
}

func (f Folder) attempts(job string) ([]string, error) {
	content, err := f.get(triesKey(job))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.FieldsFunc(string(content), func(r rune) bool { return r == '\n' }), err
}

func (f Folder) setAttempts(job string, lines []string) error {
	return f.putBytes(triesKey(job), []byte(strings.Join(lines, "\n")+"\n"))
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
