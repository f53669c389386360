# Opens every chip of the mock cluster, once as one mesh if a shape is given,
# else one after the other, and prints the ids of the accounting regions that
# appeared, and what the allocator knows about the first chip.
import json, os, re, sys
import ttnn

def regions():
    names = (re.fullmatch(r"tt_device_(\d+)_memory", f) for f in os.listdir("/dev/shm"))
    return sorted(int(m.group(1)) for m in names if m)

def facts(device):
    view = ttnn.get_memory_view(device, ttnn.BufferType.DRAM)
    grid = device.compute_with_storage_grid_size()
    return {"dram_banks": view.num_banks, "dram_bank_bytes": view.total_bytes_per_bank, "cores": grid.x * grid.y}

shape = json.loads(sys.argv[1])
if shape:
    mesh = ttnn.open_mesh_device(ttnn.MeshShape(*shape))
    seen = facts(mesh)
    ttnn.close_mesh_device(mesh)
else:
    for i in range(ttnn.get_num_devices()):
        device = ttnn.open_device(device_id=i)
        seen = facts(device)
        ttnn.close_device(device)
print("RESULT " + json.dumps({"ids": [str(i) for i in regions()], **seen}))
