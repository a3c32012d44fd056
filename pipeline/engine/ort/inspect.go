package ort

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The first two entries of the library's base table, which no release has
// changed, and the place of two functions in its interface table, which only
// ever grows at the end.
typedef struct {
	const void *const *(*interface)(uint32_t version);
	const char *(*version)(void);
} base_table;

enum { get_providers = 125, release_providers = 126, release_status = 93 };

static void *open_library(const char *path) { return dlopen(path, RTLD_LAZY); }

static const base_table *find_base(void *library) {
	base_table *(*base)(void) = (base_table * (*)(void)) dlsym(library, "OrtGetApiBase");
	return base ? base() : NULL;
}

static const char *library_version(const base_table *base) { return base->version(); }

static int list_providers(const base_table *base, char ***names, int *count) {
	const void *const *table = base->interface(1); // listing them is as old as interface 1's tail
	if (!table) return -1;
	void *status = ((void *(*)(char ***, int *))table[get_providers])(names, count);
	if (!status) return 0;
	((void (*)(void *))table[release_status])(status);
	return -1;
}

static void free_providers(const base_table *base, char **names, int count) {
	const void *const *table = base->interface(1);
	void *status = ((void *(*)(char **, int))table[release_providers])(names, count);
	if (status) ((void (*)(void *))table[release_status])(status);
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// libraryFacts are version and providers of a library that is not yet started.
type libraryFacts struct {
	version   string
	providers []string // such as CPUExecutionProvider
}

// inspectLibrary opens the library at path and asks for its version and
// providers. onnxruntime_go offers neither before it is initialized, and to
// initialize it with a library that is too old prints to stderr.
func inspectLibrary(path string) (libraryFacts, error) {
	library, err := openLibrary(path)
	if err != nil {
		return libraryFacts{}, err
	}
	defer C.dlclose(library)
	base := C.find_base(library)
	if base == nil {
		return libraryFacts{}, errors.New("the file has no OrtGetApiBase, so it is not ONNX Runtime")
	}
	facts := libraryFacts{version: C.GoString(C.library_version(base))}
	if checkVersion(facts.version) != nil {
		return facts, nil
	}
	var names **C.char
	var count C.int
	if C.list_providers(base, &names, &count) != 0 {
		return facts, errors.New("the library does not list its execution providers")
	}
	for _, name := range unsafe.Slice(names, int(count)) {
		facts.providers = append(facts.providers, C.GoString(name))
	}
	C.free_providers(base, names, count)
	return facts, nil
}

func openLibrary(path string) (unsafe.Pointer, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	library := C.open_library(name)
	if library == nil {
		return nil, errors.New(C.GoString(C.dlerror()))
	}
	return library, nil
}
