package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// disk is a folder that is seen through a mount, which can fail as a disk does, be
// taken away and come back. A process of its own serves it: one that used a disk
// that it serves itself could wait for itself.
type disk struct {
	folder string // where it is mounted
	behind string // where the files are
	server *exec.Cmd
	tell   io.WriteCloser
	told   *bufio.Reader
	mounts int  // how often it was mounted
	away   bool // it is not mounted
}

func newDisk(folder, behind string) (*disk, error) {
	d := &disk{folder: folder, behind: behind}
	for _, dir := range []string{folder, behind} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	return d, d.mount()
}

func (d *disk) mount() error {
	d.mounts++
	d.away = false
	d.server = exec.Command(os.Args[0], "disk", d.folder, d.behind)
	d.server.Env = append(os.Environ(), programEnv+"=1")
	d.server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.server.Stderr = os.Stderr
	var err, bad error
	d.tell, err = d.server.StdinPipe()
	told, bad := d.server.StdoutPipe()
	if err := errors.Join(err, bad, d.server.Start()); err != nil {
		return err
	}
	d.told = bufio.NewReader(told)
	return d.answer()
}

// answer waits until the server has done what it was told.
func (d *disk) answer() error {
	text, err := d.told.ReadString('\n')
	if err != nil || text != "done\n" {
		return fmt.Errorf("mount a disk on %s: %q, %w", d.folder, text, err)
	}
	return nil
}

// detach takes the mount away, also from under those who use it: what they have
// open stays, and what they open from now on is the bare folder below.
func (d *disk) detach() error {
	d.away = true
	return syscall.Unmount(d.folder, syscall.MNT_DETACH)
}

// remove takes the mount away for good.
func (d *disk) remove() {
	_ = d.detach()
	_ = d.server.Process.Kill()
	_ = d.server.Wait()
}

// fail lets every change of the disk end with an error, and with EIO every reading
// too; 0 mends it.
func (d *disk) fail(errno syscall.Errno) error { return d.become(fault{errno: errno}) }

// fault is what is wrong with a disk.
type fault struct {
	errno syscall.Errno // 0: nothing
	oneIn uint32        // of as many operations one fails; 0: all do
	under string        // folder of the disk whose files fail; empty: all do
}

func (d *disk) become(f fault) error {
	if _, err := fmt.Fprintf(d.tell, "%d %d %q\n", int(f.errno), f.oneIn, f.under); err != nil {
		return err
	}
	return d.answer()
}

// served is a disk in the process that serves it.
type served struct{ fault atomic.Pointer[fault] }

// serveDisk mounts a disk, and is told by its standard input how to fail.
func serveDisk(folder, behind string) error {
	var st syscall.Stat_t
	if err := syscall.Stat(behind, &st); err != nil {
		return err
	}
	d := &served{}
	d.fault.Store(&fault{})
	root := &fs.LoopbackRoot{Path: behind, Dev: st.Dev}
	none := time.Duration(0)
	top := &diskNode{LoopbackNode: fs.LoopbackNode{RootData: root}, disk: d}
	root.RootNode = top
	server, err := fs.Mount(folder, top, &fs.Options{
		EntryTimeout: &none, AttrTimeout: &none, // no error is hidden by a cache
		MountOptions: fuse.MountOptions{AllowOther: true, DirectMount: true, FsName: "chaos", Name: "chaos", DisableXAttrs: true, MaxWrite: 1 << 20},
	})
	if err != nil {
		return err
	}
	fmt.Println("done")
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); fmt.Println("done") {
			var f fault
			_, _ = fmt.Sscanf(lines.Text(), "%d %d %q", &f.errno, &f.oneIn, &f.under)
			d.fault.Store(&f)
		}
	}()
	server.Wait()
	return nil
}

// changing returns what a change of a file or folder ends with.
func (d *served) changing(path string) syscall.Errno {
	f := d.fault.Load()
	if f.errno == 0 || !strings.HasPrefix(path, f.under) || f.oneIn > 1 && rand.Uint32N(f.oneIn) != 0 {
		return 0
	}
	return f.errno
}

// reading returns what reading a file or folder ends with.
func (d *served) reading(path string) syscall.Errno {
	if d.fault.Load().errno != syscall.EIO {
		return 0
	}
	return d.changing(path)
}

// diskNode is a file or folder of a disk.
type diskNode struct {
	fs.LoopbackNode
	disk *served
}

func (n *diskNode) changing() syscall.Errno { return n.disk.changing(n.Path(nil)) }
func (n *diskNode) reading() syscall.Errno  { return n.disk.reading(n.Path(nil)) }

// WrapChild implements fs.NodeWrapChilder: what is in a folder of a disk is of the disk.
func (n *diskNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &diskNode{LoopbackNode: fs.LoopbackNode{RootData: child.(*fs.LoopbackNode).RootData}, disk: n.disk}
}

// removing is what a change ends with that needs no room.
func (n *diskNode) removing() syscall.Errno {
	if e := n.changing(); e != syscall.ENOSPC {
		return e
	}
	return 0
}

func (n *diskNode) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.changing(); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *diskNode) Rmdir(ctx context.Context, name string) syscall.Errno {
	if e := n.removing(); e != 0 {
		return e
	}
	return n.LoopbackNode.Rmdir(ctx, name)
}

func (n *diskNode) Unlink(ctx context.Context, name string) syscall.Errno {
	if e := n.removing(); e != 0 {
		return e
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *diskNode) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, to string, flags uint32) syscall.Errno {
	if e := n.changing(); e != 0 {
		return e
	}
	return n.LoopbackNode.Rename(ctx, name, parent, to, flags)
}

func (n *diskNode) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.changing(); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Symlink(ctx, target, name, out)
}

func (n *diskNode) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if e := n.changing(); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Link(ctx, target, name, out)
}

func (n *diskNode) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if e := n.removing(); e != 0 {
		return e
	}
	return n.LoopbackNode.Setattr(ctx, within(f), in, out)
}

func (n *diskNode) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.LoopbackNode.Getattr(ctx, within(f), out)
}

// within returns the file of a handle: one that was removed or replaced since it was
// opened has no path any more.
func within(f fs.FileHandle) fs.FileHandle {
	if f, ok := f.(*diskFile); ok {
		return f.file
	}
	return nil
}

func (n *diskNode) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	if e := n.reading(); e != 0 {
		return nil, e
	}
	return n.LoopbackNode.Readdir(ctx)
}

func (n *diskNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if e := n.changing(); e != 0 {
		return nil, nil, 0, e
	}
	inode, file, _, e := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	return inode, n.disk.file(path.Join(n.Path(nil), name), file, e), 0, e
}

func (n *diskNode) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if e := n.reading(); e != 0 {
		return nil, 0, e
	}
	if e := n.changing(); e != 0 && flags&(syscall.O_WRONLY|syscall.O_RDWR) != 0 && e == syscall.EROFS {
		return nil, 0, e
	}
	file, _, e := n.LoopbackNode.Open(ctx, flags)
	return n.disk.file(n.Path(nil), file, e), 0, e
}

// Statfs says that a full disk is full.
func (n *diskNode) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	e := n.LoopbackNode.Statfs(ctx, out)
	if n.changing() == syscall.ENOSPC {
		out.Bfree, out.Bavail = 0, 0
	}
	return e
}

// diskFile is an open file of a disk. It hides the descriptor, so that every call
// comes here.
type diskFile struct {
	file *fs.LoopbackFile
	disk *served
	path string
}

func (d *served) file(path string, file fs.FileHandle, e syscall.Errno) fs.FileHandle {
	if e != 0 {
		return nil
	}
	return &diskFile{file: file.(*fs.LoopbackFile), disk: d, path: path}
}

func (f *diskFile) Read(ctx context.Context, to []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	if e := f.disk.reading(f.path); e != 0 {
		return nil, e
	}
	return f.file.Read(ctx, to, at)
}

func (f *diskFile) Write(ctx context.Context, data []byte, at int64) (uint32, syscall.Errno) {
	if e := f.disk.changing(f.path); e != 0 {
		return 0, e
	}
	return f.file.Write(ctx, data, at)
}

func (f *diskFile) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	if e := f.disk.changing(f.path); e != 0 {
		return e
	}
	return f.file.Fsync(ctx, flags)
}

func (f *diskFile) Flush(ctx context.Context) syscall.Errno   { return f.file.Flush(ctx) }
func (f *diskFile) Release(ctx context.Context) syscall.Errno { return f.file.Release(ctx) }

func TestDiskFailsAsItIsTold(t *testing.T) {
	top := t.TempDir()
	d, err := newDisk(top+"/disk", top+"/behind")
	if err != nil {
		t.Skipf("a disk cannot be mounted here, which needs /dev/fuse and root or fusermount3: %v", err)
	}
	defer d.remove()
	file := d.folder + "/a"
	write := func() error { return os.WriteFile(file, []byte("text"), 0o644) }
	read := func() error { _, err := os.ReadFile(file); return err }
	fail := func(errno syscall.Errno) {
		if err := d.fail(errno); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		fails       syscall.Errno
		write, read error
	}{
		{0, nil, nil},
		{syscall.ENOSPC, syscall.ENOSPC, nil},
		{syscall.EROFS, syscall.EROFS, nil},
		{syscall.EIO, syscall.EIO, syscall.EIO},
		{0, nil, nil},
	} {
		fail(tt.fails)
		if err := write(); !errors.Is(err, tt.write) {
			t.Errorf("%v: write: %v", tt.fails, err)
		}
		if tt.fails == syscall.ENOSPC { // the file was emptied before the bytes found no room
			fail(0)
			_ = write()
			fail(tt.fails)
		}
		if err := read(); !errors.Is(err, tt.read) {
			t.Errorf("%v: read: %v", tt.fails, err)
		}
	}
	if err := d.become(fault{errno: syscall.EIO, under: "elsewhere"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(write(), read()); err != nil {
		t.Errorf("another folder of the disk fails: %v", err)
	}
	if err := d.become(fault{errno: syscall.EIO, oneIn: 4, under: "a"}); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for range 200 {
		if read() != nil {
			failed++
		}
	}
	if failed == 0 || failed == 200 {
		t.Errorf("of a disk that fails now and then %d readings of 200 failed", failed)
	}
	fail(0)
	if err := d.detach(); err != nil {
		t.Fatal(err)
	}
	if err := read(); !os.IsNotExist(err) {
		t.Errorf("without the mount: %v", err)
	}
	if err := d.mount(); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("with the mount again: %v", err)
	}
}
