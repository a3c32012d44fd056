package powercut

import (
	"context"
	"fmt"
	"slices"
	gosync "sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Disk is a mounted file system that keeps a log.
type Disk struct {
	server *fuse.Server

	mu  gosync.Mutex // guards the log and every node
	log Log
}

// Mount mounts an empty disk on a folder.
func Mount(folder string) (*Disk, error) {
	d := &Disk{}
	top := d.newNode(syscall.S_IFDIR|0o755, "")
	none := time.Duration(0)
	var err error
	d.server, err = fs.Mount(folder, top, &fs.Options{
		// Nothing is cached, so that the log has every change when its call returns.
		EntryTimeout: &none, AttrTimeout: &none, NegativeTimeout: nil,
		MountOptions: fuse.MountOptions{AllowOther: true, DirectMount: true, FsName: "powercut", Name: "powercut", DisableXAttrs: true, MaxWrite: 1 << 20},
	})
	if err != nil {
		return nil, fmt.Errorf("mount a disk on %s: %w", folder, err)
	}
	return d, nil
}

// Mark puts a note into the log: what happens outside of the disk, such as a
// message that was sent, is known to have come after all changes before it.
func (d *Disk) Mark(note any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(change{kind: mark, note: note})
}

// Unmount takes the disk away and returns its log. Nothing may use it any more.
func (d *Disk) Unmount() (*Log, error) {
	if err := d.server.Unmount(); err != nil {
		return nil, fmt.Errorf("unmount: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &d.log, nil
}

// add appends to the log; d.mu must be held.
func (d *Disk) add(c change) { d.log.changes = append(d.log.changes, c) }

// newNode makes a node without a name; d.mu must be held, or d not mounted yet.
func (d *Disk) newNode(mode uint32, target string) *node {
	n := &node{disk: d, id: len(d.log.nodes), mode: mode, target: target, changed: time.Now()}
	d.log.nodes = append(d.log.nodes, shape{folder: mode&syscall.S_IFMT == syscall.S_IFDIR, target: target, mode: mode})
	if mode&syscall.S_IFMT == syscall.S_IFDIR {
		n.children = map[string]*node{}
	}
	return n
}

// node is a file, folder or symbolic link.
type node struct {
	fs.Inode
	disk *Disk
	id   int

	mode     uint32
	changed  time.Time
	links    int
	target   string
	bytes    []byte
	children map[string]*node // of a folder
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeSymlinker = (*node)(nil)
	_ fs.NodeLinker    = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
)

// Lookup implements fs.NodeLookuper.
func (n *node) Lookup(_ context.Context, text string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := n.children[text]
	if child == nil {
		return nil, syscall.ENOENT
	}
	child.attr(&out.Attr)
	return &child.Inode, 0
}

// Readdir implements fs.NodeReaddirer.
func (n *node) Readdir(context.Context) (fs.DirStream, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	var list []fuse.DirEntry
	for text, child := range n.children {
		list = append(list, fuse.DirEntry{Name: text, Mode: child.mode, Ino: uint64(child.id + 1)})
	}
	slices.SortFunc(list, func(a, b fuse.DirEntry) int { return int(a.Ino) - int(b.Ino) })
	return fs.NewListDirStream(list), 0
}

// make gives a new node a name in n.
func (n *node) make(ctx context.Context, text string, mode uint32, target string, out *fuse.EntryOut) (*node, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	if n.children[text] != nil {
		return nil, syscall.EEXIST
	}
	child := n.disk.newNode(mode, target)
	child.links = 1
	n.NewPersistentInode(ctx, child, fs.StableAttr{Mode: mode & syscall.S_IFMT, Ino: uint64(child.id + 1)})
	n.children[text] = child
	n.disk.add(change{kind: link, node: child.id, to: name{n.id, text}})
	child.attr(&out.Attr)
	return child, 0
}

// Create implements fs.NodeCreater.
func (n *node) Create(ctx context.Context, text string, _, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	child, errno := n.make(ctx, text, syscall.S_IFREG|mode&0o7777, "", out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return &child.Inode, nil, 0, 0
}

// Mkdir implements fs.NodeMkdirer.
func (n *node) Mkdir(ctx context.Context, text string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child, errno := n.make(ctx, text, syscall.S_IFDIR|mode&0o7777, "", out)
	if errno != 0 {
		return nil, errno
	}
	return &child.Inode, 0
}

// Symlink implements fs.NodeSymlinker.
func (n *node) Symlink(ctx context.Context, target, text string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	child, errno := n.make(ctx, text, syscall.S_IFLNK|0o777, target, out)
	if errno != 0 {
		return nil, errno
	}
	return &child.Inode, 0
}

// Link implements fs.NodeLinker.
func (n *node) Link(_ context.Context, to fs.InodeEmbedder, text string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := to.(*node)
	if n.children[text] != nil {
		return nil, syscall.EEXIST
	}
	n.children[text] = child
	child.links++
	n.disk.add(change{kind: link, node: child.id, to: name{n.id, text}})
	child.attr(&out.Attr)
	return &child.Inode, 0
}

// Unlink implements fs.NodeUnlinker.
func (n *node) Unlink(_ context.Context, text string) syscall.Errno {
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child := n.children[text]
	if child == nil {
		return syscall.ENOENT
	}
	if len(child.children) > 0 {
		return syscall.ENOTEMPTY
	}
	delete(n.children, text)
	child.links--
	n.disk.add(change{kind: unlink, node: child.id, from: name{n.id, text}})
	return 0
}

// Rmdir implements fs.NodeRmdirer.
func (n *node) Rmdir(ctx context.Context, text string) syscall.Errno { return n.Unlink(ctx, text) }

// Rename implements fs.NodeRenamer.
func (n *node) Rename(_ context.Context, text string, newParent fs.InodeEmbedder, newText string, flags uint32) syscall.Errno {
	const noReplace = 1
	n.disk.mu.Lock()
	defer n.disk.mu.Unlock()
	child, to := n.children[text], newParent.(*node)
	there := to.children[newText]
	switch {
	case flags&^noReplace != 0:
		return syscall.EINVAL
	case child == nil:
		return syscall.ENOENT
	case flags == noReplace && there != nil:
		return syscall.EEXIST
	case there != nil && len(there.children) > 0:
		return syscall.ENOTEMPTY
	case there == child:
		return 0
	}
	delete(n.children, text)
	to.children[newText] = child
	if there != nil {
		there.links--
	}
	n.disk.add(change{kind: rename, node: child.id, from: name{n.id, text}, to: name{to.id, newText}})
	return 0
}
