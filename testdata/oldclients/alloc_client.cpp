// The C++ AllocationClient of the old protocol, with its habits. It takes
// commands on standard input and answers each with a line:
//
//   alloc DEV ID SIZE TYPE | free DEV ID | cb_alloc DEV ID SIZE
//   cb_free DEV ID SIZE | load DEV ID SIZE CLASS | unload DEV ID SIZE
//   many N            N allocations of 100 bytes, ids from 1000000 in steps of 64
//   query DEV | info DEV      (the viewer of the same version)
//   fds                       open descriptors
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <iostream>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef MESSAGE_SIZE
#define MESSAGE_SIZE 144
#endif

struct __attribute__((packed)) Message {
    uint8_t type;
    uint8_t pad1[3];
    int32_t device_id;
    uint64_t size;
    uint8_t buffer_type;
    uint8_t pad2[3];
    int32_t process_id;
    uint64_t buffer_id;
    uint64_t timestamp;
    uint64_t dram, l1, l1_small, trace;
#if MESSAGE_SIZE >= 128
    uint64_t cb, kernel;
#endif
#if MESSAGE_SIZE >= 112
    uint64_t total_dram, total_l1;
    uint32_t arch, channels, per_channel, l1_per_core, available, devices;
#endif
#if MESSAGE_SIZE >= 144
    uint32_t ring_total, ring_used, ring_programs, pad3;
#endif
};
static_assert(sizeof(Message) == MESSAGE_SIZE, "layout");

class Client {
    std::string path_;
    int fd_ = -1;
    bool connected_ = false;

    bool connect_to_server() {
        if (connected_) return true;
        fd_ = socket(AF_UNIX, SOCK_STREAM, 0);  // an older one stays open
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        strncpy(a.sun_path, path_.c_str(), sizeof(a.sun_path) - 1);
        if (connect(fd_, reinterpret_cast<sockaddr*>(&a), sizeof(a)) < 0) {
            close(fd_);
            return false;
        }
        int buf = 1 << 20;
        setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &buf, sizeof(buf));
        return connected_ = true;
    }

public:
    explicit Client(std::string path) : path_(std::move(path)) { connect_to_server(); }

    bool send_message(const Message& m) {
        if (!connect_to_server()) return false;
        const char* p = reinterpret_cast<const char*>(&m);
        for (size_t left = sizeof(m); left > 0;) {
            ssize_t n = send(fd_, p, left, 0);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) {
                connected_ = false;
                return false;
            }
            p += n;
            left -= n;
        }
        return true;
    }

    bool receive(Message& m) {
        char* p = reinterpret_cast<char*>(&m);
        for (size_t left = sizeof(m); left > 0;) {
            ssize_t n = recv(fd_, p, left, 0);
            if (n <= 0) return false;
            p += n;
            left -= n;
        }
        return true;
    }
};

static Message make(int type, int device, uint64_t id, uint64_t size, int buffer_type, bool stamp) {
    Message m{};
    m.type = type;
    m.device_id = device;
    m.size = size;
    m.buffer_type = buffer_type;
    m.process_id = getpid();
    m.buffer_id = id;
    if (stamp) m.timestamp = std::chrono::system_clock::now().time_since_epoch().count();
    return m;
}

static int open_descriptors() {
    int n = 0;
    DIR* d = opendir("/proc/self/fd");
    while (readdir(d)) n++;
    closedir(d);
    return n - 3;  // ".", "..", and the directory itself
}

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    Client client(argv[1]);
    std::string word;
    while (std::cin >> word) {
        int dev = 0, type = 0;
        uint64_t id = 0, size = 0;
        bool ok = true;
        if (word == "alloc") {
            std::cin >> dev >> id >> size >> type;
            ok = client.send_message(make(1, dev, id, size, type, true));
        } else if (word == "free") {
            std::cin >> dev >> id;
            ok = client.send_message(make(2, dev, id, 0, 0, false));
        } else if (word == "cb_alloc") {
            std::cin >> dev >> id >> size;
            ok = client.send_message(make(8, dev, id, size, 0, true));
        } else if (word == "cb_free") {
            std::cin >> dev >> id >> size;
            ok = client.send_message(make(9, dev, id, size, 0, false));
        } else if (word == "load") {
            std::cin >> dev >> id >> size >> type;
            ok = client.send_message(make(10, dev, id, size, type, true));
        } else if (word == "unload") {
            std::cin >> dev >> id >> size;
            ok = client.send_message(make(11, dev, id, size, 0, false));
        } else if (word == "dump") {
            ok = client.send_message(make(5, 0, 0, 0, 0, false));
        } else if (word == "many") {
            uint64_t n = 0;
            std::cin >> n;
            for (uint64_t i = 0; i < n && ok; i++) ok = client.send_message(make(1, 0, 1000000 + 64 * i, 100, 0, true));
        } else if (word == "query" || word == "info") {
            std::cin >> dev;
            Message m{};
            m.type = word == "query" ? 3 : 6;
            m.device_id = dev;
            ok = client.send_message(m) && client.receive(m);
            if (ok) {
                std::cout << int(m.type) << ' ' << m.device_id << ' ' << m.dram << ' ' << m.l1 << ' ' << m.l1_small << ' ' << m.trace;
#if MESSAGE_SIZE >= 128
                std::cout << ' ' << m.cb << ' ' << m.kernel;
#endif
#if MESSAGE_SIZE >= 112
                std::cout << " | " << m.total_dram << ' ' << m.total_l1 << ' ' << m.arch << ' ' << m.channels << ' ' << m.per_channel << ' '
                          << m.l1_per_core << ' ' << m.available << ' ' << m.devices;
#endif
                std::cout << std::endl;
                continue;
            }
        } else if (word == "fds") {
            std::cout << open_descriptors() << std::endl;
            continue;
        } else {
            return 2;
        }
        std::cout << (ok ? "ok" : "failed") << std::endl;
    }
}
