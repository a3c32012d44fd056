#include "pjrt.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *(*function)(void *);

typedef struct {
	LACUNA_HEAD;
	struct {
		LACUNA_HEAD;
		int major, minor;
	} version;
	function functions[];
} table;

static table *plugin, *ours;

extern void *lacunaCompile(lacuna_compile *args); // in Go

void *lacuna_open(const char *path) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!library) return NULL;
	table *(*get)(void) = (table * (*)(void)) dlsym(library, "GetPjrtApi");
	if (!get || !(plugin = get())) return NULL;
	// What an old plug-in does not have cannot be called.
	if (plugin->version.major != 0 || plugin->struct_size < offsetof(table, functions) + LACUNA_FUNCTIONS * sizeof(function)) return NULL;
	if (!(ours = malloc(plugin->struct_size))) return NULL;
	memcpy(ours, plugin, plugin->struct_size);
	ours->functions[LACUNA_CLIENT_COMPILE] = (function)lacunaCompile;
	return ours;
}

// Calls a function of the plug-in: 0, or 1 where it failed.
static int call(int which, void *args) {
	struct {
		LACUNA_HEAD;
		void *error;
	} failed = {sizeof failed, NULL, plugin->functions[which](args)};
	if (!failed.error) return 0;
	((void (*)(void *))plugin->functions[LACUNA_ERROR_DESTROY])(&failed);
	return 1;
}

void *lacuna_compile_anew(lacuna_compile *args) { return plugin->functions[LACUNA_CLIENT_COMPILE](args); }

int lacuna_machine(void *client, const char **version, size_t *version_size, const char **kind, size_t *kind_size) {
	struct {
		LACUNA_HEAD;
		void *client;
		const char *text; // out
		size_t size;
	} platform = {sizeof platform, NULL, client};
	struct {
		LACUNA_HEAD;
		void *client;
		void *const *devices; // out
		size_t count;
	} devices = {sizeof devices, NULL, client};
	if (call(LACUNA_CLIENT_PLATFORM_VERSION, &platform) || call(LACUNA_CLIENT_ADDRESSABLE_DEVICES, &devices) || devices.count != 1) return 1;
	struct {
		LACUNA_HEAD;
		void *device;
		void *description; // out
	} device = {sizeof device, NULL, devices.devices[0]};
	if (call(LACUNA_DEVICE_GET_DESCRIPTION, &device)) return 1;
	struct {
		LACUNA_HEAD;
		void *description;
		const char *text; // out
		size_t size;
	} described = {sizeof described, NULL, device.description};
	if (call(LACUNA_DEVICE_DESCRIPTION_KIND, &described)) return 1;
	*version = platform.text, *version_size = platform.size;
	*kind = described.text, *kind_size = described.size;
	return 0;
}

int lacuna_load(lacuna_compile *to, const void *kept, size_t size) {
	struct {
		LACUNA_HEAD;
		void *client;
		const void *kept;
		size_t size;
		void *loaded; // out
		const char *other_options;
		size_t other_options_size;
	} args = {sizeof args, NULL, to->client, kept, size};
	if (call(LACUNA_EXECUTABLE_DESERIALIZE_AND_LOAD, &args)) return 1;
	to->loaded = args.loaded;
	return 0;
}

int lacuna_keep(void *loaded, lacuna_bytes *out) {
	struct {
		LACUNA_HEAD;
		void *loaded;
		void *program; // out
	} got = {sizeof got, NULL, loaded};
	if (call(LACUNA_LOADED_EXECUTABLE_GET_EXECUTABLE, &got)) return 1;
	struct {
		LACUNA_HEAD;
		const void *program;
		const char *bytes; // out
		size_t size;
		void *owner;
		void (*release)(void *);
	} kept = {sizeof kept, NULL, got.program};
	int failed = call(LACUNA_EXECUTABLE_SERIALIZE, &kept);
	struct {
		LACUNA_HEAD;
		void *program;
	} done = {sizeof done, NULL, got.program};
	call(LACUNA_EXECUTABLE_DESTROY, &done);
	if (failed) return 1;
	*out = (lacuna_bytes){kept.bytes, kept.size, kept.owner, kept.release};
	return 0;
}

void lacuna_release(lacuna_bytes *bytes) { bytes->release(bytes->owner); }
