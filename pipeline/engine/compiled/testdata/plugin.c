// A plug-in for the tests, which compiles a program by copying it. It is built with the
// header of the binding, so that what package compiled declares by itself is held
// against that. Each compilation adds a line to $PLUGIN_COMPILED.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

struct PJRT_Error {
	const char *message;
};
struct PJRT_LoadedExecutable {
	char code[256];
};
struct PJRT_Executable {
	char code[256];
};
struct PJRT_SerializedExecutable {
	char bytes[256];
};

static PJRT_Error failed = {"refused"};
static long errors;
static char client, device, description;
static PJRT_Device *devices[2] = {(PJRT_Device *)&device, (PJRT_Device *)&device};

static void error_destroy(PJRT_Error_Destroy_Args *args) { errors--; }
static void error_message(PJRT_Error_Message_Args *args) {
	args->message = args->error->message;
	args->message_size = strlen(args->message);
}
static PJRT_Error *error_code(PJRT_Error_GetCode_Args *args) { return NULL; }
static PJRT_Error *fail(void) {
	errors++;
	return &failed;
}

static PJRT_Error *initialize(PJRT_Plugin_Initialize_Args *args) { return NULL; }
static PJRT_Error *attributes(PJRT_Plugin_Attributes_Args *args) {
	args->num_attributes = 0;
	return NULL;
}
static PJRT_Error *client_create(PJRT_Client_Create_Args *args) {
	args->client = (PJRT_Client *)&client;
	return NULL;
}
static PJRT_Error *client_destroy(PJRT_Client_Destroy_Args *args) { return NULL; }
static PJRT_Error *platform_name(PJRT_Client_PlatformName_Args *args) {
	args->platform_name = "test", args->platform_name_size = 4;
	return NULL;
}
static PJRT_Error *platform_version(PJRT_Client_PlatformVersion_Args *args) {
	args->platform_version = getenv("PLUGIN_VERSION"), args->platform_version_size = strlen(args->platform_version);
	return NULL;
}
static PJRT_Error *process_index(PJRT_Client_ProcessIndex_Args *args) {
	args->process_index = 0;
	return NULL;
}
static PJRT_Error *addressable(PJRT_Client_AddressableDevices_Args *args) {
	args->addressable_devices = devices;
	args->num_addressable_devices = atoi(getenv("PLUGIN_DEVICES"));
	return NULL;
}
static PJRT_Error *hardware(PJRT_Device_LocalHardwareId_Args *args) {
	args->local_hardware_id = 0;
	return NULL;
}
static PJRT_Error *describe(PJRT_Device_GetDescription_Args *args) {
	args->device_description = (PJRT_DeviceDescription *)&description;
	return NULL;
}
static PJRT_Error *kind(PJRT_DeviceDescription_Kind_Args *args) {
	args->device_kind = getenv("PLUGIN_KIND"), args->device_kind_size = strlen(args->device_kind);
	return NULL;
}

static PJRT_LoadedExecutable *loaded(const char *code, size_t size) {
	PJRT_LoadedExecutable *e = calloc(1, sizeof *e);
	memcpy(e->code, code, size);
	return e;
}
static PJRT_Error *compile(PJRT_Client_Compile_Args *args) {
	if (args->client != (PJRT_Client *)&client || !memcmp(args->program->code, "wrong", 5)) return fail();
	FILE *f = fopen(getenv("PLUGIN_COMPILED"), "a");
	fprintf(f, "%.*s\n", (int)args->program->code_size, args->program->code);
	fclose(f);
	args->executable = loaded(args->program->code, args->program->code_size);
	return NULL;
}
static PJRT_Error *get_executable(PJRT_LoadedExecutable_GetExecutable_Args *args) {
	args->executable = calloc(1, sizeof *args->executable);
	strcpy(args->executable->code, args->loaded_executable->code);
	return NULL;
}
static void release(PJRT_SerializedExecutable *e) { free(e); }
static PJRT_Error *serialize(PJRT_Executable_Serialize_Args *args) {
	args->serialized_executable = calloc(1, sizeof *args->serialized_executable);
	args->serialized_bytes = args->serialized_executable->bytes;
	args->serialized_bytes_size = sprintf(args->serialized_executable->bytes, "kept %s", args->executable->code);
	args->serialized_executable_deleter = release;
	return NULL;
}
static PJRT_Error *deserialize(PJRT_Executable_DeserializeAndLoad_Args *args) {
	if (args->client != (PJRT_Client *)&client || args->overridden_serialized_compile_options_size) return fail();
	if (args->serialized_executable_size < 5 || memcmp(args->serialized_executable, "kept ", 5)) return fail();
	args->loaded_executable = loaded(args->serialized_executable + 5, args->serialized_executable_size - 5);
	return NULL;
}
static PJRT_Error *name(PJRT_Executable_Name_Args *args) {
	args->executable_name = args->executable->code;
	args->executable_name_size = strlen(args->executable_name);
	return NULL;
}
static PJRT_Error *outputs(PJRT_Executable_NumOutputs_Args *args) {
	args->num_outputs = errors; // for the test to see what was not given back
	return NULL;
}
static PJRT_Error *memory(PJRT_Executable_GetCompiledMemoryStats_Args *args) { return NULL; }
static PJRT_Error *destroy(PJRT_Executable_Destroy_Args *args) {
	free(args->executable);
	return NULL;
}
static PJRT_Error *destroy_loaded(PJRT_LoadedExecutable_Destroy_Args *args) {
	free(args->executable);
	return NULL;
}

const PJRT_Api *GetPjrtApi(void) {
	static const PJRT_Api api = {
		.struct_size = PJRT_Api_STRUCT_SIZE,
		.pjrt_api_version = {PJRT_Api_Version_STRUCT_SIZE, NULL, PJRT_API_MAJOR, PJRT_API_MINOR},
		.PJRT_Error_Destroy = error_destroy,
		.PJRT_Error_Message = error_message,
		.PJRT_Error_GetCode = error_code,
		.PJRT_Plugin_Initialize = initialize,
		.PJRT_Plugin_Attributes = attributes,
		.PJRT_Client_Create = client_create,
		.PJRT_Client_Destroy = client_destroy,
		.PJRT_Client_PlatformName = platform_name,
		.PJRT_Client_PlatformVersion = platform_version,
		.PJRT_Client_ProcessIndex = process_index,
		.PJRT_Client_AddressableDevices = addressable,
		.PJRT_Client_Compile = compile,
		.PJRT_Device_LocalHardwareId = hardware,
		.PJRT_Device_GetDescription = describe,
		.PJRT_DeviceDescription_Kind = kind,
		.PJRT_LoadedExecutable_GetExecutable = get_executable,
		.PJRT_LoadedExecutable_Destroy = destroy_loaded,
		.PJRT_Executable_Serialize = serialize,
		.PJRT_Executable_DeserializeAndLoad = deserialize,
		.PJRT_Executable_Destroy = destroy,
		.PJRT_Executable_Name = name,
		.PJRT_Executable_NumOutputs = outputs,
		.PJRT_Executable_GetCompiledMemoryStats = memory,
	};
	return &api;
}
