// Takes a lock as UMD does: a robust, process-shared pthread mutex at the
// start of a file, then a magic number, the owner's tid and its pid. Says
// "held", and lets go when its standard input ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct lock {
	pthread_mutex_t mutex;
	uint64_t magic;
	int32_t tid, pid;
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	umask(0);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
	if (fd < 0 || ftruncate(fd, sizeof(struct lock)) < 0)
		return 3;
	struct lock *l = mmap(NULL, sizeof *l, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (l == MAP_FAILED)
		return 4;
	if (l->magic == 0) {
		pthread_mutexattr_t attr;
		pthread_mutexattr_init(&attr);
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
		pthread_mutex_init(&l->mutex, &attr);
		l->magic = 0x5454554D444D5458ULL;
	}
	int err = pthread_mutex_lock(&l->mutex);
	if (err == EOWNERDEAD)
		err = pthread_mutex_consistent(&l->mutex);
	if (err != 0)
		return 5;
	l->tid = (int32_t)syscall(SYS_gettid);
	l->pid = (int32_t)getpid();
	puts("held");
	fflush(stdout);
	while (getchar() != EOF)
		;
	pthread_mutex_unlock(&l->mutex);
	return 0;
}
