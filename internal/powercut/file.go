package powercut

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

var (
	_ fs.NodeGetattrer  = (*node)(nil)
	_ fs.NodeSetattrer  = (*node)(nil)
	_ fs.NodeOpener     = (*node)(nil)
	_ fs.NodeReader     = (*node)(nil)
	_ fs.NodeWriter     = (*node)(nil)
	_ fs.NodeFsyncer    = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeStatfser   = (*node)(nil)
)

// attr fills in the attributes of a node; the disk's lock must be held.
func (n *node) attr(out *fuse.Attr) {
	out.Mode, out.Nlink, out.Ino = n.mode, uint32(max(n.links, 1)), uint64(n.id+1)
	out.Size = uint64(len(n.bytes))
	if n.target != "" {
		out.Size = uint64(len(n.target))
	}
	out.Blocks, out.Blksize = (out.Size+511)/512, pageBytes
	out.SetTimes(&n.changed, &n.changed, &n.changed)
}

// Getattr implements fs.NodeGetattrer.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.attr(&out.Attr)
	return 0
}

// Setattr implements fs.NodeSetattrer.
func (n *node) Setattr(_ context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if mode, ok := in.GetMode(); ok {
		n.mode = n.mode&syscall.S_IFMT | mode&0o7777
		n.disk.add(change{kind: chmod, node: n.id, offset: int64(n.mode)})
	}
	if size, ok := in.GetSize(); ok {
		n.truncate(int64(size))
	}
	if t, ok := in.GetMTime(); ok {
		n.changed = t
	}
	n.attr(&out.Attr)
	return 0
}

// truncate sets the length; the disk's lock must be held.
func (n *node) truncate(length int64) {
	n.bytes = resize(n.bytes, length)
	n.changed = time.Now()
	n.disk.add(change{kind: truncate, node: n.id, offset: length})
}

// Open implements fs.NodeOpener.
func (n *node) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if flags&syscall.O_TRUNC != 0 {
		n.truncate(0)
	}
	return nil, 0, 0
}

// Read implements fs.NodeReader.
func (n *node) Read(_ context.Context, _ fs.FileHandle, to []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	from := min(offset, int64(len(n.bytes)))
	end := min(from+int64(len(to)), int64(len(n.bytes)))
	return fuse.ReadResultData(slices.Clone(n.bytes[from:end])), 0
}

// Write implements fs.NodeWriter.
func (n *node) Write(_ context.Context, _ fs.FileHandle, bytes []byte, offset int64) (uint32, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.bytes = overwrite(n.bytes, bytes, offset)
	n.changed = time.Now()
	n.disk.add(change{kind: write, node: n.id, bytes: slices.Clone(bytes), offset: offset})
	return uint32(len(bytes)), 0
}

// Fsync implements fs.NodeFsyncer, of files and of folders.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	n.disk.add(change{kind: sync, node: n.id})
	return 0
}

// Readlink implements fs.NodeReadlinker.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) { return []byte(n.target), 0 }

// Statfs implements fs.NodeStatfser: a disk with room.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	const blocks = 64 << 30 / pageBytes
	out.Bsize, out.Frsize, out.NameLen = pageBytes, pageBytes, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = blocks, blocks, blocks, 1<<20, 1<<20
	return 0
}
