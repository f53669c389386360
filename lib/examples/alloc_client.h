/* A client of the allocation socket in one header, for C and C++: what a fork of
 * tt-metal calls where a buffer is allocated and freed (Device's constructor connects,
 * Buffer::allocate_impl and deallocate_impl report).
 *
 * A report counts for a device that the process has open. It costs a system call, about
 * a microsecond; where no ttmond listens it costs nothing and loses nothing but the
 * report. libttmon (ttmon run) needs none of this.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ALLOC_CLIENT_H
#define ALLOC_CLIENT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ALLOC_DRAM = 0, ALLOC_L1 = 1, ALLOC_HOST = 2, ALLOC_L1_SMALL = 3, ALLOC_TRACE = 4 };

/* The message of 144 bytes. All that a report does not need stays 0. */
struct alloc_message {
	uint8_t type, pad1[3]; /* 1 allocated, 2 freed */
	int32_t device;        /* the process's own number */
	uint64_t size;
	uint8_t pool, pad2[3];
	int32_t pid;
	uint64_t address;
	uint64_t time_ns;
	uint8_t rest[104];
} __attribute__((packed));

/* Connects to ttmond; -1: none listens. A write waits a second at most. */
static inline int alloc_connect(void)
{
	struct sockaddr_un to;
	const char *path = getenv("ALLOC_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct timeval second = {1, 0};

	if (!path)
		path = "/tmp/tt_allocation_server.sock";
	memset(&to, 0, sizeof to);
	to.sun_family = AF_UNIX;
	if (fd < 0 || strlen(path) >= sizeof to.sun_path)
		return -1;
	memcpy(to.sun_path, path, strlen(path));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
	if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Reports one event; 0, or -1 where it did not arrive. MSG_NOSIGNAL: a ttmond that
 * ends must not end the program. */
static inline int alloc_report(int fd, int type, int device, int pool, uint64_t address, uint64_t size)
{
	struct alloc_message m;
	struct timespec now;

	if (fd < 0)
		return -1;
	memset(&m, 0, sizeof m);
	clock_gettime(CLOCK_REALTIME, &now);
	m.type = (uint8_t)type;
	m.device = device;
	m.size = size;
	m.pool = (uint8_t)pool;
	m.pid = (int32_t)getpid();
	m.address = address;
	m.time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return send(fd, &m, sizeof m, MSG_NOSIGNAL) == (ssize_t)sizeof m ? 0 : -1;
}

static inline int alloc_allocated(int fd, int device, int pool, uint64_t address, uint64_t size)
{
	return alloc_report(fd, 1, device, pool, address, size);
}

static inline int alloc_freed(int fd, int device, uint64_t address) { return alloc_report(fd, 2, device, 0, address, 0); }

#ifdef __cplusplus
}
#endif
#endif
