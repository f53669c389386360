// A client as fast as the kernel allows: MESSAGES of 144 bytes, alternately
// ALLOC and FREE, BATCH of them in a write, at RATE messages a second (0: as
// fast as they go). LIVE buffers are allocated first and stay. It prints the
// messages per second and the time of a write: median, 99th percentile, most.
//
//   writer SOCKET MESSAGES BATCH RATE LIVE [SNDBUF]
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 144, MAX_BATCH = 1024 };

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + t.tv_nsec;
}

static void put(unsigned char *f, int type, uint64_t id, uint64_t size) {
    int32_t pid = getpid();
    memset(f, 0, SIZE);
    f[0] = type;
    memcpy(f + 8, &size, 8);
    memcpy(f + 20, &pid, 4);
    memcpy(f + 24, &id, 8);
}

static void send_all(int fd, unsigned char *b, size_t n) {
    while (n > 0) {
        ssize_t k = send(fd, b, n, MSG_NOSIGNAL);
        if (k < 0) {
            if (errno == EINTR) continue;
            perror("send");
            exit(1);
        }
        b += k;
        n -= k;
    }
}

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    long messages = atol(argv[2]), batch = atol(argv[3]), rate = atol(argv[4]), live = atol(argv[5]);
    if (batch < 1 || batch > MAX_BATCH) return 2;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int sndbuf = argc > 6 ? atoi(argv[6]) : 1 << 20;
    if (sndbuf) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &sndbuf, sizeof sndbuf);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, argv[1], sizeof a.sun_path - 1);
    if (connect(fd, (struct sockaddr *)&a, sizeof a)) {
        perror("connect");
        return 1;
    }
    static unsigned char buf[MAX_BATCH * SIZE];
    for (long i = 0; i < live; i++) {
        put(buf, 1, (uint64_t)(1000 + i) * 32 + (1ull << 33), 4096);
        send_all(fd, buf, SIZE);
    }
    long writes = messages / batch;
    uint32_t *took = malloc((writes + 1) * sizeof *took);
    uint64_t begin = now(), id = 0;
    for (long w = 0; w < writes; w++) {
        for (long i = 0; i < batch; i++) {
            long k = w * batch + i;
            if (k % 2 == 0) id++;
            put(buf + i * SIZE, k % 2 == 0 ? 1 : 2, (id % 4096 + 1) * 32 + (1ull << 32), k % 2 == 0 ? 4096 : 0);
        }
        if (rate) {
            uint64_t due = begin + (uint64_t)(w * batch) * 1000000000u / rate;
            uint64_t t = now();
            if (t + 200000 < due) {
                struct timespec s = {0, (long)(due - t)};
                nanosleep(&s, NULL);
            }
        }
        uint64_t t = now();
        send_all(fd, buf, batch * SIZE);
        took[w] = now() - t;
    }
    double s = (now() - begin) / 1e9;
    qsort(took, writes, sizeof *took, by_value);
    printf("%.0f %u %u %u\n", writes * batch / s, took[writes / 2], took[writes * 99 / 100], took[writes - 1]);
    fflush(stdout);
    char c;
    if (argc > 7) read(0, &c, 1);  // stay until told to go
    return 0;
}
