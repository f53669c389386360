#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

// The wheels of ttnn have tt-metal's library and none of its headers: this declares what
// the program calls. Its arguments are all zero but for the fields that are set here.
namespace tt::tt_metal {
class DispatchCoreConfig;
struct BufferShardingArgs {
	BufferShardingArgs();
	~BufferShardingArgs() {} // the program ends without
	alignas(8) char inside[8];
};
namespace distributed {
class MeshDevice {
public:
	static std::shared_ptr<MeshDevice> create_unit_mesh(int device, size_t l1_small, size_t trace, size_t queues, const DispatchCoreConfig &, std::span<const uint32_t>, size_t worker_l1);
};
} // namespace distributed
} // namespace tt::tt_metal

using tt::tt_metal::distributed::MeshDevice;
// The name of MeshBuffer::create, whose arguments are a variant and a structure.
extern "C" void mesh_buffer_create(void *result, const void *config, const void *local, MeshDevice *, std::optional<uint64_t>)
	__asm__(MESH_BUFFER_CREATE);

int main() {
	alignas(16) char dispatch[256] = {}, config[512] = {}, buffer[64] = {};
	auto device = MeshDevice::create_unit_mesh(0, 32768, 0, 1, reinterpret_cast<tt::tt_metal::DispatchCoreConfig &>(dispatch), {}, 0);
	const uint64_t bytes = 64 << 20, page = 4096;
	std::memcpy(config, &bytes, sizeof bytes);
	const struct {
		uint64_t page_size;
		uint32_t pool; // DRAM
		tt::tt_metal::BufferShardingArgs sharding;
		char rest[256];
	} local = {page, 0, {}, {}};
	mesh_buffer_create(buffer, config, &local, device.get(), std::nullopt);
	std::puts("allocated");
	std::fflush(stdout);
	std::getchar();
	_Exit(0);
}
