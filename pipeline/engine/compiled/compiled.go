package compiled

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "pjrt.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"
)

// kept is what this process looks into: a plug-in is loaded for good.
var kept struct {
	sync.Mutex
	plugin string
	folder folder
	// What the plug-in and the driver are, beside what the plug-in says of itself.
	machine []string
}

// Load has the plug-in look into dir before it compiles a program. From then on the
// binding finds it under its path, as if it had loaded it. A process can do so with one
// plug-in; where that cannot be done, the binding loads the plug-in by itself and
// compiles every program.
func Load(plugin, dir string) error {
	kept.Lock()
	defer kept.Unlock()
	if kept.plugin == plugin {
		return nil
	}
	if kept.plugin != "" {
		return fmt.Errorf("keep what %s compiles: this process does so for %s", plugin, kept.plugin)
	}
	file, err := os.Stat(plugin)
	if err != nil {
		return fmt.Errorf("keep what a plug-in compiles: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep what %s compiles: %w", plugin, err)
	}
	path := C.CString(plugin)
	defer C.free(unsafe.Pointer(path))
	table := C.lacuna_open(path)
	if table == nil {
		return fmt.Errorf("keep what %s compiles: it cannot be opened, or is older than what gives programs back", plugin)
	}
	kept.folder = folder{dir: dir, limit: limit}
	kept.machine = []string{plugin, fmt.Sprint(file.Size(), file.ModTime().UnixNano()), driver(), os.Getenv("XLA_FLAGS")}
	if err := pjrt.RegisterPreloadedPlugin(plugin, uintptr(table)); err != nil {
		return fmt.Errorf("keep what %s compiles: %w", plugin, err)
	}
	kept.plugin = plugin
	return nil
}

// driver returns what the driver of NVIDIA says of itself.
func driver() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	return cmp.Or(string(text), fmt.Sprint(err))
}

// lacunaCompile is what the binding calls to have a program compiled.
//
//export lacunaCompile
func lacunaCompile(args *C.lacuna_compile) unsafe.Pointer {
	name := nameOf(args)
	if name == "" {
		return C.lacuna_compile_anew(args)
	}
	program, err := kept.folder.read(name)
	if err == nil && C.lacuna_load(args, unsafe.Pointer(unsafe.SliceData(program)), C.size_t(len(program))) == 0 {
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		kept.folder.remove(name)
	}
	if failed := C.lacuna_compile_anew(args); failed != nil {
		return failed
	}
	var bytes C.lacuna_bytes
	if C.lacuna_keep(args.loaded, &bytes) == 0 {
		// That a program cannot be kept costs the time to compile it again, no more.
		_ = kept.folder.write(name, unsafe.Slice((*byte)(unsafe.Pointer(bytes.bytes)), bytes.size))
		C.lacuna_release(&bytes)
	}
	return nil
}

// nameOf returns the name under which a program is kept, or nothing where it is not: with
// several cards a program belongs to one of them, which could not be tried.
func nameOf(args *C.lacuna_compile) string {
	var version, kind *C.char
	var versionSize, kindSize C.size_t
	if C.lacuna_machine(args.client, &version, &versionSize, &kind, &kindSize) != 0 {
		return ""
	}
	return name(append([]string{
		text(version, versionSize), text(kind, kindSize), text(args.options, args.options_size),
		text(args.program.format, args.program.format_size), text(args.program.code, args.program.code_size),
	}, kept.machine...)...)
}

func text(from *C.char, size C.size_t) string { return C.GoStringN(from, C.int(size)) }
