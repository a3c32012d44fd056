#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "landlock.h"

enum { ASKED = 3, FILES = 4 }; // the socket of the parent, and the descriptors 0 to 3 of a copy

// receive takes the descriptors of the next copy; false: the parent wants no more.
static int receive(int files[FILES]) {
	char byte, room[CMSG_SPACE(FILES * sizeof(int))];
	struct iovec bytes = {&byte, 1};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
	ssize_t n;
	do n = recvmsg(ASKED, &message, 0);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *head = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head == NULL || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(FILES * sizeof(int))) return 0;
	memcpy(files, CMSG_DATA(head), FILES * sizeof(int));
	return 1;
}

// copy forks. The copy is a child of the parent, which can wait for it and kill
// it; fork makes it ours. glibc keeps the number of a thread in memory, which
// the kernel is asked to set as fork has it.
static long copy(void) {
	int *tid = NULL;
	unsigned long flags = CLONE_PARENT | SIGCHLD;
	if (prctl(PR_GET_TID_ADDRESS, &tid, 0, 0, 0) == 0 && tid != NULL) flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	return syscall(SYS_clone, flags, NULL, NULL, tid, tid); // machines differ in which of the last two it is
}

// lacuna_prepare is what a program does once for all copies, where it has such a
// function.
__attribute__((weak)) void lacuna_prepare(void);

// Runs before main, so while the process has one thread and no Go in it: a copy
// begins with main. It is confined by then.
__attribute__((constructor(102))) static void wait_to_be_copied(void) {
	if (getenv(LACUNA_SANDBOX_TEMPLATE) == NULL) return;
	if (lacuna_prepare != NULL) lacuna_prepare();
	int files[FILES];
	while (receive(files)) {
		long pid = copy();
		if (pid == 0) {
			for (int i = 0; i < FILES; i++) {
				if (dup2(files[i], i) < 0) _exit(1);
				close(files[i]); // all are above those that a template has: 0 to 3
			}
			return;
		}
		for (int i = 0; i < FILES; i++) close(files[i]);
		int32_t answer = pid < 0 ? -errno : (int32_t)pid;
		if (send(ASKED, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
	}
	_exit(0);
}
