// The parts of PJRT, the interface of XLA's plug-ins, that package compiled needs.
#include <stddef.h>

// Every argument of a function of PJRT begins with its own size, for versions that know
// fewer members, and a list of extensions.
#define LACUNA_HEAD \
	size_t struct_size; \
	void *extension_start

typedef struct {
	LACUNA_HEAD;
	char *code;
	size_t code_size;
	const char *format;
	size_t format_size;
} lacuna_program;

typedef struct {
	LACUNA_HEAD;
	void *client;
	const lacuna_program *program;
	const char *options;
	size_t options_size;
	void *loaded; // out
} lacuna_compile;

// Where in the table of a plug-in a function stands.
enum {
	LACUNA_ERROR_DESTROY = 0,
	LACUNA_CLIENT_PLATFORM_VERSION = 14,
	LACUNA_CLIENT_ADDRESSABLE_DEVICES = 16,
	LACUNA_CLIENT_COMPILE = 20,
	LACUNA_DEVICE_DESCRIPTION_KIND = 26,
	LACUNA_DEVICE_GET_DESCRIPTION = 29,
	LACUNA_EXECUTABLE_DESTROY = 40,
	LACUNA_EXECUTABLE_SERIALIZE = 49,
	LACUNA_LOADED_EXECUTABLE_GET_EXECUTABLE = 51,
	LACUNA_EXECUTABLE_DESERIALIZE_AND_LOAD = 56,
	LACUNA_FUNCTIONS
};

// Opens a plug-in and returns a copy of its table whose compile is lacunaCompile, or
// nothing. There is one copy in a process.
void *lacuna_open(const char *plugin);

// The plug-in's own compile; what it returns is an error of PJRT or nothing.
void *lacuna_compile_anew(lacuna_compile *args);

// The version of the platform and the kind of the only device of a client: 0, or 1
// where there are several or the plug-in does not say.
int lacuna_machine(void *client, const char **version, size_t *version_size, const char **kind, size_t *kind_size);

// Loads what lacuna_keep gave: 0, or 1 where the plug-in refuses it.
int lacuna_load(lacuna_compile *args, const void *kept, size_t size);

// The bytes of a program that was compiled, to be given back by lacuna_release: 0, or
// 1 where the plug-in cannot give them.
typedef struct {
	const char *bytes;
	size_t size;
	void *owner;
	void (*release)(void *);
} lacuna_bytes;
int lacuna_keep(void *loaded, lacuna_bytes *out);
void lacuna_release(lacuna_bytes *bytes);
