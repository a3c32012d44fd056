package engine

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
*/
import "C"

import "unsafe"

// preload loads shared libraries by path, for good. A library that is loaded is
// found by its name from then on, so that a plug-in finds CUDA where pip has
// put it although LD_LIBRARY_PATH, which the loader reads only when a process
// starts, does not lead there.
//
// Libraries need one another in no fixed order, so preload goes on until a
// pass loads none. A library that does not load is left out: the plug-in may not
// need it, and names it if it does.
func preload(paths []string) {
	for len(paths) > 0 {
		var left []string
		for _, path := range paths {
			if !dlopen(path) {
				left = append(left, path)
			}
		}
		if len(left) == len(paths) {
			return
		}
		paths = left
	}
}

func dlopen(path string) bool {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	return C.dlopen(name, C.RTLD_LAZY|C.RTLD_GLOBAL) != nil
}
