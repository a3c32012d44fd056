#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "landlock.h"

// The numbers are the same on all machines; Debian 12's headers know only the
// first version of the rules, so they are spelled out here.
enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, ASK_VERSION = 1 };

// Kinds of access that a ruleset takes away unless a rule gives it back. There
// are no rules.
struct ruleset {
	uint64_t files;       // since version 1
	uint64_t connections; // since version 4: TCP
	uint64_t scopes;      // since version 6: abstract sockets, signals
};

static int version = 0;

int lacuna_landlock_version(void) { return version; }

// Runs before main, so while the process has one thread: Landlock confines a
// thread and those it starts, and never the others. A template is confined before
// it is copied.
__attribute__((constructor(101))) static void confine(void) {
	if (getenv(LACUNA_SANDBOX_MARK) == NULL) return;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return;
	long abi = syscall(CREATE_RULESET, NULL, 0, ASK_VERSION);
	if (abi < 1) return;
	struct ruleset all = {.files = (1 << 13) - 1};
	size_t size = sizeof all.files;
	if (abi >= 2) all.files |= 1 << 13; // move between folders
	if (abi >= 3) all.files |= 1 << 14; // truncate
	if (abi >= 5) all.files |= 1 << 15; // ioctl of devices
	if (abi >= 4) {
		all.connections = 3; // bind and connect
		size += sizeof all.connections;
	}
	if (abi >= 6) {
		all.scopes = 3;
		size += sizeof all.scopes;
	}
	int rules = (int)syscall(CREATE_RULESET, &all, size, 0);
	if (rules < 0) return;
	if (syscall(RESTRICT_SELF, rules, 0) == 0) version = (int)abi;
	close(rules);
}
