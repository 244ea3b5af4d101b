// Owns: the network of tests/network: N network namespaces, each with a TUN device (10.77.0.1 …), and the paths between them with their
// delay, jitter, loss, rate, MTU and silent cuts. The kernel's netem and connection tracking are not required.
// Threads: one. Never: outlives its stdin; reads more of a packet than its IPv4 and TCP headers.
//
//     forwarder N       prints "ready" and, for each node, the descriptor of its namespace: nsenter --net=/proc/PID/fd/FD
//
// Commands on stdin, each answered with a line: "ok", or counters. Nodes are numbers from 1, * is all of them.
//     link FROM TO [drop=0|1] [delay_us=] [jitter_us=] [loss_ppm=] [rate_bps=] [mtu=]     one direction; the rest stays
//     forget A B        the connections between two nodes that exist now are silently dead, as after the loss of a NAT's table
//     offload 0|1       packets of up to 64 KiB for throughput; loss and MTU apply to packets, so their scenes need 0
//     stats             packets and bytes forwarded, packets dropped
#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <malloc.h>
#include <net/if.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <sstream>
#include <string>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <unordered_map>
#include <vector>

namespace {

constexpr size_t HEAD = 10;  // a virtio_net_hdr, whose C header is not C++
constexpr size_t LARGEST = HEAD + 65535;
constexpr uint64_t SECOND = 1000000000;
constexpr uint64_t MOST_QUEUED = SECOND / 2;  // a path with a rate drops what would wait longer
constexpr int BURST = 64;                     // packets read from one device before the others

struct Packet {
    uint64_t due;
    std::vector<uint8_t> bytes;
};

struct Link {
    uint64_t drop = 0, delay_us = 0, jitter_us = 0, loss_ppm = 0, rate_bps = 0, mtu = 0;
    uint64_t forgotten = 0;  // connections of an older age are dead
    uint64_t free_at = 0, last_due = 0;
    std::deque<Packet> waiting;
};

std::vector<int> devices;
std::vector<std::vector<Link>> links;
std::unordered_map<uint64_t, uint64_t> ages;  // connection → its age: the number of `forget` commands before its SYN
uint64_t age = 0, packets = 0, bytes = 0, dropped = 0;
std::mt19937_64 chance(1);

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

uint64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * SECOND + uint64_t(t.tv_nsec);
}

void set(int socket, unsigned long request, ifreq& device, const char* what) {
    if (ioctl(socket, request, &device) < 0) fail(what);
}

void write_setting(const char* path, const char* value) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, value, strlen(value)) < 0) std::fprintf(stderr, "%s keeps its default\n", path);
    if (file >= 0) close(file);
}

// A new namespace, which this thread enters, with its device. Returns the namespace's descriptor.
int make_node(int number) {
    if (unshare(CLONE_NEWNET) < 0) fail("unshare(CLONE_NEWNET)");
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (device < 0) fail("/dev/net/tun");
    ifreq request{};
    std::strcpy(request.ifr_name, "net0");
    request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    set(device, TUNSETIFF, request, "TUNSETIFF");
    int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    auto* address = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
    *address = {};
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(0x0A4D0000u + uint32_t(number));
    set(control, SIOCSIFADDR, request, "SIOCSIFADDR");
    address->sin_addr.s_addr = htonl(0xFFFFFF00u);
    set(control, SIOCSIFNETMASK, request, "SIOCSIFNETMASK");
    request.ifr_qlen = 10000;
    ioctl(control, SIOCSIFTXQLEN, &request);  // needs root; the default of 500 is enough for all but throughput
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    set(control, SIOCSIFFLAGS, request, "net0 up");
    std::strcpy(request.ifr_name, "lo");
    set(control, SIOCSIFFLAGS, request, "lo up");
    close(control);
    // The kernel's limits of autotuned buffers would be the limit of a long path, for every client alike.
    write_setting("/proc/sys/net/ipv4/tcp_wmem", "4096 65536 67108864");
    write_setting("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 67108864");
    devices.push_back(device);
    int space = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (space < 0) fail("/proc/self/ns/net");
    return space;
}

void send_to(size_t node, const uint8_t* data, size_t size) {
    if (write(devices[node], data, size) == ssize_t(size)) {
        packets += 1;
        bytes += size - HEAD;
    } else {
        dropped += 1;
    }
}

uint16_t checksum(const uint8_t* data, size_t size) {
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < size; i += 2) sum += uint32_t(data[i] << 8 | data[i + 1]);
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    return htons(uint16_t(~sum));
}

// What a router answers when a packet that must not be cut does not fit: ICMP "fragmentation needed", with the MTU.
void refuse(size_t from, const uint8_t* ip, size_t size, uint16_t mtu) {
    const size_t quoted = std::min(size, size_t(ip[0] & 15) * 4 + 8);
    std::vector<uint8_t> out(HEAD + 28 + quoted);
    uint8_t* head = out.data() + HEAD;
    const uint16_t length = htons(uint16_t(28 + quoted));
    head[0] = 0x45, head[8] = 64, head[9] = 1;
    std::memcpy(head + 2, &length, 2);
    std::memcpy(head + 12, ip + 16, 4);
    std::memcpy(head + 16, ip + 12, 4);
    uint16_t sum = checksum(head, 20);
    std::memcpy(head + 10, &sum, 2);
    uint8_t* icmp = head + 20;
    const uint16_t fits = htons(mtu);
    icmp[0] = 3, icmp[1] = 4;
    std::memcpy(icmp + 6, &fits, 2);
    std::memcpy(icmp + 8, ip, quoted);
    sum = checksum(icmp, 8 + quoted);
    std::memcpy(icmp + 2, &sum, 2);
    send_to(from, out.data(), out.size());
}

// Whether a packet belongs to a connection that the path has forgotten. A SYN begins a connection.
bool is_dead(const Link& link, const uint8_t* ip, size_t size) {
    const size_t tcp = size_t(ip[0] & 15) * 4;
    if (ip[9] != 6 || size < tcp + 20) return false;
    uint64_t a = uint64_t(ip[15]) << 16 | uint64_t(ip[tcp] << 8 | ip[tcp + 1]);
    uint64_t b = uint64_t(ip[19]) << 16 | uint64_t(ip[tcp + 2] << 8 | ip[tcp + 3]);
    const uint64_t key = std::min(a, b) << 24 | std::max(a, b);
    if ((ip[tcp + 13] & 0x12) == 0x02) ages[key] = age;
    if (link.forgotten == 0) return false;
    auto found = ages.find(key);
    return found == ages.end() || found->second < link.forgotten;
}

void forward(size_t from, const uint8_t* data, size_t size) {
    const uint8_t* ip = data + HEAD;
    const size_t length = size - HEAD;
    if (size < HEAD + 20 || ip[0] >> 4 != 4) return;
    const size_t to = size_t(ip[19]) - 1;
    if (ip[16] != 10 || ip[17] != 77 || to >= devices.size()) return;
    Link& link = links[from][to];
    if (is_dead(link, ip, length) || link.drop || (link.loss_ppm && chance() % 1000000 < link.loss_ppm)) {
        dropped += 1;
        return;
    }
    if (link.mtu && length > link.mtu) {
        dropped += 1;
        refuse(from, ip, length, uint16_t(link.mtu));
        return;
    }
    if (!link.delay_us && !link.jitter_us && !link.rate_bps && link.waiting.empty()) {
        send_to(to, data, size);
        return;
    }
    uint64_t due = now();
    if (link.rate_bps) {
        if (link.free_at > due + MOST_QUEUED) {
            dropped += 1;
            return;
        }
        due = link.free_at = std::max(link.free_at, due) + length * 8 * SECOND / link.rate_bps;
    }
    due += link.delay_us * 1000 + (link.jitter_us ? chance() % (link.jitter_us * 1000) : 0);
    due = link.last_due = std::max(due, link.last_due);  // jitter of queues, which keep the order
    link.waiting.push_back({due, std::vector<uint8_t>(data, data + size)});
}

// Sends all packets that are due; returns when the next one is (0: none waits).
uint64_t send_due() {
    uint64_t next = 0;
    const uint64_t time = now();
    for (auto& row : links)
        for (size_t to = 0; to < row.size(); to++) {
            auto& waiting = row[to].waiting;
            while (!waiting.empty() && waiting.front().due <= time) {
                if (row[to].drop) dropped += 1;
                else send_to(to, waiting.front().bytes.data(), waiting.front().bytes.size());
                waiting.pop_front();
            }
            if (!waiting.empty() && (next == 0 || waiting.front().due < next)) next = waiting.front().due;
        }
    return next;
}

template <class Change> void each(const std::string& from, const std::string& to, Change change) {
    for (size_t a = 0; a < links.size(); a++)
        for (size_t b = 0; b < links.size(); b++)
            if ((from == "*" || from == std::to_string(a + 1)) && (to == "*" || to == std::to_string(b + 1))) change(links[a][b]);
}

void change(Link& link, const std::string& setting) {
    const size_t sign = setting.find('=');
    const std::string name = setting.substr(0, sign);
    const uint64_t value = std::strtoull(setting.c_str() + sign + 1, nullptr, 10);
    const std::pair<const char*, uint64_t*> settings[] = {
        {"drop", &link.drop}, {"delay_us", &link.delay_us}, {"jitter_us", &link.jitter_us}, {"loss_ppm", &link.loss_ppm},
        {"rate_bps", &link.rate_bps}, {"mtu", &link.mtu}};
    for (const auto& [known, place] : settings)
        if (name == known) *place = value;
}

void obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb, from, to, setting;
    words >> verb >> from >> to;
    if (verb == "link") {
        while (words >> setting) each(from, to, [&](Link& link) { change(link, setting); });
    } else if (verb == "forget") {
        age += 1;
        each(from, to, [](Link& link) { link.forgotten = age; });
        each(to, from, [](Link& link) { link.forgotten = age; });
    } else if (verb == "offload") {
        for (int device : devices)
            if (ioctl(device, TUNSETOFFLOAD, from == "1" ? TUN_F_CSUM | TUN_F_TSO4 : 0) < 0) fail("TUNSETOFFLOAD");
    } else if (verb == "stats") {
        std::printf("%llu %llu %llu\n", (unsigned long long)packets, (unsigned long long)bytes, (unsigned long long)dropped);
        return;
    }
    std::printf("ok\n");
}

}  // namespace

int main(int count, char** arguments) {
    const int nodes = count > 1 ? std::atoi(arguments[1]) : 2;
    mallopt(M_TRIM_THRESHOLD, 1 << 30);  // a long path holds many packets; their memory comes and goes all the time
    std::string spaces;
    for (int number = 1; number <= nodes; number++) spaces += " " + std::to_string(make_node(number));
    links.assign(size_t(nodes), std::vector<Link>(size_t(nodes)));
    setvbuf(stdout, nullptr, _IOLBF, 0);
    std::printf("ready%s\n", spaces.c_str());
    std::vector<pollfd> watched;
    for (int device : devices) watched.push_back({device, POLLIN, 0});
    watched.push_back({0, POLLIN, 0});
    std::vector<uint8_t> buffer(LARGEST);
    std::string input;
    for (;;) {
        const uint64_t next = send_due(), time = now();
        const uint64_t wait = next > time ? next - time : 0;
        const timespec timeout{time_t(wait / SECOND), long(wait % SECOND)};
        if (ppoll(watched.data(), watched.size(), next ? &timeout : nullptr, nullptr) < 0 && errno != EINTR) fail("ppoll");
        for (size_t node = 0; node < devices.size(); node++) {
            if (!(watched[node].revents & POLLIN)) continue;
            for (int i = 0; i < BURST; i++) {
                const ssize_t size = read(devices[node], buffer.data(), buffer.size());
                if (size <= 0) break;
                forward(node, buffer.data(), size_t(size));
            }
        }
        if (watched.back().revents) {
            char part[4096];
            const ssize_t size = read(0, part, sizeof part);
            if (size <= 0) return 0;
            input.append(part, size_t(size));
            for (size_t end; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) obey(input.substr(0, end));
        }
    }
}
