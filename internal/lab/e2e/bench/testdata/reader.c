// The floor: a server that reads with epoll and large reads and does nothing
// with what it reads. It ends when CLIENTS have come and gone, and prints the
// bytes it read and the seconds of processor time it took.
//
//   reader SOCKET CLIENTS
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int clients = atoi(argv[2]), ls = socket(AF_UNIX, SOCK_STREAM, 0), ep = epoll_create1(0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strncpy(a.sun_path, argv[1], sizeof a.sun_path - 1);
    if (bind(ls, (struct sockaddr *)&a, sizeof a) || listen(ls, 128)) {
        perror("listen");
        return 1;
    }
    struct epoll_event e = {.events = EPOLLIN, .data.fd = ls}, got[64];
    epoll_ctl(ep, EPOLL_CTL_ADD, ls, &e);
    puts("ready");
    fflush(stdout);
    static char buf[256 << 10];
    long long bytes = 0;
    while (clients > 0) {
        int n = epoll_wait(ep, got, 64, -1);
        for (int i = 0; i < n; i++) {
            if (got[i].data.fd == ls) {
                e.data.fd = accept4(ls, 0, 0, SOCK_NONBLOCK);
                epoll_ctl(ep, EPOLL_CTL_ADD, e.data.fd, &e);
                continue;
            }
            ssize_t k = recv(got[i].data.fd, buf, sizeof buf, MSG_DONTWAIT);
            if (k > 0) {
                bytes += k;
            } else if (k == 0) {
                close(got[i].data.fd);
                clients--;
            }
        }
    }
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    printf("%lld %.3f\n", bytes, r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6);
    return 0;
}
